// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/task_pool.h"

#include <thread>
#include <utility>

#include "absl/time/time.h"

namespace phobos::engine {
namespace {

constexpr absl::Duration kIdle = absl::Seconds(5);

}  // namespace

TaskPool::TaskPool(int most_threads) : most_threads_(most_threads) {}

TaskPool::~TaskPool() {
  const absl::MutexLock lock(&mutex_);
  is_ending_ = true;
  mutex_.Await(absl::Condition(this, &TaskPool::HasNoThreads));
}

void TaskPool::Add(std::function<void()> task) {
  const absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
  if (static_cast<int>(tasks_.size()) <= waiting_ || threads_ == most_threads_) return;
  ++threads_;
  // Detached: the pool's end waits for its count of threads, which each of them lowers last, under
  // the lock.
  std::thread([this] { Work(); }).detach();
}

void TaskPool::Finish() {
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &TaskPool::IsIdle));
}

void TaskPool::Work() {
  const absl::MutexLock lock(&mutex_);
  while (true) {
    ++waiting_;
    const bool has_news = mutex_.AwaitWithTimeout(absl::Condition(this, &TaskPool::HasNews), kIdle);
    --waiting_;
    if (!has_news || tasks_.empty()) break;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    mutex_.Unlock();
    task();
    task = nullptr;  // what it holds goes before the lock is taken
    mutex_.Lock();
  }
  --threads_;
}

}  // namespace phobos::engine
