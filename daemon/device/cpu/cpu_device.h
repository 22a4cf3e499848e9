// SPDX-License-Identifier: Apache-2.0
//
// The host chip as a Device: kernels are shared objects whose blocks run on a pool of threads, by
// the same code with which clients launch. Everything queued is done at once. Time is
// CLOCK_MONOTONIC_RAW. One thread, in the worker process.
#ifndef PHOBOS_DAEMON_DEVICE_CPU_CPU_DEVICE_H_
#define PHOBOS_DAEMON_DEVICE_CPU_CPU_DEVICE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "daemon/device/device.h"

namespace phobos::device {

// `llc_bytes`: size of the last-level cache should the machine not tell; 0: then 32 MiB.
// Unavailable: a processor below x86-64-v3.
absl::StatusOr<std::unique_ptr<Device>> OpenCpu(int64_t llc_bytes);

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CPU_CPU_DEVICE_H_
