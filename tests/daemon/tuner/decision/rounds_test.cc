// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/decision/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace phobos::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Rounds, RotatedOrderMovesTheFirst) {
  EXPECT_THAT(RotatedOrder({3, 5, 8}, 0), ElementsAre(3, 5, 8));
  EXPECT_THAT(RotatedOrder({3, 5, 8}, 1), ElementsAre(5, 8, 3));
  EXPECT_THAT(RotatedOrder({3, 5, 8}, 2), ElementsAre(8, 3, 5));
  EXPECT_THAT(RotatedOrder({3, 5, 8}, 3), ElementsAre(3, 5, 8));
  EXPECT_THAT(RotatedOrder({}, 2), ElementsAre());
}

TEST(Rounds, EachLeadsEquallyOften) {
  std::map<int, int> led;
  for (int round = 0; round < 20; ++round) ++led[RotatedOrder({0, 1, 2, 3, 4}, round)[0]];
  for (const auto& [variant, times] : led) EXPECT_EQ(times, 4) << variant;
}

TEST(Rounds, CleanOnesCount) {
  RoundLog log;
  log.Add({0, 1}, {10, 20}, false);
  log.Add({1, 0}, {90, 91}, true);
  log.Add({1, 0}, {21, 11}, false);
  log.AddBroken();
  EXPECT_EQ(log.clean(), 2);
  EXPECT_EQ(log.taken(), 4);
  const RoundLog::Selection selection = log.Select(2);
  EXPECT_THAT(selection.samples_ns,
              ElementsAre(Pair(0, ElementsAre(10, 11)), Pair(1, ElementsAre(20, 21))));
  EXPECT_EQ(selection.rounds, 2);
  EXPECT_FALSE(selection.has_disturbed);
}

// Where clean ones are missing, disturbed ones stand in and say so, in the order taken; void
// samples never count.
TEST(Rounds, FillsUpWithDisturbedThenVoid) {
  RoundLog log;
  log.Add({0, 1}, {1, 2}, true);
  log.Add({0, 1}, {3, 4}, false);
  log.Add({0, 1}, {0, 6}, false);
  log.Add({0, 1}, {7, -8}, true);
  RoundLog::Selection selection = log.Select(2);
  EXPECT_THAT(selection.samples_ns,
              ElementsAre(Pair(0, ElementsAre(1, 3)), Pair(1, ElementsAre(2, 4))));
  EXPECT_TRUE(selection.has_disturbed);
  selection = log.Select(4);
  EXPECT_EQ(selection.rounds, 4);
  EXPECT_THAT(selection.samples_ns,
              ElementsAre(Pair(0, ElementsAre(1, 3, 7)), Pair(1, ElementsAre(2, 4, 6))));
}

}  // namespace
}  // namespace phobos::tuner
