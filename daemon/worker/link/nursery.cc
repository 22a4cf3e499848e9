// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/link/nursery.h"

#include <utility>

namespace phobos::worker {

Nursery::~Nursery() {
  std::thread thread;
  {
    const absl::MutexLock lock(&mutex_);
    stop_ = true;
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

absl::StatusOr<pid_t> Nursery::Start(const ChildOptions& options) {
  const absl::MutexLock lock(&mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { Serve(); });
  wanted_ = &options;
  started_.reset();
  mutex_.Await(absl::Condition(
      +[](std::optional<absl::StatusOr<pid_t>>* started) { return started->has_value(); },
      &started_));
  return *std::move(started_);
}

void Nursery::Serve() {
  const absl::MutexLock lock(&mutex_);
  while (true) {
    mutex_.Await(absl::Condition(
        +[](Nursery* self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mutex_) {
          return self->stop_ || self->wanted_ != nullptr;
        },
        this));
    if (stop_) return;
    started_.emplace(StartChild(*std::exchange(wanted_, nullptr)));
  }
}

}  // namespace phobos::worker
