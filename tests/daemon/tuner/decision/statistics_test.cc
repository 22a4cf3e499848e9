// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/decision/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace phobos::tuner {
namespace {

struct Case {
  std::vector<int64_t> samples;
  Statistics want;
};

TEST(Statistics, Table) {
  const Case cases[] = {
      {{7}, {7, 7, 0.0, 0}},
      {{10, 10, 10}, {10, 10, 0.0, 0}},
      {{4, 1, 3, 2}, {1, 2, 3.0, 2}},             // quartiles 1.75 and 3.25: 1.5, rounded
      {{50, 10, 40, 20, 30}, {10, 30, 4.0, 20}},  // quartiles 20 and 40
      {{100, 101}, {100, 100, 0.01, 1}},          // quartiles 100.25 and 100.75: 0.5, rounded
      {{1000, 100, 100, 100, 100}, {100, 100, 9.0, 0}},  // one outlier moves the spread alone
      {{int64_t{1} << 62, int64_t{1} << 62}, {int64_t{1} << 62, int64_t{1} << 62, 0.0, 0}},
  };
  for (const Case& c : cases) {
    const Statistics got = Summarize(c.samples);
    EXPECT_EQ(got.best_ns, c.want.best_ns);
    EXPECT_EQ(got.median_ns, c.want.median_ns);
    EXPECT_DOUBLE_EQ(got.spread, c.want.spread);
    EXPECT_EQ(got.interquartile_ns, c.want.interquartile_ns);
  }
}

}  // namespace
}  // namespace phobos::tuner
