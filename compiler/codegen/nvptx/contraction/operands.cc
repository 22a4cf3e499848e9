// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/contraction/operands.h"

#include <algorithm>

#include "compiler/ir/shape.h"

namespace phobos::compiler::nvptx {

Operands::Operands(Environment& environment, const Statement& product,
                   const std::vector<Place>& places, int64_t first)
    : env_(environment),
      is_transposed_(product.whole->axis == 1),
      a_(environment, *environment.definitions[product.whole->operands[0]]),
      b_(environment, *environment.definitions[product.whole->operands[1]]) {
  const ir::Shape& shape = product.type.shape;
  const size_t rank = shape.size();
  are_shared_ = product.layout.is_in_blocks() && shape[rank - 2] > 1 && shape[rank - 1] > 1;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    const Offset offset =
        are_shared_ ? product.layout.OffsetOf(first + number) : Offset{number, number};
    Add(places[i], offset.row, &rows_, &row_of_);
    Add(places[i], offset.column, &columns_, &column_of_);
  }
}

void Operands::Add(const Place& place, int64_t distance, std::vector<Part>* parts,
                   std::vector<size_t>* number) {
  const auto found = std::find_if(parts->begin(), parts->end(),
                                  [&](const Part& part) { return part.distance == distance; });
  number->push_back(static_cast<size_t>(found - parts->begin()));
  if (found == parts->end()) parts->push_back({place, distance});
}

Fragment Operands::LoadRow(size_t row, llvm::Value* k, unsigned depth) const {
  const Part& nearest = rows_[are_shared_ ? 0 : row];
  Place place = nearest.place;
  place.indices.back() = k;
  place.lanes = depth;
  place.lane_side = static_cast<int>(place.indices.size()) - 1;
  return a_.LoadBeside(place, rows_[row].distance - nearest.distance, 0);
}

Fragment Operands::LoadColumns(size_t column, llvm::Value* k, unsigned depth) const {
  const Part& nearest = columns_[are_shared_ && !is_transposed_ ? 0 : column];
  if (is_transposed_) return LoadColumnsAlongK(nearest.place, k, depth);
  const size_t rank = nearest.place.indices.size();
  Fragment columns;
  for (unsigned i = 0; i < depth; ++i) {
    Place place = nearest.place;
    place.indices[rank - 2] = env_.builder.CreateAdd(k, env_.Int32(i), "", true, true);
    // The lanes run along n, unless n is a side of 1.
    if (place.lane_side != static_cast<int>(rank) - 1) {
      place.lanes = 1;
      place.lane_side = Place::kNoSide;
    }
    const Fragment loaded = b_.LoadBeside(place, 0, columns_[column].distance - nearest.distance);
    for (unsigned lane = 0; lane < nearest.place.lanes; ++lane) {
      columns.push_back(LaneOf(loaded, lane));
    }
  }
  return columns;
}

// Of [N, K].
Fragment Operands::LoadColumnsAlongK(const Place& place, llvm::Value* k, unsigned depth) const {
  const size_t rank = place.indices.size();
  llvm::Value* n = place.indices[rank - 1];
  const bool runs_along_n = place.lane_side == static_cast<int>(rank) - 1;
  Fragment columns(size_t{depth} * place.lanes);
  for (unsigned lane = 0; lane < place.lanes; ++lane) {
    Place part = place;
    part.indices[rank - 2] =
        runs_along_n ? env_.builder.CreateAdd(n, env_.Int32(lane), "", true, true) : n;
    part.indices[rank - 1] = k;
    part.lanes = depth;
    part.lane_side = static_cast<int>(rank) - 1;
    const Fragment loaded = b_.Load(part);
    for (unsigned i = 0; i < depth; ++i) columns[i * place.lanes + lane] = loaded[i];
  }
  return columns;
}

}  // namespace phobos::compiler::nvptx
