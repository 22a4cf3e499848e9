// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/shape.h"

#include <algorithm>

namespace phobos::compiler::ir {

std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (left != right && left != 1 && right != 1) return std::nullopt;
    result[result.size() - 1 - i] = left == 1 ? right : left;
  }
  return result;
}

std::optional<Shape> SubscriptShape(const std::vector<Subscript>& subscripts,
                                    const std::function<Shape(ValueId)>& shape_of) {
  Shape result;
  Shape gathered;
  std::optional<size_t> gather_at;
  for (const Subscript& subscript : subscripts) {
    switch (subscript.kind) {
      case Subscript::Kind::kElement:
        break;
      case Subscript::Kind::kSlice:
        result.push_back(subscript.length);
        break;
      case Subscript::Kind::kGather: {
        std::optional<Shape> both = BroadcastShapes(gathered, shape_of(subscript.position));
        if (!both.has_value()) return std::nullopt;
        gathered = *std::move(both);
        if (!gather_at.has_value()) gather_at = result.size();
        break;
      }
    }
  }
  if (gather_at.has_value()) {
    result.insert(result.begin() + *gather_at, gathered.begin(), gathered.end());
  }
  return result;
}

Shape DotShape(const Shape& a, const Shape& b, bool is_transposed) {
  Shape shape = a;
  shape.back() = b[b.size() - (is_transposed ? 2 : 1)];
  return shape;
}

Shape LongSides(const Shape& shape) {
  Shape sides;
  for (int64_t side : shape) {
    if (side > 1) sides.push_back(side);
  }
  return sides;
}

std::vector<int> MapLongSides(const Shape& from, const Shape& to) {
  std::vector<int> sides(from.size(), -1);
  size_t next = 0;
  for (size_t side = 0; side < from.size(); ++side) {
    if (from[side] == 1) continue;
    while (to[next] == 1) ++next;
    sides[side] = static_cast<int>(next++);
  }
  return sides;
}

}  // namespace phobos::compiler::ir
