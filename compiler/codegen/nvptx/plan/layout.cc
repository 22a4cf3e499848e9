// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/layout.h"

namespace phobos::compiler::nvptx {
namespace {

constexpr int64_t kVectorBytes = 16;

}  // namespace

std::vector<int64_t> LongSides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> sides;
  for (int64_t side : shape) {
    if (side > 1) sides.push_back(side);
  }
  return sides;
}

Layout LayoutOf(const std::vector<int64_t>& shape, int64_t threads, int64_t widest_bytes,
                bool spread) {
  const std::vector<int64_t> sides = LongSides(shape);
  Layout layout{.elements = 1, .threads = threads, .vector = kVectorBytes / widest_bytes};
  for (int64_t side : sides) layout.elements *= side;
  const int64_t row = sides.empty() ? 1 : sides.back();
  while (row % layout.vector != 0) layout.vector /= 2;
  while (spread && layout.vector > 1 && layout.elements < layout.turn()) layout.vector /= 2;
  return layout;
}

}  // namespace phobos::compiler::nvptx
