// SPDX-License-Identifier: Apache-2.0
//
// Unix sockets: connecting, and receiving a descriptor. No protocol in here. Any thread.
#ifndef PHOBOS_CLIENT_STUB_UNIX_SOCKET_H_
#define PHOBOS_CLIENT_STUB_UNIX_SOCKET_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "client/launch/status.h"

namespace phobos::stub {

// Connects to the stream socket at `path`. Does not wait for the peer to accept. NotFound: no such
// file; Unavailable: nobody listens there; PermissionDenied; InvalidArgument: longer than a
// socket's address may be; Internal: anything else, with the call's name.
StatusOr<Fd> Connect(const std::string& path);

// What came with a descriptor.
struct Received {
  Fd fd;
  int64_t number = 0;  // 8 bytes, little-endian
};

// Sends `bytes`, then waits for 8 bytes and a descriptor. Unavailable: the peer closed, or said
// nothing for 10 seconds.
StatusOr<Received> Exchange(int socket, std::string_view bytes);

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_UNIX_SOCKET_H_
