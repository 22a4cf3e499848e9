// SPDX-License-Identifier: Apache-2.0
//
// Starts a program as a child in a process group of its own: with exactly the descriptors it is
// given, within limits, and killed by the system when the thread that started it ends. Killing it
// and collecting it are the caller's. Any thread.
#ifndef PHOBOS_BASE_CHILD_PROCESS_H_
#define PHOBOS_BASE_CHILD_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace phobos {

struct ChildDescriptor {
  int ours = -1;  // stays the caller's
  int theirs = 0;
};

struct ChildOptions {
  std::vector<std::string> argv;  // argv[0] is the program's path
  // What the child has open. Of 0, 1 and 2, those not listed are /dev/null, but 2 is inherited.
  std::vector<ChildDescriptor> descriptors;
  int64_t address_space_bytes = 0;  // 0: no limit
};

// Starts the child. Core dumps are off, no signal is blocked or ignored. The child gets SIGKILL
// when the calling thread ends. Errors: NotFound, PermissionDenied (the program), ResourceExhausted
// (no process, memory or descriptor), Internal.
absl::StatusOr<pid_t> StartChild(const ChildOptions& options);

// Waits until the child has ended, at most so long; false: it has not. Killed or not, a child does
// not end while it is in a call of the system, a driver's say, that does not return.
bool AwaitChild(pid_t pid, absl::Duration limit);

// What is known of a child that has ended.
struct ChildEnd {
  int wait_status = 0;
  absl::Duration cpu_time;
};

// Collects a child that has ended, whose number may be another's from then on. nullopt: it has not
// ended. Does not wait. One that is not there to collect, as every child where SIGCHLD is ignored,
// has ended with exit status 255 and no time: how is not known, and not taken for well.
std::optional<ChildEnd> CollectChild(pid_t pid);

// How a child ended, by the status that waitpid gave: "signal 11 (Segmentation fault)", "exit
// status 3".
std::string DescribeExit(int wait_status);

}  // namespace phobos

#endif  // PHOBOS_BASE_CHILD_PROCESS_H_
