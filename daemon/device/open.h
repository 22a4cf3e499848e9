// SPDX-License-Identifier: Apache-2.0
//
// Opens the Device a worker process is started for, by name. The only place that knows every kind.
// Any thread.
#ifndef PHOBOS_DAEMON_DEVICE_OPEN_H_
#define PHOBOS_DAEMON_DEVICE_OPEN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/device/device.h"

namespace phobos::device {

// "cpu": the host chip. "cpu:BYTES": the same, where BYTES is the size of its last-level cache
// should the machine not tell. "fake:FILE": the scripted device of fake/script.h. InvalidArgument:
// another name; Unavailable: there is no such device here, with the reason.
absl::StatusOr<std::unique_ptr<Device>> Open(const std::string& name);

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_OPEN_H_
