// SPDX-License-Identifier: Apache-2.0
#include "client/stub/unix_socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <utility>

namespace phobos::stub {
namespace {

constexpr int kExchangeMs = 10000;

Code CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case ECONNREFUSED:
    case ENOTSOCK:
    case EPROTOTYPE:
    case EAGAIN:
      return Code::kUnavailable;
    case EACCES:
    case EPERM:
      return Code::kPermissionDenied;
    default:
      return Code::kInternal;
  }
}

}  // namespace

StatusOr<Fd> Connect(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Status(Code::kInvalidArgument,
                  "socket path '" + path + "' has " + std::to_string(path.size()) +
                      " bytes; 1 to " + std::to_string(sizeof(address.sun_path) - 1) + " fit");
  }
  memcpy(address.sun_path, path.data(), path.size());
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.ok()) return Status(Code::kInternal, std::string("socket: ") + strerror(errno));
  int result = 0;
  do {
    result = connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    return Status(CodeOf(errno), "connect to " + path + ": " + strerror(errno));
  }
  return fd;
}

StatusOr<Received> Exchange(int socket, std::string_view bytes) {
  if (send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(bytes.size())) {
    return Status(Code::kUnavailable, std::string("send to the side socket: ") + strerror(errno));
  }
  pollfd ready = {socket, POLLIN, 0};
  int count = 0;
  do {
    count = poll(&ready, 1, kExchangeMs);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return Status(Code::kUnavailable, "the side socket did not answer");

  uint8_t number[8];
  iovec part = {number, sizeof(number)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  Received received;
  if (size >= 0) {
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(header), sizeof(fd));
      received.fd.Reset(fd);
    }
  }
  if (size != static_cast<ssize_t>(sizeof(number)) || !received.fd.ok()) {
    return Status(Code::kUnavailable, "the side socket handed out no memory");
  }
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | number[i];
  received.number = static_cast<int64_t>(value);
  return received;
}

}  // namespace phobos::stub
