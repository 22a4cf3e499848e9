// SPDX-License-Identifier: Apache-2.0
#include "daemon/process/side_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"

namespace phobos::process {
namespace {

constexpr size_t kTicketBytes = 16;
constexpr absl::Duration kSilence = absl::Seconds(10);
constexpr int kLookAroundMs = 1000;

absl::StatusOr<uid_t> UidOf(int fd) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return absl::ErrnoToStatus(errno, "SO_PEERCRED");
  }
  return credentials.uid;
}

// One datagram's worth: the size and the descriptor.
bool SendSegment(int to, const SegmentPool::Redeemed& segment) {
  unsigned char size[8];
  for (int i = 0; i < 8; ++i) size[i] = static_cast<unsigned char>(segment.bytes >> (8 * i));
  iovec bytes = {size, sizeof(size)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &segment.fd, sizeof(int));
  // A fresh connection's buffer has room for eight bytes.
  return sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == ssize_t(sizeof(size));
}

}  // namespace

SideServer::SideServer(Fd listener, SegmentPool& pool, int connections_per_uid)
    : pool_(pool), listener_(std::move(listener)), connections_per_uid_(connections_per_uid) {}

absl::StatusOr<std::unique_ptr<SideServer>> SideServer::Start(Fd listener, SegmentPool& pool,
                                                              int connections_per_uid) {
  std::unique_ptr<SideServer> server(
      new SideServer(std::move(listener), pool, connections_per_uid));
  server->stop_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!server->stop_.ok()) return absl::ErrnoToStatus(errno, "eventfd");
  server->thread_ = std::thread([raw = server.get()] { raw->Loop(); });
  return server;
}

SideServer::~SideServer() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
  for (const auto& [fd, connection] : connections_) {
    if (connection.segment != 0) pool_.Release(connection.segment);
  }
}

void SideServer::Loop() {
  while (true) {
    std::vector<pollfd> watched = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    bool is_waiting_for_tickets = false;
    for (const auto& [fd, connection] : connections_) {
      watched.push_back({fd, POLLIN | POLLRDHUP, 0});
      is_waiting_for_tickets |= connection.segment == 0;
    }
    // Without a connection that owes a ticket there is nothing to look after: sleep until something
    // comes.
    poll(watched.data(), watched.size(), is_waiting_for_tickets ? kLookAroundMs : -1);
    if (watched[0].revents != 0) return;
    for (size_t i = 2; i < watched.size(); ++i) {
      if (watched[i].revents != 0 && !Read(connections_.at(watched[i].fd))) Close(watched[i].fd);
    }
    CloseSilent();
    if (watched[1].revents != 0) Accept();
  }
}

void SideServer::Accept() {
  Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.ok()) {
    if (errno == EMFILE || errno == ENFILE) absl::SleepFor(absl::Milliseconds(20));
    return;
  }
  const absl::StatusOr<uid_t> uid = UidOf(fd.get());
  if (!uid.ok()) return;
  int& open = open_[*uid];
  if (open >= connections_per_uid_) return;
  ++open;
  Connection connection;
  connection.uid = *uid;
  connection.since = absl::Now();
  connection.fd = std::move(fd);
  const int number = connection.fd.get();
  connections_[number] = std::move(connection);
}

bool SideServer::Read(Connection& connection) {
  char buffer[kTicketBytes + 1];
  const ssize_t n = recv(connection.fd.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0 || connection.segment != 0) return false;  // gone, or talking out of turn
  connection.received.append(buffer, n);
  if (connection.received.size() < kTicketBytes) return true;
  return connection.received.size() == kTicketBytes && Answer(connection);
}

bool SideServer::Answer(Connection& connection) {
  const absl::StatusOr<SegmentPool::Redeemed> redeemed =
      pool_.Redeem(connection.received, connection.uid, absl::Now());
  if (!redeemed.ok()) return false;
  connection.segment = redeemed->id;
  return SendSegment(connection.fd.get(), *redeemed);
}

void SideServer::CloseSilent() {
  const absl::Time oldest = absl::Now() - kSilence;
  std::vector<int> silent;
  for (const auto& [fd, connection] : connections_) {
    if (connection.segment == 0 && connection.since < oldest) silent.push_back(fd);
  }
  for (const int fd : silent) Close(fd);
}

void SideServer::Close(int fd) {
  const auto found = connections_.find(fd);
  if (found->second.segment != 0) pool_.Release(found->second.segment);
  const auto open = open_.find(found->second.uid);
  if (--open->second == 0) open_.erase(open);
  connections_.erase(found);
}

}  // namespace phobos::process
