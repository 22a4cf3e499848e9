// SPDX-License-Identifier: Apache-2.0
//
// The daemon from its first system call to its last: takes the cache, listens, serves until it is
// told to stop or has been idle for long enough. Called once, by main, on the only thread.
#ifndef PHOBOS_DAEMON_MAIN_SERVE_H_
#define PHOBOS_DAEMON_MAIN_SERVE_H_

#include "absl/status/status.h"
#include "daemon/options/options.h"

namespace phobos {

// Returns when the daemon has ended: OK after a stop signal, an idle exit, where another daemon
// serves already, and in the background, whose starter was told what went wrong.
absl::Status Serve(const options::Options& options);

}  // namespace phobos

#endif  // PHOBOS_DAEMON_MAIN_SERVE_H_
