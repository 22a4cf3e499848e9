// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/linear.h"

#include <gtest/gtest.h>

#include <limits>

namespace phobos::compiler::ir {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Linear, CombinesAndCancels) {
  const Linear a{3, {{1, 2}, {4, -1}}};
  const Linear b{1, {{0, 5}, {1, -2}}};
  EXPECT_EQ(Add(a, b), (Linear{4, {{0, 5}, {4, -1}}}));
  EXPECT_EQ(Subtract(a, a), Linear::Of(0));
  EXPECT_EQ(Scale(a, -2), (Linear{-6, {{1, -4}, {4, 2}}}));
  EXPECT_EQ(Scale(a, 0), Linear::Of(0));
  EXPECT_EQ(Combine(a, 2, b, 2), (Linear{8, {{0, 10}, {4, -2}}}));
}

TEST(Linear, GivesNothingBeyond64Bits) {
  EXPECT_EQ(Add(Linear::Of(kMax), Linear::Of(1)), std::nullopt);
  EXPECT_EQ(Scale(Linear{0, {{1, kMax}}}, 2), std::nullopt);
  EXPECT_EQ(Add(Linear{0, {{1, kMax}}}, Linear::Atom(1)), std::nullopt);
  EXPECT_EQ(Subtract(Linear::Of(-2), Linear::Of(kMax)), std::nullopt);
  EXPECT_EQ(Subtract(Linear::Of(-1), Linear::Of(kMax)), std::nullopt);
}

}  // namespace
}  // namespace phobos::compiler::ir
