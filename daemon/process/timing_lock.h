// SPDX-License-Identifier: Apache-2.0
//
// TimingLock: only one tune of this machine times kernels on a card at once, whichever daemon or
// user it belongs to, and whichever slice of the card it has. The kernel frees it when its holder
// dies. Held from the first check to the end of timing, never for compiling or waiting. Movable,
// one owner.
#ifndef PHOBOS_DAEMON_PROCESS_TIMING_LOCK_H_
#define PHOBOS_DAEMON_PROCESS_TIMING_LOCK_H_

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace phobos::process {

class TimingLock {
 public:
  // Waits for the lock of `card_uuid`. It is a flock on a file in `folder` (/run/phobos/locks)
  // where that folder exists, else the name of an abstract Unix socket. Where that one cannot be
  // had the lock is none and kind() says so. `on_busy` is called once, on this thread, when another
  // tune turns out to have the card (another slice's, or another daemon's). Cancelled: `stop`
  // became true meanwhile.
  static absl::StatusOr<TimingLock> Take(const std::string& folder, const std::string& card_uuid,
                                         const std::atomic<bool>& stop,
                                         const std::function<void()>& on_busy = nullptr);

  // "flock", "abstract" or "none".
  const std::string& kind() const { return kind_; }

 private:
  TimingLock(Fd fd, std::string kind) : fd_(std::move(fd)), kind_(std::move(kind)) {}
  Fd fd_;
  std::string kind_;
};

inline constexpr char kLockFolder[] = "/run/phobos/locks";

}  // namespace phobos::process

#endif  // PHOBOS_DAEMON_PROCESS_TIMING_LOCK_H_
