// SPDX-License-Identifier: Apache-2.0
//
// Patience: how long a call of the stub waits, and whom it asks meanwhile. A value.
#ifndef PHOBOS_CLIENT_STUB_PATIENCE_H_
#define PHOBOS_CLIENT_STUB_PATIENCE_H_

#include <algorithm>
#include <chrono>
#include <functional>

namespace phobos::stub {

using Clock = std::chrono::steady_clock;

// Between two questions.
constexpr std::chrono::milliseconds kTick(200);

struct Patience {
  Clock::time_point deadline = Clock::time_point::max();
  // Called at least every 200 ms while waiting, and when a signal arrived. True: give up with
  // Cancelled. May be empty.
  std::function<bool()> interrupted;

  bool IsInterrupted() const { return interrupted && interrupted(); }
  // The same, but until `limit` from now at most.
  Patience AtMost(std::chrono::milliseconds limit) const {
    return {std::min(deadline, Clock::now() + limit), interrupted};
  }
};

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_PATIENCE_H_
