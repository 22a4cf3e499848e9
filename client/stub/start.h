// SPDX-License-Identifier: Apache-2.0
//
// Starts a private daemon in the background. Any thread, also of a large process with many threads:
// nothing is forked here, phobosd itself leaves its parent.
#ifndef PHOBOS_CLIENT_STUB_START_H_
#define PHOBOS_CLIENT_STUB_START_H_

#include <string>

#include "client/launch/status.h"
#include "client/stub/patience.h"

namespace phobos::stub {

// Runs `program` --private --background at `socket` and waits until it listens. Gives the socket to
// connect to: that one, or the one of the daemon that owns the cache already. Unavailable: it could
// not start, with its own words. The daemon inherits the environment and nothing else.
StatusOr<std::string> StartPrivateDaemon(const std::string& program, const std::string& socket,
                                         const Patience& patience);

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_START_H_
