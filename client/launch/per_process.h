// SPDX-License-Identifier: Apache-2.0
//
// PerProcess holds a value that belongs to the process that made it: locks, threads, sockets. After
// fork() the child gets a new value at its first Get and never touches the parent's, whose locks
// may be held by threads that the child does not have; that one is left alone, not destroyed. Any
// thread.
#ifndef PHOBOS_CLIENT_LAUNCH_PER_PROCESS_H_
#define PHOBOS_CLIENT_LAUNCH_PER_PROCESS_H_

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace phobos::launch {

template <typename T>
class PerProcess {
 public:
  // `make` is called by the first Get of each process, perhaps by two threads at once (then one
  // value is dropped).
  explicit PerProcess(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {}

  ~PerProcess() {
    const Owned* owned = owned_.load();
    if (owned != nullptr && owned->process == getpid()) delete owned;
  }

  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  // This process's value; lives as long as this object.
  T& Get() {
    const pid_t process = getpid();
    Owned* seen = owned_.load(std::memory_order_acquire);
    while (seen == nullptr || seen->process != process) {
      auto made = std::make_unique<Owned>(Owned{process, make_()});
      if (owned_.compare_exchange_strong(seen, made.get(), std::memory_order_acq_rel)) {
        seen = made.release();
      }
    }
    return *seen->value;
  }

 private:
  struct Owned {
    pid_t process;
    std::unique_ptr<T> value;
  };
  const std::function<std::unique_ptr<T>()> make_;
  std::atomic<Owned*> owned_ = nullptr;
};

}  // namespace phobos::launch

#endif  // PHOBOS_CLIENT_LAUNCH_PER_PROCESS_H_
