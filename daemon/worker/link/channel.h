// SPDX-License-Identifier: Apache-2.0
//
// Messages and descriptors over the socketpair between a worker and its supervisor: one protobuf
// message a datagram (SOCK_SEQPACKET), descriptors as SCM_RIGHTS beside it. Functions on a socket
// that the caller owns; one thread at a time.
#ifndef PHOBOS_DAEMON_WORKER_LINK_CHANNEL_H_
#define PHOBOS_DAEMON_WORKER_LINK_CHANNEL_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/fd.h"
#include "google/protobuf/message_lite.h"

namespace phobos::worker {

// Most bytes of one message, most descriptors beside it.
inline constexpr int kMostMessageBytes = 128 << 10;
inline constexpr int kMostDescriptors = 64;

// The two ends, close-on-exec.
absl::StatusOr<std::pair<Fd, Fd>> MakeSocketPair();

// Blocks until sent. InvalidArgument: too large; Unavailable: the peer is gone.
absl::Status Send(int socket, const google::protobuf::MessageLite& message,
                  absl::Span<const int> descriptors = {});

// Blocks until one has come; descriptors beyond those expected are an error. Unavailable: the peer
// is gone; DataLoss: what came is no such message.
absl::StatusOr<std::vector<Fd>> Receive(int socket, google::protobuf::MessageLite& message);

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_LINK_CHANNEL_H_
