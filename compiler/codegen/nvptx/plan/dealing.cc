// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/dealing.h"

#include <bit>
#include <cstddef>

namespace phobos::compiler::nvptx {
namespace {

// Partials that meet in shared memory; where there are more, the reduction is done apart.
constexpr int64_t kMostPartialBytes = 16 << 10;
// A side that is shorter is scanned in one piece.
constexpr int64_t kLeastScan = 16;

bool IsPowerOfTwo(int64_t number) { return std::has_single_bit(static_cast<uint64_t>(number)); }

// How many of `partials` neighbouring groups of `group` threads meet within warps.
int64_t FoldedOf(int64_t partials, int64_t group) {
  if (group > kWarp || !IsPowerOfTwo(group)) return 1;
  const int64_t in_warp = kWarp / group;
  if (partials < in_warp) return IsPowerOfTwo(partials) ? partials : 1;
  return partials % in_warp == 0 ? in_warp : 1;
}

// Along the innermost long side: threads next to each other have elements of one row.
bool DealRows(const Layout& layout, ReductionDealing* dealing) {
  const Sides& sides = dealing->sides;
  dealing->over_lanes = true;
  if (sides.outer == 1) {
    dealing->turns = layout.turns();
    dealing->partials = layout.threads;
  } else if (sides.length % layout.turn() == 0) {
    dealing->parts = sides.outer;
    dealing->turns = sides.length / layout.turn();
    dealing->partials = layout.threads;
  } else if (layout.turn() % sides.length == 0) {
    dealing->parts = layout.turns();
    dealing->partials = sides.length / layout.vector;
  } else {
    return false;
  }
  return true;
}

// Along the rows of blocks: neighbouring threads have a row's vectors, turn after turn.
bool DealBlockRows(const Layout& layout, ReductionDealing* dealing) {
  if (dealing->sides.inner != 1) return false;
  const Digit& lane = layout.thread_digits.front();
  for (size_t i = 1; i < layout.thread_digits.size(); ++i) {
    const Digit& digit = layout.thread_digits[i];
    if (!digit.is_row && digit.count > 1) return false;
  }
  dealing->over_lanes = true;
  dealing->partials = lane.count;
  bool is_before = true;  // rows that alternate within the turns of a row's vectors
  for (const Digit& digit : layout.turn_digits) {
    if (!digit.is_row) {
      dealing->turns = digit.count;
      is_before = false;
      continue;
    }
    dealing->parts *= digit.count;
    if (is_before) dealing->stride *= digit.count;
  }
  return true;
}

// Along another side: lanes are of different results.
bool DealColumns(const Layout& layout, ReductionDealing* dealing) {
  const Sides& sides = dealing->sides;
  if (sides.inner % layout.turn() == 0) {
    dealing->stride = sides.inner / layout.turn();
    dealing->parts = sides.outer * dealing->stride;
    dealing->turns = sides.length;
    return true;
  }
  if (layout.turn() % sides.inner != 0) return false;
  const int64_t rows = layout.turn() / sides.inner;  // of a turn
  dealing->group = sides.inner / layout.vector;
  if (sides.outer == 1) {
    dealing->turns = layout.turns();
    dealing->partials = rows;
  } else if (sides.length % rows == 0) {
    dealing->parts = sides.outer;
    dealing->turns = sides.length / rows;
    dealing->partials = rows;
  } else if (rows % sides.length == 0) {
    dealing->parts = layout.turns();
    dealing->partials = sides.length;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Sides SidesOf(const std::vector<int64_t>& shape, int axis) {
  Sides sides;
  for (size_t side = 0; side < shape.size(); ++side) {
    const auto number = static_cast<int>(side);
    (number < axis ? sides.outer : number == axis ? sides.length : sides.inner) *= shape[side];
  }
  return sides;
}

ReductionDealing DealReduction(const std::vector<int64_t>& shape, int axis, const Layout& layout,
                               int64_t partial_bytes) {
  ReductionDealing dealing{.sides = SidesOf(shape, axis)};
  const Sides& sides = dealing.sides;
  bool fits = sides.length > 1;
  if (fits && layout.is_in_blocks()) {
    fits = DealBlockRows(layout, &dealing);
  } else if (fits) {
    fits = sides.inner == 1 ? DealRows(layout, &dealing) : DealColumns(layout, &dealing);
  }
  if (fits) {
    dealing.folded = FoldedOf(dealing.partials, dealing.group);
    dealing.order = dealing.partials * (dealing.over_lanes ? layout.vector : 1);
    const int64_t left = dealing.left();
    if (left == 1 || left * sides.results() * partial_bytes <= kMostPartialBytes) return dealing;
  }
  ReductionDealing apart{.sides = sides, .is_apart = true};
  if (sides.inner == 1 && sides.length > 1) {
    apart.over_lanes = true;
    apart.order = apart.partials = apart.folded = kWarp;
  }
  return apart;
}

ScanDealing DealScan(const std::vector<int64_t>& shape, int axis, int64_t threads) {
  ScanDealing dealing{.sides = SidesOf(shape, axis)};
  const int64_t length = dealing.sides.length;
  dealing.piece = length;
  if (length < kLeastScan || dealing.sides.results() >= threads) return dealing;
  // About as many pieces as a piece has elements: both are summed one after the other.
  dealing.piece = int64_t{1} << (std::bit_width(static_cast<uint64_t>(length)) / 2);
  dealing.pieces = (length + dealing.piece - 1) / dealing.piece;
  return dealing;
}

}  // namespace phobos::compiler::nvptx
