// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/join/device_queue.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace phobos::engine {
namespace {

constexpr absl::Duration kRestEvery = absl::Seconds(5);

}  // namespace

DeviceQueue::DeviceQueue(std::function<void(const JobPtr&)> run, std::function<bool()> rest)
    : run_(std::move(run)), rest_(std::move(rest)), thread_([this] { Loop(); }) {}

DeviceQueue::~DeviceQueue() {
  {
    const absl::MutexLock lock(&mutex_);
    is_ending_ = true;
  }
  thread_.join();
}

void DeviceQueue::Push(JobPtr job) {
  const absl::MutexLock lock(&mutex_);
  jobs_.push_back(std::move(job));
}

void DeviceQueue::PushWork(std::function<void()> work) {
  const absl::MutexLock lock(&mutex_);
  work_.push_back(std::move(work));
}

DeviceQueue::Place DeviceQueue::PlaceOf(const Job& job, absl::Time now) const {
  const absl::MutexLock lock(&mutex_);
  Place place;
  place.typical = typical_;
  if (running_.get() == &job) return place;
  if (running_ != nullptr) {
    place.wait = std::max(absl::ZeroDuration(), typical_ - (now - began_));
  }
  for (const JobPtr& other : jobs_) {
    if (other->stop()) continue;  // it will be skipped
    ++place.position;
    if (other.get() == &job) return place;
    place.wait += typical_;
  }
  place.position = 0;
  return place;
}

JobPtr DeviceQueue::Next() {
  bool is_rest_due = rest_();
  while (true) {
    std::function<void()> work;
    {
      const absl::MutexLock lock(&mutex_);
      const absl::Condition news(this, &DeviceQueue::HasNews);
      if (is_rest_due) {
        mutex_.AwaitWithTimeout(news, kRestEvery);
      } else {
        mutex_.Await(news);
      }
      if (is_ending_) return nullptr;
      if (!work_.empty()) {
        work = std::move(work_.front());
        work_.pop_front();
      } else if (!jobs_.empty()) {
        running_ = std::move(jobs_.front());
        jobs_.pop_front();
        began_ = absl::Now();
        return running_;
      }
    }
    if (work) work();
    is_rest_due = rest_();
  }
}

void DeviceQueue::Loop() {
  while (JobPtr job = Next()) {
    run_(job);
    const bool is_whole = !job->stop();
    const absl::MutexLock lock(&mutex_);
    const absl::Duration took = absl::Now() - began_;
    if (is_whole) typical_ = typical_ == absl::ZeroDuration() ? took : (3 * typical_ + took) / 4;
    running_ = nullptr;
  }
}

}  // namespace phobos::engine
