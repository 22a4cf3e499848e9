// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/layout.h"

#include <algorithm>

#include "compiler/ir/shape.h"

namespace phobos::compiler::nvptx {
namespace {

constexpr int64_t kVectorBytes = 16;

}  // namespace

Offset Layout::OffsetOf(int64_t turn) const {
  Offset offset;
  for (const Digit& digit : turn_digits) {
    (digit.is_row ? offset.row : offset.column) += turn % digit.count * digit.stride;
    turn /= digit.count;
  }
  return offset;
}

Layout LayoutOf(const std::vector<int64_t>& shape, int64_t threads, int64_t widest_bytes,
                bool spread, int64_t most) {
  const std::vector<int64_t> sides = ir::LongSides(shape);
  Layout layout{
      .elements = 1, .threads = threads, .vector = std::min(kVectorBytes / widest_bytes, most)};
  for (int64_t side : sides) layout.elements *= side;
  const int64_t row = sides.empty() ? 1 : sides.back();
  while (row % layout.vector != 0) layout.vector /= 2;
  while (spread && layout.vector > 1 && layout.elements < layout.turn()) layout.vector /= 2;
  return layout;
}

Layout RowsOf(const Layout& blocks) {
  Layout rows{.elements = blocks.threads, .threads = blocks.threads, .has_copies = true};
  for (const Digit& digit : blocks.thread_digits) {
    rows.thread_digits.push_back({digit.count, digit.is_row ? digit.stride : 0});
  }
  for (const Digit& digit : blocks.turn_digits) {
    if (!digit.is_row) continue;
    rows.turn_digits.push_back({digit.count, digit.stride});
    rows.elements *= digit.count;
  }
  return rows;
}

}  // namespace phobos::compiler::nvptx
