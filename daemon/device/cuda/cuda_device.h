// SPDX-License-Identifier: Apache-2.0
//
// A GPU as a Device: kernels are PTX that the driver links to cubins, launched by the same code
// with which clients launch; times are those of CUDA events. One thread, in the worker process,
// which ends when a kernel breaks the context (Aborted).
#ifndef PHOBOS_DAEMON_DEVICE_CUDA_CUDA_DEVICE_H_
#define PHOBOS_DAEMON_DEVICE_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/device/device.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::device {

// `card`: a uuid ("GPU-...", "MIG-..."), or the ordinal of a card as this process sees them. Takes
// the card's primary context, some tenths of a second the first time on a machine. Unavailable: no
// driver, no such card, or it cannot be used now, with the reason.
absl::StatusOr<std::unique_ptr<Device>> OpenCuda(const std::string& card);

// All cards as OpenCuda describes them, without a context on any; a card that cannot be used is an
// error of its own. Unavailable: no driver, or no device, with the reason.
absl::StatusOr<std::vector<absl::StatusOr<tuner::v1::Device>>> DescribeCards();

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CUDA_CUDA_DEVICE_H_
