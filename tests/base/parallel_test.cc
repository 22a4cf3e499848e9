// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace phobos {
namespace {

TEST(ForRanges, TakesEveryElementOnce) {
  for (const int64_t size : {0, 1, 9, 10, 11, 1000}) {
    std::vector<std::atomic<int>> taken(static_cast<size_t>(size));
    ForRanges(size, 10, [&](int64_t begin, int64_t end) {
      EXPECT_TRUE(begin % 10 == 0 && begin < end && end - begin <= 10) << begin << " " << end;
      for (int64_t i = begin; i < end; ++i) ++taken[static_cast<size_t>(i)];
    });
    EXPECT_TRUE(std::all_of(taken.begin(), taken.end(), [](int times) { return times == 1; }))
        << size;
  }
}

TEST(StartThreads, TakeNoSignalsButTheirOwnFaults) {
  sigset_t blocked;
  sigemptyset(&blocked);
  const auto look = [](void* argument) -> void* {
    pthread_sigmask(SIG_BLOCK, nullptr, static_cast<sigset_t*>(argument));
    return nullptr;
  };
  const std::vector<pthread_t> threads = StartThreads(1, look, &blocked);
  if (threads.empty()) GTEST_SKIP() << "one processor";
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGALRM, SIGUSR1}) {
    EXPECT_EQ(sigismember(&blocked, signal), 1) << signal;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    EXPECT_EQ(sigismember(&blocked, signal), 0) << signal;
  }
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGINT), 0) << "the caller's own are as before";
}

TEST(CopyBytes, CopiesAllAndNoMore) {
  constexpr size_t kMiB = size_t{1} << 20;
  for (const size_t bytes : {size_t{0}, size_t{1}, kMiB, 3 * kMiB, 13 * kMiB + 5}) {
    std::vector<std::byte> from(bytes), to(bytes + 1, std::byte{7});
    for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 31 + (i >> 12));
    CopyBytes(to.data(), from.data(), static_cast<int64_t>(bytes));
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin())) << bytes;
    EXPECT_EQ(to[bytes], std::byte{7});
  }
}

}  // namespace
}  // namespace phobos
