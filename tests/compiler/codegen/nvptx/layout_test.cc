// SPDX-License-Identifier: Apache-2.0
//
// Layouts: how wide vectors are, and that each element has one thread.
#include "compiler/codegen/nvptx/plan/layout.h"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "compiler/codegen/nvptx/plan/contraction/product.h"
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

// Row and column of an element of a layout in blocks.
std::pair<int64_t, int64_t> ElementOf(const Layout& layout, int64_t thread, int64_t turn) {
  int64_t row = 0;
  int64_t column = 0;
  auto add = [&](int64_t number, const std::vector<Digit>& digits) {
    for (const Digit& digit : digits) {
      (digit.is_row ? row : column) += number % digit.count * digit.stride;
      number /= digit.count;
    }
  };
  add(thread, layout.thread_digits);
  add(turn, layout.turn_digits);
  return {row, column};
}

TEST(LayoutTest, InBlocksEachElementHasOneThread) {
  const ir::Type result{ir::DType::kF32, {64, 96}};
  const ir::Type a{ir::DType::kF16, {64, 32}};
  const ir::Op dot{.opcode = ir::Opcode::kDot};
  for (const int64_t threads : {32, 64, 128}) {
    for (const bool has_whole_rows : {false, true}) {
      const auto fragments = DealFragments(dot, a, result, threads, 80, has_whole_rows);
      const auto sums = SumLayout(result, threads, 4, has_whole_rows);
      ASSERT_TRUE(fragments.has_value() && sums.has_value());
      EXPECT_TRUE(!has_whole_rows || fragments->warp_columns == 1);
      for (const Layout& layout : {FragmentLayout(*fragments), *sums}) {
        std::set<std::pair<int64_t, int64_t>> found;
        for (int64_t thread = 0; thread < threads; ++thread) {
          for (int64_t turn = 0; turn < layout.turns(); ++turn) {
            found.insert(ElementOf(layout, thread, turn));
          }
        }
        EXPECT_EQ(static_cast<int64_t>(found.size()) * layout.vector, result.elements());
        EXPECT_EQ(found.rbegin()->first, 63);
        EXPECT_EQ(layout.rest(), 0);
      }
    }
  }
  EXPECT_FALSE(DealFragments(dot, a, {ir::DType::kF32, {8, 96}}, 32, 80, false).has_value());
  EXPECT_FALSE(DealFragments(dot, a, {ir::DType::kF32, {64, 96}}, 224, 80, false).has_value());
}

TEST(LayoutTest, SwizzledGranulesOfRowsAndColumnsMeetInNoBanks) {
  for (const int64_t elements : {8, 16, 32, 64, 128, 24}) {
    const auto swizzle = SwizzleOf({ir::DType::kF16, {64, elements}});
    ASSERT_TRUE(swizzle.has_value());
    EXPECT_EQ(swizzle->granules, elements / 8);
    // Eight rows of one column of granules, where a row is a power of two of them.
    std::set<int64_t> banks;
    for (int64_t row = 0; row < 8; ++row) {
      banks.insert((row * swizzle->granules + (0 ^ (row / swizzle->rows % swizzle->width))) % 8);
    }
    EXPECT_EQ(banks.size(), 8u) << elements;
  }
  EXPECT_FALSE(SwizzleOf({ir::DType::kF16, {64, 12}}).has_value());
}

}  // namespace
}  // namespace phobos::compiler::nvptx
