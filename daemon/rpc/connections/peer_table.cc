// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/connections/peer_table.h"

#include <poll.h>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace phobos::rpc {
namespace {

// The descriptor that gRPC names; -1: the name is none of ours.
int DescriptorOf(absl::string_view name) {
  int fd = -1;
  if (!absl::ConsumePrefix(&name, "fd:") || !absl::SimpleAtoi(name, &fd)) return -1;
  return fd;
}

}  // namespace

void PeerTable::Enter(int fd, const Peer& peer) {
  const absl::MutexLock lock(&mutex_);
  peers_[fd] = peer;
  ++open_;
}

void PeerTable::Leave() {
  const absl::MutexLock lock(&mutex_);
  --open_;
}

int PeerTable::open() const {
  const absl::MutexLock lock(&mutex_);
  return open_;
}

std::optional<Peer> PeerTable::Find(const std::string& name) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = peers_.find(DescriptorOf(name));
  if (found == peers_.end()) return std::nullopt;
  return found->second;
}

bool IsConnected(const std::string& name) {
  pollfd connection = {DescriptorOf(name), POLLRDHUP, 0};
  return connection.fd >= 0 && poll(&connection, 1, 0) == 0;
}

}  // namespace phobos::rpc
