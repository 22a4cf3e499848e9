// SPDX-License-Identifier: Apache-2.0
//
// Listening on the daemon's Unix sockets: the folder's rules, a stale file, and sockets handed over
// by systemd. Not the accept loops (rpc/connections/acceptor.h, side_server.h). Called once, by
// main.
#ifndef PHOBOS_DAEMON_PROCESS_SOCKET_H_
#define PHOBOS_DAEMON_PROCESS_SOCKET_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace phobos::process {

// Makes sure that `folder` exists, belongs to this user and has mode 0700; makes it when it is
// missing. FailedPrecondition: it is somebody else's, a link, or open to others, with what to do:
// `instead`, and for a folder that only we make (phobos-UID) also what would mend it. Others may
// need any other one as it is.
absl::Status PreparePrivateFolder(const std::string& folder, const std::string& instead);

// Binds `path` and listens. A private daemon's folder must pass PreparePrivateFolder and its socket
// is 0600; otherwise the folder must exist, the socket is 0660 and belongs to group `phobos` where
// there is one and this process may give it away. A socket that nobody listens on is
// replaced. AlreadyExists: somebody listens there. FailedPrecondition: something else is there,
// which stays.
absl::StatusOr<Fd> Listen(const std::string& path, bool is_private);

// The listening sockets that systemd passed (LISTEN_PID, LISTEN_FDS), in order; none when there are
// none for this process. InvalidArgument: a descriptor that is no listening Unix stream socket.
absl::StatusOr<std::vector<Fd>> InheritedSockets(
    const std::function<std::string(const char*)>& environment);

// Path that a listening socket is bound to; empty when it has none.
std::string BoundPath(int fd);

// Which file a path leads to. A file that is open, or a socket that is bound, keeps its own for
// itself, also when it was removed.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};
// That of no file where there is none.
FileId FileAt(const std::string& path);
// The file that an open descriptor, not a socket, leads to.
FileId FileOf(int fd);

// Whether somebody accepts connections at `path` now.
bool IsServed(const std::string& path);

}  // namespace phobos::process

#endif  // PHOBOS_DAEMON_PROCESS_SOCKET_H_
