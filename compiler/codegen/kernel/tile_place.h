// SPDX-License-Identifier: Apache-2.0
//
// Where in a tile something is, and where that is in a tile that it is made from: the numbers of
// elements alone, for every back end's evaluator. Values; one thread.
#ifndef PHOBOS_COMPILER_CODEGEN_KERNEL_TILE_PLACE_H_
#define PHOBOS_COMPILER_CODEGEN_KERNEL_TILE_PLACE_H_

#include "compiler/ir/shape.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Value.h"

namespace phobos::compiler::codegen {

// One index a side. The lanes of a vector run along at most one side; without such a side the place
// is a single element.
struct TilePlace {
  static constexpr int kNoSide = -1;
  llvm::SmallVector<llvm::Value*, 4> indices;  // of the lane side: of lane 0
  int lane_side = kNoSide;

  bool has_lanes() const { return lane_side != kNoSide; }
};

// The place in a tile of `shape` that is broadcast to the one that `place` is in. `zero` is an
// index.
TilePlace BeforeBroadcast(const TilePlace& place, const ir::Shape& shape, llvm::Value* zero);

// The place in a tile of shape `from` that becomes one of shape `to`, which `place` is in, by
// adding and dropping sides of 1. REQUIRES: both have the same long sides.
TilePlace BeforeReshape(const TilePlace& place, const ir::Shape& from, const ir::Shape& to,
                        llvm::Value* zero);

// The place along the sides [first, first + count) alone.
TilePlace AlongSides(const TilePlace& place, int first, int count);

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_KERNEL_TILE_PLACE_H_
