// SPDX-License-Identifier: Apache-2.0
//
// DeviceQueue runs jobs on one device, first come, first served, on a thread of its own: the only
// thread that talks to the device's worker. Methods: any thread.
#ifndef PHOBOS_DAEMON_ENGINE_JOIN_DEVICE_QUEUE_H_
#define PHOBOS_DAEMON_ENGINE_JOIN_DEVICE_QUEUE_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/engine/join/job.h"

namespace phobos::engine {

using JobPtr = std::shared_ptr<Job>;

class DeviceQueue {
 public:
  // `run` does a job; `rest` is called after a job and then every few seconds for as long as it
  // returns true (there is something to look after). Both on the queue's thread.
  DeviceQueue(std::function<void(const JobPtr&)> run, std::function<bool()> rest);
  // Waits for the job that runs; those that wait are dropped. The owner stops jobs first.
  ~DeviceQueue();
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  void Push(JobPtr job);
  // Something short for the worker that is no job: done before the next one.
  void PushWork(std::function<void()> work);

  struct Place {
    int position = 0;        // 0: runs, or is not here; 1: next
    absl::Duration wait;     // until it starts, by what jobs took so far; zero: not known
    absl::Duration typical;  // of a run, by what jobs took so far; zero: not known
  };
  Place PlaceOf(const Job& job, absl::Time now) const;

 private:
  void Loop();
  JobPtr Next();  // null: end
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_ending_ || !jobs_.empty() || !work_.empty();
  }

  const std::function<void(const JobPtr&)> run_;
  const std::function<bool()> rest_;
  mutable absl::Mutex mutex_;
  std::deque<JobPtr> jobs_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  JobPtr running_ ABSL_GUARDED_BY(mutex_);
  absl::Time began_ ABSL_GUARDED_BY(mutex_);
  absl::Duration typical_ ABSL_GUARDED_BY(mutex_);  // a moving average
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_JOIN_DEVICE_QUEUE_H_
