// SPDX-License-Identifier: Apache-2.0
//
// How a daemon tells whoever started it that it listens, or why it does not, and how it leaves the
// terminal. Whoever starts a private daemon passes the write end of a pipe as --ready-fd=N and
// reads one line:
//
//     ready SOCKET          connect there: this daemon, or the one that already serves the cache
//     error SENTENCE        it ended; the sentence says why and what to do
//
// End of file without a line: it was killed. Called by main, before other threads run.
#ifndef PHOBOS_DAEMON_PROCESS_READY_H_
#define PHOBOS_DAEMON_PROCESS_READY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace phobos::process {

// Writes the line to `fd` and closes it; does nothing for a descriptor that is none.
void SayReady(Fd& fd, const std::string& socket);
void SayError(Fd& fd, const absl::Status& status);

// Forks twice. In the grandchild: returns the write end of a pipe for SayReady or SayError. In the
// caller's process: does not return; waits for that line, writes it to stdout or stderr and exits 0
// or 1.
absl::StatusOr<Fd> GoToBackground();

// Leaves the session, the working folder and the terminal: stdin and stdout become /dev/null,
// stderr is appended to `log_file`, which is started anew when it has grown over 1 MiB. Returns the
// former stderr, which processes that are started from now on do not get: whoever waits for its end
// waits for this process alone.
absl::StatusOr<Fd> Detach(const std::string& log_file);

}  // namespace phobos::process

#endif  // PHOBOS_DAEMON_PROCESS_READY_H_
