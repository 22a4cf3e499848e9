// SPDX-License-Identifier: Apache-2.0
//
// Copies what other processes have on a card, by their CUDA IPC handles, to this process's memory.
// On the thread of the card's context, when nothing else is queued.
#ifndef PHOBOS_DAEMON_DEVICE_CUDA_COPY_FETCH_H_
#define PHOBOS_DAEMON_DEVICE_CUDA_COPY_FETCH_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/launch/cuda/driver.h"
#include "daemon/device/cuda/card_stream.h"
#include "daemon/device/cuda/copy/staging.h"
#include "daemon/device/device.h"

namespace phobos::device {

// As Device::Fetch. Allocations are closed again before this returns.
absl::Status FetchForeign(const launch::cuda::CudaDriver& driver, CardStream& stream,
                          Staging& staging, absl::Span<const ForeignBytes> pieces);

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CUDA_COPY_FETCH_H_
