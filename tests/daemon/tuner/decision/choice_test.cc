// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/decision/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace phobos::tuner {
namespace {

Candidate Make(int variant, int64_t best, int64_t median = 0, int64_t iqr = 0) {
  return {variant, Statistics{best, median == 0 ? best : median, 0, iqr}};
}

struct Case {
  const char* what;
  std::vector<Candidate> candidates;
  int64_t resolution;
  int fastest;  // winner by FASTEST
  int first;    // winner by FIRST_WITHIN_NOISE
  std::vector<int> ties;
};

TEST(Choice, Table) {
  const Case cases[] = {
      {"one", {Make(4, 100)}, 1, 4, 4, {4}},
      {"clear", {Make(0, 1200), Make(1, 1000), Make(2, 1100)}, 1, 1, 1, {1}},
      {"equal times: the lower index", {Make(2, 1000), Make(5, 1000)}, 1, 2, 2, {2, 5}},
      {"0.5 % is a tie, more is none",
       {Make(0, 100501), Make(1, 100500), Make(2, 100000)},
       1,
       2,
       1,
       {1, 2}},
      {"scatter of the fastest widens",  // IQR 3 % of the median
       {Make(0, 1030), Make(1, 1031), Make(2, 1000, 1000, 30)},
       1,
       2,
       0,
       {0, 2}},
      {"scatter of a slower one does not", {Make(0, 1030, 1030, 500), Make(1, 1000)}, 1, 1, 1, {1}},
      {"the timer's step is a tie", {Make(0, 40), Make(3, 20)}, 20, 3, 0, {0, 3}},
      {"more than its step is none", {Make(0, 41), Make(3, 20)}, 20, 3, 3, {3}},
  };
  for (const Case& c : cases) {
    const Choice fastest = Choose(c.candidates, c.resolution, v1::TIE_BREAK_FASTEST);
    const Choice first = Choose(c.candidates, c.resolution, v1::TIE_BREAK_FIRST_WITHIN_NOISE);
    EXPECT_EQ(fastest.winner, c.fastest) << c.what;
    EXPECT_EQ(first.winner, c.first) << c.what;
    EXPECT_EQ(fastest.ties, c.ties) << c.what;
    EXPECT_EQ(first.ties, c.ties) << c.what;
    EXPECT_EQ(Choose(c.candidates, c.resolution, v1::TIE_BREAK_UNSPECIFIED).winner, c.fastest);
  }
}

}  // namespace
}  // namespace phobos::tuner
