// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace phobos {
namespace {

constexpr int64_t kMostThreads = 8;  // the caller's among them
constexpr int64_t kCopyGrain = int64_t{1} << 20;

struct Ranges {
  const int64_t size;
  const int64_t grain;
  const std::function<void(int64_t begin, int64_t end)>& work;
  std::atomic<int64_t> next = 0;
};

void* TakeRanges(void* argument) {
  auto& ranges = *static_cast<Ranges*>(argument);
  while (true) {
    const int64_t begin = ranges.next.fetch_add(ranges.grain);
    if (begin >= ranges.size) return nullptr;
    ranges.work(begin, std::min(ranges.size, begin + ranges.grain));
  }
}

// What the program wants to handle on a thread of its own; a fault of the thread itself stays its
// own, and the program's handler, if it has one, sees it.
sigset_t OtherThreadsSignals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    sigdelset(&signals, own);
  }
  return signals;
}

}  // namespace

std::vector<pthread_t> StartThreads(int64_t wanted, void* (*work)(void*), void* argument) {
  const auto processors = static_cast<int64_t>(std::thread::hardware_concurrency());
  const auto count = static_cast<size_t>(
      std::clamp<int64_t>(wanted, 0, std::clamp<int64_t>(processors, 1, kMostThreads) - 1));
  std::vector<pthread_t> threads;
  const sigset_t blocked = OtherThreadsSignals();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  while (threads.size() < count) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, work, argument) != 0) break;
    threads.push_back(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return threads;
}

void ForRanges(int64_t size, int64_t grain,
               const std::function<void(int64_t begin, int64_t end)>& work) {
  if (size <= 0) return;
  Ranges ranges = {size, grain, work};
  const std::vector<pthread_t> threads = StartThreads((size - 1) / grain, TakeRanges, &ranges);
  TakeRanges(&ranges);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

void CopyBytes(std::byte* to, const std::byte* from, int64_t bytes) {
  ForRanges(bytes, kCopyGrain, [=](int64_t begin, int64_t end) {
    memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace phobos
