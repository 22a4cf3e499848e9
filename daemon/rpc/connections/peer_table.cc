// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/connections/peer_table.h"

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace phobos::rpc {

void PeerTable::Enter(int fd, const Peer& peer) {
  const absl::MutexLock lock(&mutex_);
  peers_[fd] = peer;
}

std::optional<Peer> PeerTable::Find(const std::string& name) const {
  absl::string_view number = name;
  int fd = -1;
  if (!absl::ConsumePrefix(&number, "fd:") || !absl::SimpleAtoi(number, &fd)) return std::nullopt;
  const absl::MutexLock lock(&mutex_);
  const auto found = peers_.find(fd);
  if (found == peers_.end()) return std::nullopt;
  return found->second;
}

}  // namespace phobos::rpc
