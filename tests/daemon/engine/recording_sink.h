// SPDX-License-Identifier: Apache-2.0
//
// A sink that remembers what it was told. For tests only.
#ifndef PHOBOS_TESTS_DAEMON_ENGINE_RECORDING_SINK_H_
#define PHOBOS_TESTS_DAEMON_ENGINE_RECORDING_SINK_H_

#include <gtest/gtest.h>

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/engine/join/job.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"

namespace phobos::engine {

// Remembers its events. Any thread.
class RecordingSink : public Sink {
 public:
  void Send(const tuner::v1::TuneEvent& event) override {
    const absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(closed_) << "an event after the end: " << event.ShortDebugString();
    events_.push_back(event);
  }
  void Close(const absl::Status& status) override {
    const absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(closed_) << "a second end: " << status;
    closed_ = true;
    status_ = status;
  }

  std::vector<tuner::v1::TuneEvent> events() const {
    const absl::MutexLock lock(&mutex_);
    return events_;
  }
  bool is_closed() const {
    const absl::MutexLock lock(&mutex_);
    return closed_;
  }
  absl::Status status() const {
    const absl::MutexLock lock(&mutex_);
    return status_;
  }

  // The last event of that kind; blocks until there is one, or until the end. An empty event: it
  // ended without.
  tuner::v1::TuneEvent Wait(tuner::v1::TuneEvent::EventCase kind) {
    const absl::MutexLock lock(&mutex_);
    tuner::v1::TuneEvent found;
    const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      for (const tuner::v1::TuneEvent& event : events_) {
        if (event.event_case() == kind) found = event;
      }
      return closed_ || found.event_case() == kind;
    };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&is_there), absl::Seconds(20)));
    return found;
  }
  absl::Status WaitForEnd() {
    const absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&closed_), absl::Seconds(20)));
    return status_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<tuner::v1::TuneEvent> events_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phobos::engine

#endif  // PHOBOS_TESTS_DAEMON_ENGINE_RECORDING_SINK_H_
