// SPDX-License-Identifier: Apache-2.0
//
// A stream of the stand-in card: a thread that does what is queued, in order. And the card's own
// clock, which event time stamps are read from: it goes on by what each operation took, or by what
// the script says it took. Stream: any thread; Clock: any thread.
#ifndef PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_STREAM_H_
#define PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_STREAM_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace phobos::fake {

// CLOCK_MONOTONIC.
int64_t NowNs();

class Stream {
 public:
  Stream();
  ~Stream();  // drops what is queued and not begun
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void Add(std::function<void()> work);
  bool IsIdle();
  void Wait();
  // For work that waits for something itself.
  bool is_ending() const { return is_ending_.load(); }

  std::atomic<int> capture = 0;  // a CaptureStatus

 private:
  void Serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool is_busy_ = false;
  std::atomic<bool> is_ending_ = false;
  std::thread thread_;
};

// Time on the card, in ns.
class Clock {
 public:
  int64_t now() const { return now_.load(); }
  void Advance(int64_t ns) { now_.fetch_add(ns); }

 private:
  std::atomic<int64_t> now_ = 1;
};

}  // namespace phobos::fake

#endif  // PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_STREAM_H_
