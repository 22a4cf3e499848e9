// SPDX-License-Identifier: Apache-2.0
//
// LaunchMark: a page of memory that a worker process shares with its supervisor, in which it says
// what it is running since when. So the supervisor sees a launch that does not end, and knows which
// variant a death came from, without the worker's help. A launch may write anything anywhere in its
// process, so the reader trusts no value in it. Writer: the worker's one thread. Reader: any thread
// of the supervisor.
#ifndef PHOBOS_DAEMON_WORKER_LINK_LAUNCH_MARK_H_
#define PHOBOS_DAEMON_WORKER_LINK_LAUNCH_MARK_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace phobos::worker {

// The page's content.
struct LaunchMarkPage {
  std::atomic<int32_t> variant;     // the last that was begun; -1: none since Clear
  std::atomic<int64_t> started_ns;  // of the run under way, by MonotonicNs; 0: nothing is running
  std::atomic<int64_t> ended_ns;    // of the run before; 0: none since Clear
};

// CLOCK_MONOTONIC, the same in both processes.
int64_t MonotonicNs();

class LaunchMark {
 public:
  // A new page. The descriptor goes to the worker.
  static absl::StatusOr<LaunchMark> Create();
  // The worker's side; takes over the descriptor.
  static absl::StatusOr<LaunchMark> Attach(int fd);

  LaunchMark(LaunchMark&& other) noexcept;
  LaunchMark& operator=(LaunchMark&& other) noexcept;
  ~LaunchMark();

  // To send along; stays this object's.
  int fd() const { return fd_; }

  // The worker's: around everything that runs a variant's code.
  void Begin(int variant);
  void End();

  // The supervisor's. Clear: before each call.
  void Clear();
  // As in the page; of one call, and with no promise that they make sense.
  int variant() const { return page_->variant.load(); }
  int64_t started_ns() const { return page_->started_ns.load(); }
  int64_t ended_ns() const { return page_->ended_ns.load(); }

 private:
  LaunchMark(int fd, LaunchMarkPage* page) : fd_(fd), page_(page) {}
  int fd_;
  LaunchMarkPage* page_;
};

// Runs variant code between construction and destruction.
class ScopedMark {
 public:
  ScopedMark(LaunchMark& mark, int variant) : mark_(mark) { mark_.Begin(variant); }
  ~ScopedMark() { mark_.End(); }
  ScopedMark(const ScopedMark&) = delete;
  ScopedMark& operator=(const ScopedMark&) = delete;

 private:
  LaunchMark& mark_;
};

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_LINK_LAUNCH_MARK_H_
