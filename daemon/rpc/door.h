// SPDX-License-Identifier: Apache-2.0
//
// Door is what every verb is given: whom it may serve, on whose behalf, and the engine behind it.
// Enter is a verb's first step: it says who calls, refuses whom this daemon does not serve and who
// asks for too much at once, and counts the call until its Pass is gone. Any thread.
#ifndef PHOBOS_DAEMON_RPC_DOOR_H_
#define PHOBOS_DAEMON_RPC_DOOR_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/engine/engine.h"
#include "daemon/rpc/connections/peer_table.h"

namespace phobos::rpc {

// What the daemon says of itself. Constant.
struct Facts {
  std::string daemon_version;
  std::string socket;
  std::string side_socket;
  std::string cache_dir;
  bool is_private = false;
  int64_t started_unix_ms = 0;
  // Not empty: another daemon owns the cache; this one only sends clients there.
  std::string redirect_socket;
  // Not empty: why this daemon cannot serve at all; every call is answered with it.
  std::string failure;
  // Sentences for the status that were known at the start.
  std::vector<std::string> problems;
};

class Door;

// The right to be in a call. Movable; the call is over when it is destroyed.
class Pass {
 public:
  Pass(Door* door, Peer peer) : door_(door), peer_(peer) {}
  Pass(Pass&& other) noexcept : door_(std::exchange(other.door_, nullptr)), peer_(other.peer_) {}
  Pass& operator=(Pass&&) = delete;
  ~Pass();

  const Peer& peer() const { return peer_; }

 private:
  Door* door_;
  const Peer peer_;
};

class Door {
 public:
  // `engine` is null where facts.redirect_socket or facts.failure is set. Both must outlive it.
  // `calls_per_uid` caps calls at once.
  Door(Facts facts, engine::Engine* engine, int calls_per_uid)
      : facts_(std::move(facts)), engine_(engine), calls_per_uid_(calls_per_uid) {}

  // PermissionDenied: a private daemon and another user. ResourceExhausted: over a cap.
  // FailedPrecondition: the cache is another daemon's, or facts.failure.
  absl::StatusOr<Pass> Enter(const grpc::CallbackServerContext& context);
  // The same for Hello, which is answered also where the cache is another daemon's.
  absl::StatusOr<Pass> EnterHello(const grpc::CallbackServerContext& context);

  const Facts& facts() const { return facts_; }
  // REQUIRES: Enter succeeded.
  engine::Engine& engine() { return *engine_; }
  PeerTable& peers() { return peers_; }

  int calls() const;             // in progress
  absl::Time last_call() const;  // when one last began or ended; the epoch: never

 private:
  friend class Pass;
  void Leave(uid_t uid);

  const Facts facts_;
  engine::Engine* const engine_;
  const int calls_per_uid_;
  PeerTable peers_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uid_t, int> calls_ ABSL_GUARDED_BY(mutex_);
  int all_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_call_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
};

// Ends `reactor` with our Status.
void Finish(grpc::ServerUnaryReactor* reactor, const absl::Status& status);

// Finishes a unary call with what `answer(pass)` returns: the whole of a verb that does not wait.
template <typename Answer>
grpc::ServerUnaryReactor* Reply(Door& door, grpc::CallbackServerContext* context, Answer answer) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::StatusOr<Pass> pass = door.Enter(*context);
  Finish(reactor, pass.ok() ? answer(*pass) : pass.status());
  return reactor;
}

// Finishes a unary call that was begun with ReplyLater: called once, on any thread.
using Answered = std::function<void(const absl::Status&)>;

// For a verb whose answer comes later: `begin(answered)` either fails at once, or returns OK and
// has `answered` called when the response is filled. Request and response live until then.
template <typename Begin>
grpc::ServerUnaryReactor* ReplyLater(Door& door, grpc::CallbackServerContext* context,
                                     Begin begin) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<Pass> entered = door.Enter(*context);
  if (!entered.ok()) {
    Finish(reactor, entered.status());
    return reactor;
  }
  auto pass = std::make_shared<std::optional<Pass>>(*std::move(entered));
  // The pass goes first, whoever still has a copy of this: when the last call has finished, the
  // server may be gone, and the door with it.
  const Answered answered = [reactor, pass](const absl::Status& status) {
    pass->reset();
    Finish(reactor, status);
  };
  if (const absl::Status begun = begin(answered); !begun.ok()) answered(begun);
  return reactor;
}

}  // namespace phobos::rpc

#endif  // PHOBOS_DAEMON_RPC_DOOR_H_
