// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <chrono>

#include "base/status_macros.h"
#include "daemon/rpc/services.h"

namespace phobos::rpc {
namespace {

// Source text may have 1 MiB; all else of a request is small.
constexpr int kLargestRequest = (1 << 20) + (64 << 10);

// A connection without a call is closed after this; clients connect again by themselves. Also the
// end of a peer that connects and says nothing.
constexpr int kConnectionIdleMs = 60 * 60 * 1000;

// How long calls in progress may take to notice that the server ends.
constexpr std::chrono::milliseconds kStopGrace(200);

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(std::vector<Fd> listeners, Door& door,
                                                      const ServerOptions& options) {
  // Never undone: gRPC's own shutdown, which the last grpc_shutdown would bring, waits up to ten
  // seconds for objects of connections that are still being torn down, and the process is about to
  // end anyway.
  grpc_init();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<Server> server(new Server);
  server->services_ = MakeServices(door);
  grpc::ServerBuilder builder;
  for (const std::unique_ptr<grpc::Service>& service : server->services_) {
    builder.RegisterService(service.get());
  }
  builder.SetMaxReceiveMessageSize(kLargestRequest);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kConnectionIdleMs);
  // Reflection is the only service with synchronous methods.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 1);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) return absl::InternalError("gRPC's BuildAndStart gave no server");
  ASSIGN_OR_RETURN(server->acceptor_, Acceptor::Start(std::move(listeners), *server->server_,
                                                      door.peers(), options.connections_per_uid));
  return server;
}

Server::~Server() {
  if (server_ == nullptr) return;
  acceptor_.reset();
  server_->Shutdown(std::chrono::system_clock::now() + kStopGrace);
  server_->Wait();
}

}  // namespace phobos::rpc
