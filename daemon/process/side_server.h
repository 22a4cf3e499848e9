// SPDX-License-Identifier: Apache-2.0
//
// SideServer hands segments over: a Unix socket beside the main one, where a client connects once a
// segment, sends the 16 bytes of its ticket and gets 8 bytes, the size in little-endian order, with
// the memfd as SCM_RIGHTS. The connection then stays open for as long as the client wants the
// segment; its end releases it. A wrong, used or old ticket, more than 16 bytes, or 10 s of silence
// closes it without an answer. One thread of its own, no locks held over a system call.
#ifndef PHOBOS_DAEMON_PROCESS_SIDE_SERVER_H_
#define PHOBOS_DAEMON_PROCESS_SIDE_SERVER_H_

#include <sys/types.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "daemon/process/segment_pool.h"

namespace phobos::process {

class SideServer {
 public:
  // Takes over the listening socket. `pool` must outlive it. One uid may have `connections_per_uid`
  // open; more are closed.
  static absl::StatusOr<std::unique_ptr<SideServer>> Start(Fd listener, SegmentPool& pool,
                                                           int connections_per_uid);
  ~SideServer();  // closes all connections

 private:
  struct Connection {
    Fd fd;
    uid_t uid = 0;
    absl::Time since;
    std::string received;
    uint64_t segment = 0;  // 0: no ticket redeemed yet
  };

  SideServer(Fd listener, SegmentPool& pool, int connections_per_uid);
  void Loop();
  void Accept();
  // False: the connection is to be closed.
  bool Read(Connection& connection);
  bool Answer(Connection& connection);
  void CloseSilent();
  void Close(int fd);

  SegmentPool& pool_;
  const Fd listener_;
  const int connections_per_uid_;
  Fd stop_;  // an eventfd
  // The thread's own.
  absl::flat_hash_map<int, Connection> connections_;
  absl::flat_hash_map<uid_t, int> open_;
  std::thread thread_;
};

}  // namespace phobos::process

#endif  // PHOBOS_DAEMON_PROCESS_SIDE_SERVER_H_
