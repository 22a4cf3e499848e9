// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/outbox.h"

#include <utility>

#include "daemon/rpc/status.h"

namespace phobos::rpc {

void Outbox::Send(const tuner::v1::TuneEvent& event) {
  {
    const absl::MutexLock lock(&mutex_);
    if (closing_.has_value()) return;
    if (event.has_progress()) {
      progress_ = event;
    } else {
      waiting_.push_back(event);
    }
  }
  Next();
}

void Outbox::Close(const absl::Status& status) {
  {
    const absl::MutexLock lock(&mutex_);
    if (closing_.has_value()) return;
    closing_ = status;
    progress_.reset();
  }
  Next();
}

bool Outbox::is_closed() const {
  const absl::MutexLock lock(&mutex_);
  return closing_.has_value();
}

void Outbox::OnWritten(bool ok) {
  {
    const absl::MutexLock lock(&mutex_);
    is_writing_ = false;
    if (!ok) is_broken_ = true;
  }
  Next();
}

Outbox::Move Outbox::Decide() {
  if (is_writing_ || is_finished_) return Move::kNothing;
  if (is_broken_) waiting_.clear();
  if (!waiting_.empty()) {
    sending_ = std::move(waiting_.front());
    waiting_.pop_front();
  } else if (progress_.has_value() && !is_broken_) {
    sending_ = *std::move(progress_);
    progress_.reset();
  } else {
    is_finished_ = closing_.has_value();
    return is_finished_ ? Move::kFinish : Move::kNothing;
  }
  is_writing_ = true;
  return Move::kWrite;
}

void Outbox::Next() {
  absl::Status status;
  Move move = Move::kNothing;
  {
    const absl::MutexLock lock(&mutex_);
    move = Decide();
    if (move == Move::kFinish) status = *closing_;
  }
  // Off the lock, and safe there: a write under way, or the end, is claimed by this thread alone,
  // and the reactor lives until gRPC has done what is asked here.
  if (move == Move::kWrite) reactor_->StartWrite(&sending_);
  if (move == Move::kFinish) reactor_->Finish(ToGrpc(status));
}

}  // namespace phobos::rpc
