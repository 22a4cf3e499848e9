// SPDX-License-Identifier: Apache-2.0
//
// A value while it is interpreted, and walks over its elements. General in rank: a scalar is a
// tile of rank 0 and one element. Values, any thread.
#ifndef PHOBOS_COMPILER_INTERPRETER_TILE_H_
#define PHOBOS_COMPILER_INTERPRETER_TILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/interpreter/number.h"
#include "compiler/ir/shape.h"
#include "compiler/ir/type.h"

namespace phobos::compiler::interpreter {

struct Tile {
  ir::Type type;
  std::vector<Bits> elements;  // row-major, type.elements() of them
};

// A position in a shape, one number an axis.
using Index = std::vector<int64_t>;

// Calls `body` with each index of `shape`, the last axis fastest, and its row-major offset.
void ForEachIndex(const ir::Shape& shape,
                  const std::function<void(const Index& index, size_t offset)>& body);

// The row-major offset of `index` in `shape`. REQUIRES: it is inside.
size_t OffsetOf(const ir::Shape& shape, const Index& index);

// The element of `tile` that NumPy's broadcasting takes for `index` of a shape that the tile
// broadcasts to.
Bits BroadcastElement(const Tile& tile, const Index& index);

}  // namespace phobos::compiler::interpreter

#endif  // PHOBOS_COMPILER_INTERPRETER_TILE_H_
