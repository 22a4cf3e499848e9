// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/kernel/tile_place.h"

#include <cstddef>
#include <vector>

namespace phobos::compiler::codegen {

TilePlace BeforeBroadcast(const TilePlace& place, const ir::Shape& shape, llvm::Value* zero) {
  const int sides = static_cast<int>(shape.size());
  const int skipped = static_cast<int>(place.indices.size()) - sides;
  TilePlace before = AlongSides(place, skipped, sides);
  for (int side = 0; side < sides; ++side) {
    if (shape[side] != 1) continue;
    before.indices[side] = zero;
    if (before.lane_side == side) before.lane_side = TilePlace::kNoSide;
  }
  return before;
}

TilePlace BeforeReshape(const TilePlace& place, const ir::Shape& from, const ir::Shape& to,
                        llvm::Value* zero) {
  TilePlace before;
  const std::vector<int> sides = ir::MapLongSides(from, to);
  for (size_t side = 0; side < sides.size(); ++side) {
    const bool is_long = sides[side] >= 0;
    before.indices.push_back(is_long ? place.indices[sides[side]] : zero);
    if (is_long && sides[side] == place.lane_side) before.lane_side = static_cast<int>(side);
  }
  return before;
}

TilePlace AlongSides(const TilePlace& place, int first, int count) {
  TilePlace part;
  part.indices.assign(place.indices.begin() + first, place.indices.begin() + first + count);
  const int side = place.lane_side - first;
  if (place.has_lanes() && side >= 0 && side < count) part.lane_side = side;
  return part;
}

}  // namespace phobos::compiler::codegen
