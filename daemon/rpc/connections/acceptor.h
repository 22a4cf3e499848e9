// SPDX-License-Identifier: Apache-2.0
//
// Acceptor is the accept loop: takes connections from the listening sockets, notes who is at the
// other end, and hands each descriptor to gRPC. It counts the open connections of each uid by
// watching a duplicate of each descriptor for its hang-up. One thread of its own.
#ifndef PHOBOS_DAEMON_RPC_CONNECTIONS_ACCEPTOR_H_
#define PHOBOS_DAEMON_RPC_CONNECTIONS_ACCEPTOR_H_

#include <grpcpp/server.h>
#include <sys/types.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "daemon/rpc/connections/peer_table.h"

namespace phobos::rpc {

class Acceptor {
 public:
  // `server` and `peers` must outlive it. Of one uid `connections_per_uid` are served; a few more
  // are let in, so that their calls can be told why they are refused, and the rest are closed.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(std::vector<Fd> listeners,
                                                         grpc::Server& server, PeerTable& peers,
                                                         int connections_per_uid);
  ~Acceptor();  // stops accepting; connections stay with gRPC

 private:
  struct Connection {
    Fd watch;  // a duplicate: gRPC owns the descriptor itself
    uid_t uid;
  };

  Acceptor(std::vector<Fd> listeners, grpc::Server& server, PeerTable& peers, int cap);
  absl::Status Watch(int fd, uint32_t events);
  void Loop();
  void AcceptAll(int listener);
  void Serve(Fd connection);
  void Drop(int watch);

  const std::vector<Fd> listeners_;
  grpc::Server& server_;
  PeerTable& peers_;
  const int connections_per_uid_;
  Fd epoll_;
  Fd stop_;  // an eventfd
  // The thread's own.
  absl::flat_hash_map<int, Connection> connections_;  // by watch
  absl::flat_hash_map<uid_t, int> open_by_uid_;
  std::thread thread_;
};

}  // namespace phobos::rpc

#endif  // PHOBOS_DAEMON_RPC_CONNECTIONS_ACCEPTOR_H_
