// SPDX-License-Identifier: Apache-2.0
#include "tests/client/stub/fake_daemon.h"

#include <grpc/grpc.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>

namespace phobos::testing {
namespace {

// Short, because a socket's path may have 107 bytes only.
std::string FreshSocket() {
  std::string folder = "/tmp/phobos-test-XXXXXX";
  return std::string(mkdtemp(folder.data())) + "/s";
}

}  // namespace

FakeDaemon::FakeDaemon(std::string socket, Listen listen)
    : socket_(socket.empty() ? FreshSocket() : std::move(socket)) {
  if (listen == Listen::kAtOnce) Start();
}

FakeDaemon::~FakeDaemon() {
  Stop();
  unlink(socket_.c_str());
  rmdir(socket_.substr(0, socket_.rfind('/')).c_str());
}

void FakeDaemon::Start() {
  // gRPC is never shut down: that may wait 10 s for its own thread.
  static const bool kInitialized = (grpc_init(), true);
  (void)kInitialized;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

void FakeDaemon::Stop(std::chrono::milliseconds grace) {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now() + grace);
  server_->Wait();
  server_ = nullptr;
}

FakeSide::FakeSide() : socket_(FreshSocket()) {
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socket_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  listen(listener_, 16);
  server_ = std::thread([this] { Serve(); });
}

FakeSide::~FakeSide() {
  shutdown(listener_, SHUT_RDWR);
  server_.join();
  for (std::thread& thread : threads_) thread.join();
  close(listener_);
  for (auto& [ticket, segment] : segments_) close(segment.first);
  unlink(socket_.c_str());
  rmdir(socket_.substr(0, socket_.rfind('/')).c_str());
}

std::string FakeSide::MakeTold(int64_t bytes, int64_t told) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string ticket = "ticket .........";
  const std::string number = std::to_string(segments_.size());
  ticket.replace(16 - number.size(), number.size(), number);
  const int fd = memfd_create("segment", MFD_CLOEXEC);
  if (ftruncate(fd, bytes) != 0) return "";
  segments_[ticket] = {fd, told};
  return ticket;
}

std::byte* FakeSide::Memory(const std::string& ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto& [fd, bytes] = segments_.at(ticket);
  return static_cast<std::byte*>(
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}

void FakeSide::Serve() {
  while (true) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    threads_.emplace_back([this, connection] { ServeOne(connection); });
  }
}

void FakeSide::ServeOne(int connection) {
  ++open_;
  char ticket[16];
  if (recv(connection, ticket, sizeof(ticket), MSG_WAITALL) == sizeof(ticket)) {
    std::pair<int, int64_t> segment = {-1, 0};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = segments_.find(std::string(ticket, sizeof(ticket)));
      if (found != segments_.end()) segment = found->second;
    }
    if (segment.first >= 0) {
      iovec part = {&segment.second, sizeof(segment.second)};
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
      msghdr message = {};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      memcpy(CMSG_DATA(header), &segment.first, sizeof(int));
      ++fetched_;
      sendmsg(connection, &message, MSG_NOSIGNAL);
      recv(connection, ticket, sizeof(ticket), 0);  // until the client closes
    }
  }
  close(connection);
  --open_;
}

}  // namespace phobos::testing
