// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/link/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/error/error.h"

namespace phobos::worker {
namespace {

// Goes before every message: one of no bytes could not be told from the end.
constexpr char kLead = 'm';

struct alignas(cmsghdr) ControlBuffer {
  char bytes[CMSG_SPACE(sizeof(int) * kMostDescriptors)];
};

std::vector<Fd> TakeDescriptors(msghdr& header) {
  std::vector<Fd> descriptors;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

}  // namespace

absl::StatusOr<std::pair<Fd, Fd>> MakeSocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return error::FromErrno(errno, "socketpair");
  }
  return std::make_pair(Fd(ends[0]), Fd(ends[1]));
}

absl::Status Send(int socket, const google::protobuf::MessageLite& message,
                  absl::Span<const int> descriptors) {
  std::string bytes = message.SerializeAsString();
  if (bytes.size() > kMostMessageBytes || descriptors.size() > kMostDescriptors) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", bytes.size(), " bytes and ",
                                                   descriptors.size(),
                                                   " descriptors is over what the worker takes"));
  }
  char lead = kLead;
  iovec parts[] = {{&lead, 1}, {bytes.data(), bytes.size()}};
  ControlBuffer buffer = {};
  msghdr header = {};
  header.msg_iov = parts;
  header.msg_iovlen = 2;
  if (!descriptors.empty()) {
    header.msg_control = buffer.bytes;
    header.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    memcpy(CMSG_DATA(control), descriptors.data(), sizeof(int) * descriptors.size());
  }
  while (sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) {
      return absl::UnavailableError("the other end of the worker's socket is closed");
    }
    return absl::ErrnoToStatus(errno, "sendmsg");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Fd>> Receive(int socket, google::protobuf::MessageLite& message) {
  std::string bytes(kMostMessageBytes, '\0');
  char lead = 0;
  iovec parts[] = {{&lead, 1}, {bytes.data(), bytes.size()}};
  ControlBuffer buffer = {};
  msghdr header = {};
  header.msg_iov = parts;
  header.msg_iovlen = 2;
  header.msg_control = buffer.bytes;
  header.msg_controllen = sizeof(buffer.bytes);
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) {
    return absl::UnavailableError("the other end of the worker's socket is closed");
  }
  if (got < 0) return absl::ErrnoToStatus(errno, "recvmsg");
  std::vector<Fd> descriptors = TakeDescriptors(header);
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || lead != kLead ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(got) - 1)) {
    return absl::DataLossError("a message on the worker's socket cannot be read");
  }
  return descriptors;
}

}  // namespace phobos::worker
