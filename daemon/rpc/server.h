// SPDX-License-Identifier: Apache-2.0
//
// Server is the running gRPC server: the services, health, reflection and the accept loop. Start
// makes it, destroying it stops it (calls in progress are cancelled). Owned by main.
#ifndef PHOBOS_DAEMON_RPC_SERVER_H_
#define PHOBOS_DAEMON_RPC_SERVER_H_

#include <grpcpp/server.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "daemon/rpc/connections/acceptor.h"
#include "daemon/rpc/door.h"

namespace phobos::rpc {

struct ServerOptions {
  int connections_per_uid = 256;
};

class Server {
 public:
  // Takes over the listening sockets. `door` must outlive it.
  static absl::StatusOr<std::unique_ptr<Server>> Start(std::vector<Fd> listeners, Door& door,
                                                       const ServerOptions& options);
  ~Server();

 private:
  Server() = default;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace phobos::rpc

#endif  // PHOBOS_DAEMON_RPC_SERVER_H_
