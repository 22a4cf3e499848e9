// SPDX-License-Identifier: Apache-2.0
//
// TaskPool runs functions on threads of its own, for work that may block and must not hold up the
// caller. Threads are started when needed, up to a limit, and end after a few idle seconds; tasks
// beyond the limit wait in order. Any thread.
#ifndef PHOBOS_DAEMON_ENGINE_TASK_POOL_H_
#define PHOBOS_DAEMON_ENGINE_TASK_POOL_H_

#include <deque>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace phobos::engine {

class TaskPool {
 public:
  explicit TaskPool(int most_threads);
  // Waits for the tasks that were added.
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  void Add(std::function<void()> task);

  // Waits until nothing is left to do.
  void Finish();

 private:
  void Work();
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tasks_.empty() && waiting_ == threads_;
  }
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_ending_ || !tasks_.empty();
  }
  bool HasNoThreads() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return threads_ == 0; }

  const int most_threads_;
  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  int threads_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // of them, for a task
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_TASK_POOL_H_
