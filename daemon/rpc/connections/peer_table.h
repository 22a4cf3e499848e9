// SPDX-License-Identifier: Apache-2.0
//
// PeerTable knows who is at the other end of each connection, by the descriptor's number, which is
// what gRPC calls the connection ("fd:9"). Entered before gRPC reads from the descriptor, and
// overwritten when its number is used again, which cannot be while a call of the old connection
// lives (a call keeps its transport, and so the descriptor, open). Also counts the connections.
// Any thread.
#ifndef PHOBOS_DAEMON_RPC_CONNECTIONS_PEER_TABLE_H_
#define PHOBOS_DAEMON_RPC_CONNECTIONS_PEER_TABLE_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace phobos::rpc {

// Credentials at the time of connect().
struct Peer {
  uid_t uid = 0;
  pid_t pid = 0;             // 0: not visible from here (another PID namespace)
  bool is_over_cap = false;  // one connection too many of this uid: its calls are refused
};

class PeerTable {
 public:
  void Enter(int fd, const Peer& peer);
  // REQUIRES: once for each connection that was entered, when its other end is gone.
  void Leave();
  // Connections that were entered and have not left.
  int open() const;

  // Who is behind `name`, a ServerContext's peer(). REQUIRES: called while that call is not
  // finished. nullopt: none of ours.
  std::optional<Peer> Find(const std::string& name) const;

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<int, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Whether the connection of that name is still open at its other end. REQUIRES: as for Find.
bool IsConnected(const std::string& name);

}  // namespace phobos::rpc

#endif  // PHOBOS_DAEMON_RPC_CONNECTIONS_PEER_TABLE_H_
