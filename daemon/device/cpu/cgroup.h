// SPDX-License-Identifier: Apache-2.0
//
// What the control groups of this process leave it of the machine's memory: a container's limit,
// which /proc/meminfo does not tell. Both versions of cgroups, each group and those above it. Pure
// but for reading /proc and /sys below a root that a test can give; any thread.
#ifndef PHOBOS_DAEMON_DEVICE_CPU_CGROUP_H_
#define PHOBOS_DAEMON_DEVICE_CPU_CGROUP_H_

#include <cstdint>
#include <limits>
#include <string>

namespace phobos::device {

struct GroupMemory {
  // The largest numbers: no group has a limit.
  int64_t limit_bytes = std::numeric_limits<int64_t>::max();
  // Below the limit that leaves least, with pages of files that are not in use.
  int64_t available_bytes = std::numeric_limits<int64_t>::max();
};

// `root`: "" for the real machine.
GroupMemory ReadGroupMemory(const std::string& root);

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CPU_CGROUP_H_
