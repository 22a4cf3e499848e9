// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/door.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/error/error.h"
#include "daemon/rpc/status.h"

namespace phobos::rpc {

Pass::~Pass() {
  if (door_ != nullptr) door_->Leave(peer_.uid);
}

absl::StatusOr<Pass> Door::Enter(const grpc::CallbackServerContext& context) {
  if (!facts_.redirect_socket.empty()) {
    return error::Make(absl::StatusCode::kFailedPrecondition, tuner::v1::ERROR_REASON_UNSPECIFIED,
                       absl::StrCat("another daemon owns the cache ", facts_.cache_dir),
                       absl::StrCat("connect to ", facts_.redirect_socket));
  }
  return EnterHello(context);
}

absl::StatusOr<Pass> Door::EnterHello(const grpc::CallbackServerContext& context) {
  const std::optional<Peer> peer = peers_.Find(context.peer());
  if (!peer.has_value() || (facts_.is_private && peer->uid != geteuid())) {
    return error::Make(absl::StatusCode::kPermissionDenied, tuner::v1::ERROR_REASON_NOT_PERMITTED,
                       absl::StrCat("this daemon serves uid ", geteuid(), " only"),
                       "start your own, or ask for a system daemon");
  }
  if (!facts_.failure.empty()) {
    return error::Make(absl::StatusCode::kFailedPrecondition, tuner::v1::ERROR_REASON_UNSPECIFIED,
                       absl::StrCat("the daemon cannot serve: ", facts_.failure));
  }
  if (peer->is_over_cap) {
    return error::Make(absl::StatusCode::kResourceExhausted, tuner::v1::ERROR_REASON_LIMIT,
                       absl::StrCat("uid ", peer->uid, " has too many connections"),
                       "close some, or raise --connections-per-uid");
  }
  const absl::MutexLock lock(&mutex_);
  int& calls = calls_[peer->uid];
  if (calls >= calls_per_uid_) {
    return error::Make(absl::StatusCode::kResourceExhausted, tuner::v1::ERROR_REASON_LIMIT,
                       absl::StrCat("uid ", peer->uid, " has ", calls, " calls in progress"),
                       "wait for some, or raise --calls-per-uid");
  }
  ++calls;
  ++all_calls_;
  last_call_ = absl::Now();
  return Pass(this, *peer);
}

void Door::Leave(uid_t uid) {
  const absl::MutexLock lock(&mutex_);
  --all_calls_;
  last_call_ = absl::Now();
  const auto found = calls_.find(uid);
  if (--found->second == 0) calls_.erase(found);
}

int Door::calls() const {
  const absl::MutexLock lock(&mutex_);
  return all_calls_;
}

absl::Time Door::last_call() const {
  const absl::MutexLock lock(&mutex_);
  return last_call_;
}

void Finish(grpc::ServerUnaryReactor* reactor, const absl::Status& status) {
  reactor->Finish(ToGrpc(status));
}

}  // namespace phobos::rpc
