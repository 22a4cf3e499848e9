// SPDX-License-Identifier: Apache-2.0
//
// A running Server on a socket of its own, and stock gRPC channels to it: what the tests of rpc/
// share. One thread.
#ifndef PHOBOS_TESTS_DAEMON_RPC_DOORS_H_
#define PHOBOS_TESTS_DAEMON_RPC_DOORS_H_

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/process/socket.h"
#include "daemon/rpc/door.h"
#include "daemon/rpc/server.h"

namespace phobos::rpc {

class Served {
 public:
  // `engine` may be null, as for Door.
  Served(Facts facts, engine::Engine* engine, int calls_per_uid = 512,
         int connections_per_uid = 256) {
    std::string folder = "/tmp/phobos-rpc-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    socket_ = folder + "/s";
    door_ = std::make_unique<Door>(std::move(facts), engine, calls_per_uid);
    absl::StatusOr<Fd> listener = process::Listen(socket_, /*is_private=*/true);
    EXPECT_TRUE(listener.ok()) << listener.status();
    std::vector<Fd> listeners;
    listeners.push_back(*std::move(listener));
    ServerOptions options;
    options.connections_per_uid = connections_per_uid;
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(std::move(listeners), *door_, options);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~Served() {
    server_.reset();
    unlink(socket_.c_str());
    rmdir(socket_.substr(0, socket_.size() - 2).c_str());
  }

  const std::string& socket() const { return socket_; }
  Door& door() { return *door_; }

  // A connection of its own.
  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("unix:" + socket_, grpc::InsecureChannelCredentials(),
                                     arguments);
  }

 private:
  std::string socket_;
  std::unique_ptr<Door> door_;
  std::unique_ptr<Server> server_;
};

}  // namespace phobos::rpc

#endif  // PHOBOS_TESTS_DAEMON_RPC_DOORS_H_
