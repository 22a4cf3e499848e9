// SPDX-License-Identifier: Apache-2.0
//
// Layouts: how wide vectors are, and that each element has one thread.
#include "compiler/codegen/nvptx/plan/layout.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace phobos::compiler::nvptx {
namespace {

TEST(LayoutTest, VectorsAreSixteenBytesOfTheWidestElement) {
  EXPECT_EQ(LayoutOf({4096}, 256, 4, false).vector, 4);
  EXPECT_EQ(LayoutOf({4096}, 256, 8, false).vector, 2);
  EXPECT_EQ(LayoutOf({4096}, 256, 2, false).vector, 8);
  EXPECT_EQ(LayoutOf({4096}, 256, 1, false).vector, 16);
}

TEST(LayoutTest, VectorsDivideTheLastLongSide) {
  EXPECT_EQ(LayoutOf({1000}, 256, 1, false).vector, 8);
  EXPECT_EQ(LayoutOf({7}, 32, 4, false).vector, 1);
  EXPECT_EQ(LayoutOf({64, 6}, 32, 4, false).vector, 2);
  EXPECT_EQ(LayoutOf({64, 1}, 32, 4, false).vector, 4);
  EXPECT_EQ(LayoutOf({1, 1}, 32, 4, false).vector, 1);
}

TEST(LayoutTest, SmallTilesUseFewerThreadsOrNarrowerVectors) {
  EXPECT_EQ(LayoutOf({256}, 256, 4, false).vector, 4);
  EXPECT_EQ(LayoutOf({256}, 256, 4, true).vector, 1);
  EXPECT_EQ(LayoutOf({512}, 256, 4, true).vector, 2);
}

TEST(LayoutTest, TurnsCoverAllElements) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{1}, {4096}, {1000}, {3, 100}, {5, 7, 2}}) {
    for (int64_t threads : {32, 96, 256}) {
      const Layout layout = LayoutOf(shape, threads, 4, false);
      EXPECT_EQ(layout.whole_turns() * layout.turn() + layout.rest(), layout.elements);
      EXPECT_EQ(layout.rest() % layout.vector, 0);
      EXPECT_GE(layout.thread_elements() * threads, layout.elements);
    }
  }
}

}  // namespace
}  // namespace phobos::compiler::nvptx
