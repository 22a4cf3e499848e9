// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/fake_driver/card/stream.h"

#include <time.h>

#include <utility>

namespace phobos::fake {

int64_t NowNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Stream::Stream() : thread_([this] { Serve(); }) {}

Stream::~Stream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ending_.store(true);
    queue_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::Add(std::function<void()> work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

bool Stream::IsIdle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queue_.empty() && !is_busy_;
}

void Stream::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !is_busy_; });
}

void Stream::Serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !queue_.empty() || is_ending_.load(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    is_busy_ = true;
    lock.unlock();
    work();
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace phobos::fake
