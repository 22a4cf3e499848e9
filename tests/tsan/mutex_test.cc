// SPDX-License-Identifier: Apache-2.0
//
// Every way in which our code waits for a lock of Abseil's or a timed one, with fields that are
// touched on both sides. Under ThreadSanitizer a report fails the test; elsewhere it says that the
// waits work.
#include "absl/synchronization/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace phobos {
namespace {

struct Shared {
  absl::Mutex mutex;
  absl::CondVar changed;
  int value ABSL_GUARDED_BY(mutex) = 0;
};

bool IsOne(Shared* shared) ABSL_NO_THREAD_SAFETY_ANALYSIS { return shared->value == 1; }

// Runs `wait` here and sets value to 1 in another thread.
template <typename Wait>
void ExpectOrdered(const Wait& wait) {
  for (int round = 0; round < 20; ++round) {
    Shared shared;
    int before = 0;  // written without the lock, before it is taken
    std::thread other([&] {
      before = 7;
      const absl::MutexLock lock(&shared.mutex);
      shared.value = 1;
      shared.changed.SignalAll();
    });
    wait(shared);
    EXPECT_EQ(before, 7);
    other.join();
  }
}

TEST(Mutex, Lock) {
  Shared shared;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const absl::MutexLock lock(&shared.mutex);
        ++shared.value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const absl::ReaderMutexLock lock(&shared.mutex);
  EXPECT_EQ(shared.value, 4000);
}

TEST(Mutex, TryLock) {
  ExpectOrdered([](Shared& shared) {
    for (bool is_one = false; !is_one;) {
      if (!shared.mutex.TryLock()) continue;
      is_one = shared.value == 1;
      shared.mutex.Unlock();
    }
  });
}

TEST(Mutex, Await) {
  ExpectOrdered([](Shared& shared) {
    const absl::MutexLock lock(&shared.mutex);
    shared.mutex.Await(absl::Condition(IsOne, &shared));
    EXPECT_EQ(shared.value, 1);
  });
}

TEST(Mutex, AwaitWithTimeout) {
  ExpectOrdered([](Shared& shared) {
    const absl::MutexLock lock(&shared.mutex);
    EXPECT_TRUE(shared.mutex.AwaitWithTimeout(absl::Condition(IsOne, &shared), absl::Seconds(60)));
  });
  Shared shared;
  const absl::MutexLock lock(&shared.mutex);
  EXPECT_FALSE(
      shared.mutex.AwaitWithTimeout(absl::Condition(IsOne, &shared), absl::Milliseconds(5)));
}

TEST(Mutex, LockWhen) {
  ExpectOrdered([](Shared& shared) {
    shared.mutex.LockWhen(absl::Condition(IsOne, &shared));
    EXPECT_EQ(shared.value, 1);
    shared.mutex.Unlock();
  });
}

TEST(TimedMutex, TryLockFor) {
  std::timed_mutex mutex;
  int value = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const std::unique_lock<std::timed_mutex> lock(mutex, std::chrono::minutes(1));
        ++value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(value, 400);
}

TEST(CondVar, Wait) {
  ExpectOrdered([](Shared& shared) {
    const absl::MutexLock lock(&shared.mutex);
    while (shared.value != 1) shared.changed.Wait(&shared.mutex);
  });
}

TEST(CondVar, WaitWithTimeout) {
  ExpectOrdered([](Shared& shared) {
    const absl::MutexLock lock(&shared.mutex);
    while (shared.value != 1) shared.changed.WaitWithTimeout(&shared.mutex, absl::Seconds(60));
  });
}

TEST(Notification, Wait) {
  for (int round = 0; round < 20; ++round) {
    absl::Notification done;
    int before = 0;
    std::thread other([&] {
      before = 7;
      done.Notify();
    });
    done.WaitForNotification();
    EXPECT_EQ(before, 7);
    other.join();
  }
}

TEST(Notification, Poll) {
  absl::Notification done;
  int before = 0;
  std::thread other([&] {
    before = 7;
    done.Notify();
  });
  while (!done.HasBeenNotified()) std::this_thread::yield();
  EXPECT_EQ(before, 7);
  other.join();
}

TEST(BlockingCounter, Wait) {
  absl::BlockingCounter left(3);
  int before[3] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      before[t] = 7;
      left.DecrementCount();
    });
  }
  left.Wait();
  for (const int value : before) EXPECT_EQ(value, 7);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace phobos
