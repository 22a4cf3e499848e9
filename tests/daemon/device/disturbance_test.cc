// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cpu/disturbance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/time/clock.h"

namespace phobos::device {
namespace {

struct Case {
  int64_t waited_ns;
  int64_t stolen_ns;
  Work work;
  bool disturbed;
};

TEST(Disturbance, Table) {
  const Case cases[] = {
      {0, 0, {10'000'000, 2, 5}, false},
      // Noise: 2 % of 2 x 10 ms, and 5 x 20 us.
      {500'000, 0, {10'000'000, 2, 5}, false},
      {500'001, 0, {10'000'000, 2, 5}, true},
      {0, 10'000'000, {10'000'000, 2, 5}, true},
      {250'000, 250'001, {10'000'000, 2, 5}, true},
      // A long launch is not disturbed by what is small beside it.
      {10'000'000, 0, {1'000'000'000, 1, 1}, false},
      {30'000'000, 0, {1'000'000'000, 1, 1}, true},
  };
  for (const Case& c : cases) {
    const SchedulerTimes before = {1000, 2000};
    const SchedulerTimes after = {1000 + c.waited_ns, 2000 + c.stolen_ns};
    EXPECT_EQ(!Disturbance(before, after, c.work).empty(), c.disturbed) << c.waited_ns;
  }
  EXPECT_EQ(Disturbance({0, 0}, {3'000'000, 10'000'000}, {10'000'000, 2, 5}),
            "other work had the processors for 13.0 ms of 20.0 ms (10.0 ms by the hypervisor)");
}

// Many busy threads on few processors wait for each other, and that is seen.
TEST(Disturbance, WaitingIsCounted) {
  const SchedulerTimes before = ReadSchedulerTimes();
  const absl::Time end = absl::Now() + absl::Milliseconds(100);
  std::vector<std::thread> threads;
  const unsigned count = 3 * std::max(1u, std::thread::hardware_concurrency());
  SchedulerTimes after;
  for (unsigned i = 0; i < count; ++i) {
    threads.emplace_back([end, i, &after] {
      while (absl::Now() < end) {
      }
      if (i == 0) after = ReadSchedulerTimes();  // while all are there to be read
      absl::SleepFor(absl::Milliseconds(100));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(after.waited_ns - before.waited_ns, 20'000'000);
}

}  // namespace
}  // namespace phobos::device
