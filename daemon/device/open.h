// SPDX-License-Identifier: Apache-2.0
//
// Opens the Device a worker process is started for, by name. The only place that knows every kind.
// Any thread.
#ifndef PHOBOS_DAEMON_DEVICE_OPEN_H_
#define PHOBOS_DAEMON_DEVICE_OPEN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/device/device.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::device {

// "cpu": the host chip. "cpu:BYTES": the same, where BYTES is the size of its last-level cache
// should the machine not tell. "cuda:CARD": a GPU by its uuid or its number. "fake:FILE": the
// scripted device of fake/script.h. InvalidArgument: another name; Unavailable: there is no such
// device here, with the reason.
absl::StatusOr<std::unique_ptr<Device>> Open(const std::string& name);

// The GPUs of this machine as Open would describe them; "cuda:UUID" opens one.
struct Inventory {
  std::vector<tuner::v1::Device> devices;
  std::vector<std::string> unavailable;  // why there are none, or why one is not used
};

// Loads the driver, which stays in the process, and makes no context.
Inventory ListGpus();

// What has that physical card ("GPU-...", a slice's parent's) while nothing of ours runs there, as
// NVML says it (cuda/card_watch.h, LookAtCard); empty: nothing. Takes half a second; makes no
// context and loads no CUDA driver. Unavailable: it cannot be told, and why: there is no NVML, or
// the card does not tell of processes, as one that is cut into slices.
absl::StatusOr<std::string> LookAtGpu(const std::string& card_uuid);

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_OPEN_H_
