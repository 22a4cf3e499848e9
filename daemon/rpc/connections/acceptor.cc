// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/connections/acceptor.h"

#include <fcntl.h>
#include <grpcpp/server_posix.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace phobos::rpc {
namespace {

// Connections over the cap that are let in to be told so.
constexpr int kToldWhy = 16;

bool ReadCredentials(int fd, Peer& peer) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return false;
  peer.uid = credentials.uid;
  peer.pid = credentials.pid;
  return true;
}

}  // namespace

Acceptor::Acceptor(std::vector<Fd> listeners, grpc::Server& server, PeerTable& peers, int cap)
    : listeners_(std::move(listeners)), server_(server), peers_(peers), connections_per_uid_(cap) {}

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Start(std::vector<Fd> listeners,
                                                          grpc::Server& server, PeerTable& peers,
                                                          int connections_per_uid) {
  std::unique_ptr<Acceptor> acceptor(
      new Acceptor(std::move(listeners), server, peers, connections_per_uid));
  acceptor->epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  acceptor->stop_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!acceptor->epoll_.ok() || !acceptor->stop_.ok()) return absl::ErrnoToStatus(errno, "epoll");
  RETURN_IF_ERROR(acceptor->Watch(acceptor->stop_.get(), EPOLLIN));
  for (const Fd& listener : acceptor->listeners_) {
    RETURN_IF_ERROR(acceptor->Watch(listener.get(), EPOLLIN));
  }
  acceptor->thread_ = std::thread([raw = acceptor.get()] { raw->Loop(); });
  return acceptor;
}

Acceptor::~Acceptor() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

absl::Status Acceptor::Watch(int fd, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  }
  return absl::OkStatus();
}

void Acceptor::Loop() {
  while (true) {
    epoll_event events[32];
    const int count = epoll_wait(epoll_.get(), events, 32, -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == stop_.get()) return;
      const bool is_listener = std::any_of(listeners_.begin(), listeners_.end(),
                                           [fd](const Fd& own) { return own.get() == fd; });
      if (is_listener) {
        AcceptAll(fd);
      } else {
        Drop(fd);
      }
    }
  }
}

void Acceptor::AcceptAll(int listener) {
  while (true) {
    Fd connection(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection.ok()) {
      Serve(std::move(connection));
      continue;
    }
    // Out of descriptors: the connection stays in the backlog; others may end meanwhile.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
      absl::SleepFor(absl::Milliseconds(20));
    if (errno != EINTR && errno != ECONNABORTED) return;
  }
}

void Acceptor::Serve(Fd connection) {
  Peer peer;
  if (!ReadCredentials(connection.get(), peer)) return;
  Fd watch(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (!watch.ok()) return;
  const int watch_fd = watch.get();
  int& open = open_by_uid_[peer.uid];
  if (open >= connections_per_uid_ + kToldWhy) return;
  peer.is_over_cap = ++open > connections_per_uid_;
  connections_[watch_fd] = {std::move(watch), peer.uid};
  // Entered before gRPC starts to read: no call can come first.
  peers_.Enter(connection.get(), peer);
  grpc::AddInsecureChannelFromFd(&server_, connection.Release());
  if (!Watch(watch_fd, EPOLLRDHUP).ok()) Drop(watch_fd);
}

void Acceptor::Drop(int watch) {
  const auto found = connections_.find(watch);
  if (found == connections_.end()) return;
  const auto open = open_by_uid_.find(found->second.uid);
  if (--open->second == 0) open_by_uid_.erase(open);
  // By hand: the descriptor that gRPC has would keep a closed duplicate in the set.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watch, nullptr);
  connections_.erase(found);
  peers_.Leave();
}

}  // namespace phobos::rpc
