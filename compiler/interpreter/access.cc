// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/access.h"

#include <cstddef>

namespace phobos::compiler::interpreter {
namespace {

using Kind = ir::Subscript::Kind;

// Axes first .. first + rank - 1 of an access's shape belong to its gathers, which stand together
// where the first one stands.
struct GatherAxes {
  size_t first = 0;
  size_t rank = 0;
};

GatherAxes AxesOf(const std::vector<ir::Subscript>& subscripts, size_t shape_rank) {
  GatherAxes axes;
  size_t slices = 0;
  bool has_gather = false;
  for (const ir::Subscript& subscript : subscripts) {
    if (subscript.kind == Kind::kGather && !has_gather) {
      axes.first = slices;
      has_gather = true;
    }
    slices += subscript.kind == Kind::kSlice ? 1 : 0;
  }
  axes.rank = has_gather ? shape_rank - slices : 0;
  return axes;
}

}  // namespace

void ForEachElement(const std::vector<ir::Subscript>& subscripts,
                    const std::vector<const Tile*>& positions, const std::vector<int64_t>& sides,
                    const Tile* mask, const ir::Shape& shape,
                    const std::function<void(const Index&, size_t, std::optional<size_t>)>& body) {
  const GatherAxes gather = AxesOf(subscripts, shape.size());
  // Of the element at `index`, or nothing.
  const auto element_at = [&](const Index& index) -> std::optional<size_t> {
    if (mask != nullptr && BroadcastElement(*mask, index) == 0) return std::nullopt;
    const auto begin = index.begin() + static_cast<ptrdiff_t>(gather.first);
    const Index gathered(begin, begin + static_cast<ptrdiff_t>(gather.rank));
    size_t axis = 0;
    size_t element = 0;
    for (size_t d = 0; d < subscripts.size(); ++d) {
      if (gather.rank > 0 && axis == gather.first) axis += gather.rank;
      // Wider than i64: a slice may begin at its end.
      __int128 position = subscripts[d].kind == Kind::kGather
                              ? BroadcastElement(*positions[d], gathered)
                              : positions[d]->elements[0];
      if (subscripts[d].kind == Kind::kSlice) position += index[axis++];
      if (position < 0 || position >= sides[d]) return std::nullopt;
      element = element * static_cast<size_t>(sides[d]) + static_cast<size_t>(position);
    }
    return element;
  };
  ForEachIndex(shape,
               [&](const Index& index, size_t offset) { body(index, offset, element_at(index)); });
}

}  // namespace phobos::compiler::interpreter
