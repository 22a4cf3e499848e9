// SPDX-License-Identifier: Apache-2.0
//
// What the daemon sets and reads of its own process: stop signals, limits, memory. Set-up calls
// belong to main, before other threads run; ResidentBytes is for any thread.
#ifndef PHOBOS_DAEMON_PROCESS_SELF_H_
#define PHOBOS_DAEMON_PROCESS_SELF_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace phobos::process {

// Blocks SIGTERM, SIGINT and SIGHUP in this thread and those it starts, and ignores SIGPIPE
// and SIGXFSZ (a write past a limit is an error then). SIGCHLD is as the system has it: where who
// started us had it ignored, nobody would learn how a child ended. The descriptor becomes readable
// when a stop signal has come.
absl::StatusOr<Fd> BlockStopSignals();

// No file or folder that this process makes may be written by others, whatever the user's umask is:
// clients run what lies in the cache.
void KeepFilesOurs();

// Raises the soft limit of open files to the hard one: a connection takes two descriptors.
void RaiseFileLimit();

// Few malloc arenas and an early return of free memory: an idle daemon should be small.
void KeepMemorySmall();
// Gives freed memory back to the system.
void TrimMemory();

// Threads of the whole machine that run or want to, now, this one among them; 1 where /proc does
// not tell.
int RunnableThreads();

// Resident set of this process; 0 when /proc is not there.
int64_t ResidentBytes();

}  // namespace phobos::process

#endif  // PHOBOS_DAEMON_PROCESS_SELF_H_
