// SPDX-License-Identifier: Apache-2.0
//
// From the client rooms' Status to Abseil's. Codes are the same numbers. Any thread.
#ifndef PHOBOS_DAEMON_DEVICE_CUDA_STATUS_H_
#define PHOBOS_DAEMON_DEVICE_CUDA_STATUS_H_

#include "absl/status/status.h"
#include "client/launch/status.h"

namespace phobos::device {

inline absl::Status FromLaunch(const phobos::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.code()), status.message());
}

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CUDA_STATUS_H_
