// SPDX-License-Identifier: Apache-2.0
//
// Nursery: a thread that starts child processes and lives as long as this object, because the
// system kills a child when the thread that started it ends, and the threads that ask for workers
// come and go. One call at a time, from any thread.
#ifndef PHOBOS_DAEMON_WORKER_LINK_NURSERY_H_
#define PHOBOS_DAEMON_WORKER_LINK_NURSERY_H_

#include <sys/types.h>

#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/child_process.h"

namespace phobos::worker {

class Nursery {
 public:
  Nursery() = default;
  ~Nursery();
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  // StartChild on the thread, which the first call starts. The children die with this object.
  absl::StatusOr<pid_t> Start(const ChildOptions& options);

 private:
  // Body of the thread: waits for something wanted, starts it, until told to stop.
  void Serve();

  absl::Mutex mutex_;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
  // Set by a call, taken by the thread; then the other way round.
  const ChildOptions* wanted_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<absl::StatusOr<pid_t>> started_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_LINK_NURSERY_H_
