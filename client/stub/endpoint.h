// SPDX-License-Identifier: Apache-2.0
//
// Where this process's daemon is, and starting a private one where there is none: the rules of
// docs/client.md, in one place for C, C++, Python and phobosctl. No protocol in here. Any thread.
#ifndef PHOBOS_CLIENT_STUB_ENDPOINT_H_
#define PHOBOS_CLIENT_STUB_ENDPOINT_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "client/launch/status.h"
#include "client/stub/patience.h"

namespace phobos::stub {

// What the rules look at. Filled by FromEnvironment; a test gives its own.
struct Places {
  // A socket that the caller or $PHOBOS_SOCKET names; empty: none.
  std::string given_socket;
  // The system daemon's.
  std::string system_socket = "/run/phobos/tuner.sock";
  // $XDG_RUNTIME_DIR where it is a folder of this user's own; else empty.
  std::string runtime_folder;
  // Where the user's own folder is made otherwise.
  std::string temporary_folder = "/tmp";
  uid_t uid = 0;
  // phobosd; empty: not found, `looked_in` says where.
  std::string daemon;
  std::string looked_in;
  // Why no daemon may be started, as the end of "... , and"; empty: one may be.
  std::string why_none_starts;
  // Not OK: a variable of the environment has a value that means nothing, which Reach gives.
  Status environment;

  // `socket`, `daemon`: what the caller wishes; empty: by the environment and, for the daemon, next
  // to this library (../bin or its own folder), then $PATH.
  static Places FromEnvironment(const std::string& socket, const std::string& daemon);
};

struct Reached {
  Fd socket;
  std::string path;
  // Sentences for the user: why this is not the daemon that was to be expected.
  std::vector<std::string> warnings;
};

// Connects to, in this order: the given socket; the system daemon's, if its file exists; the user's
// own, in the runtime folder or in <temporary folder>/phobos-UID. Where nobody listens at the given
// or the user's own one, a private daemon is started there, once for all that ask at the same time.
// InvalidArgument: places.environment. PermissionDenied names the group that may;
// FailedPrecondition: the folder in the temporary folder, or that in which a
// private daemon would have its socket, is not this user's alone; Unavailable: no
// daemon, and why none was started; Cancelled by patience.
StatusOr<Reached> Reach(const Places& places, const Patience& patience);

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_ENDPOINT_H_
