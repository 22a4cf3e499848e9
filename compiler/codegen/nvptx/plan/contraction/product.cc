// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/contraction/product.h"

#include <algorithm>

#include "compiler/codegen/nvptx/plan/dealing.h"
#include "compiler/ir/shape.h"

namespace phobos::compiler::nvptx {
namespace {

using ir::DType;

// Sums that a thread holds in registers.
constexpr int64_t kMostSums = 256;
constexpr int64_t kBanksGranules = 8;
constexpr int kTuring = 75;

bool HasInstruction(const ir::Op& dot, DType dtype, int sm) {
  switch (dtype) {
    case DType::kF16:
      return sm >= kTuring;
    case DType::kBF16:
    case DType::kI8:
    case DType::kU8:
      return sm >= kAmpere;
    case DType::kF32:
      return sm >= kAmpere && dot.index == static_cast<int32_t>(ir::Precision::kTf32);
    default:
      return false;
  }
}

}  // namespace

std::optional<FragmentDealing> DealFragments(const ir::Op& dot, const ir::Type& a,
                                             const ir::Type& result, int64_t threads, int sm,
                                             bool has_whole_rows) {
  if (!HasInstruction(dot, a.dtype, sm)) return std::nullopt;
  const std::vector<int64_t> sides = ir::LongSides(result.shape);
  if (sides.size() != 2) return std::nullopt;
  const int64_t m = sides[0];
  const int64_t n = sides[1];
  if (m != result.shape[result.shape.size() - 2]) return std::nullopt;
  if (a.shape.back() * ir::ByteSize(a.dtype) % kStepBytes != 0) return std::nullopt;
  if (dot.axis == 0 && n * ir::ByteSize(a.dtype) % Swizzle::kGranuleBytes != 0) return std::nullopt;
  const int64_t warps = threads / kWarp;
  std::optional<FragmentDealing> best;
  int64_t best_reads = 0;
  for (int64_t rows = 1; rows <= warps; ++rows) {
    if (warps % rows != 0 || m % (rows * kFragmentRows) != 0) continue;
    const int64_t columns = warps / rows;
    if (n % (columns * kFragmentColumns) != 0) continue;
    // What a warp reads of both operands; of equals, the one with fewer rows of warps.
    int64_t reads = m / rows + n / columns;
    if (has_whole_rows && columns == 1) reads = 0;
    if (best.has_value() && reads >= best_reads) continue;
    best_reads = reads;
    best = FragmentDealing{rows, columns, m / (rows * kFragmentRows),
                           n / (columns * kFragmentColumns), sm < kAmpere};
  }
  if (best.has_value() && m * n > kMostSums * threads) return std::nullopt;
  return best;
}

Layout FragmentLayout(const FragmentDealing& d) {
  Layout layout;
  layout.vector = 2;
  layout.threads = d.warp_rows * d.warp_columns * kWarp;
  layout.elements =
      d.warp_rows * d.warp_columns * d.rows * d.columns * kFragmentRows * kFragmentColumns;
  layout.thread_digits = {{.count = 4, .stride = 2},
                          {.count = 8, .stride = 1, .is_row = true},
                          {.count = d.warp_columns, .stride = d.columns * kFragmentColumns},
                          {.count = d.warp_rows, .stride = d.rows * kFragmentRows, .is_row = true}};
  layout.turn_digits = {{.count = 2, .stride = kFragmentRows / 2, .is_row = true},
                        {.count = d.columns, .stride = kFragmentColumns},
                        {.count = d.rows, .stride = kFragmentRows, .is_row = true}};
  return layout;
}

bool IsOfFragments(const Layout& layout) {
  const std::vector<Digit>& threads = layout.thread_digits;
  const std::vector<Digit>& turns = layout.turn_digits;
  if (layout.vector != 2 || layout.has_copies || threads.size() != 4 || turns.size() != 3) {
    return false;
  }
  const FragmentDealing dealing{threads[3].count, threads[2].count, turns[2].count, turns[1].count};
  return layout == FragmentLayout(dealing);
}

std::optional<Layout> SumLayout(const ir::Type& result, int64_t threads, int64_t vector,
                                bool has_whole_rows) {
  constexpr int64_t kLaneColumns = 8;
  constexpr int64_t kLaneRows = kWarp / kLaneColumns;
  const std::vector<int64_t> sides = ir::LongSides(result.shape);
  if (sides.size() != 2 || sides[0] * sides[1] > kMostSums * threads) return std::nullopt;
  const int64_t warps = threads / kWarp;
  std::optional<Layout> best;
  int64_t best_reads = 0;
  for (int64_t rows = 1; rows <= warps; ++rows) {
    const int64_t columns = warps / rows;
    if (warps % rows != 0 || sides[0] % (rows * kLaneRows) != 0 ||
        sides[1] % (columns * kLaneColumns * vector) != 0) {
      continue;
    }
    int64_t reads = sides[0] / (rows * kLaneRows) + sides[1] / (columns * kLaneColumns);
    if (has_whole_rows && columns == 1) reads = 0;
    if (best.has_value() && reads >= best_reads) continue;
    best_reads = reads;
    best = Layout{.elements = sides[0] * sides[1], .threads = threads, .vector = vector};
    // Without whole rows, every other lane is in the next row: a read of 16 bytes is done for half
    // a warp at a time where lanes next to each other, or next but one, want the same.
    const int64_t pair = has_whole_rows ? 1 : 2;
    best->thread_digits = {{.count = kLaneColumns, .stride = vector},
                           {.count = kLaneRows / pair, .stride = pair, .is_row = true},
                           {.count = columns, .stride = kLaneColumns * vector},
                           {.count = rows, .stride = kLaneRows, .is_row = true}};
    if (pair > 1) {
      best->thread_digits.insert(best->thread_digits.begin(),
                                 {.count = pair, .stride = 1, .is_row = true});
    }
    best->turn_digits = {
        {.count = sides[1] / (columns * kLaneColumns * vector),
         .stride = columns * kLaneColumns * vector},
        {.count = sides[0] / (rows * kLaneRows), .stride = rows * kLaneRows, .is_row = true}};
  }
  return best;
}

std::optional<Swizzle> SwizzleOf(const ir::Type& operand) {
  const int64_t bytes = operand.shape.back() * ir::ByteSize(operand.dtype);
  if (bytes % Swizzle::kGranuleBytes != 0) return std::nullopt;
  Swizzle swizzle{.granules = bytes / Swizzle::kGranuleBytes};
  while (swizzle.width < kBanksGranules && swizzle.granules % (2 * swizzle.width) == 0) {
    swizzle.width *= 2;
  }
  swizzle.rows = kBanksGranules / swizzle.width;
  return swizzle;
}

}  // namespace phobos::compiler::nvptx
