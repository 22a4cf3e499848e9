// SPDX-License-Identifier: Apache-2.0
#include "tests/client/stub/fake_daemon.h"

#include <grpc/grpc.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace phobos::testing {
namespace {

// Short, because a socket's path may have 107 bytes only.
std::string FreshSocket() {
  std::string folder = "/tmp/phobos-test-XXXXXX";
  return std::string(mkdtemp(folder.data())) + "/s";
}

}  // namespace

FakeDaemon::FakeDaemon(std::string socket)
    : socket_(socket.empty() ? FreshSocket() : std::move(socket)) {
  Start();
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

}  // namespace phobos::testing
