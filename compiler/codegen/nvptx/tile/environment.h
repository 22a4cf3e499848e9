// SPDX-License-Identifier: Apache-2.0
//
// What the emitter for NVIDIA chips knows beside codegen::Environment. Shared by kernel.cc (the
// entry) and all that emits statements over tiles. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_ENVIRONMENT_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_ENVIRONMENT_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/codegen/kernel/environment.h"
#include "compiler/codegen/kernel/tile_place.h"
#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/plan/powers.h"
#include "compiler/ir/ir.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::nvptx {

// PTX's address spaces as LLVM numbers them.
inline constexpr unsigned kGlobalSpace = 1;
inline constexpr unsigned kSharedSpace = 3;

// What a thread holds of a tile at a Place: one value a lane, or a single one that is every lane's.
using Fragment = llvm::SmallVector<llvm::Value*, 16>;

// Lane `lane` of a fragment.
inline llvm::Value* LaneOf(const Fragment& fragment, unsigned lane) {
  return fragment.size() == 1 ? fragment[0] : fragment[lane];
}

// Where in a tile a thread is; indices are i32.
struct Place : codegen::TilePlace {
  unsigned lanes = 1;
  llvm::Value* held = nullptr;  // i32: which of the elements that the thread holds; of lane 0
  llvm::Value* row = nullptr;   // i32, in blocks: which of the rows that the thread has a part of
  // Every slice of the statement lies inside its tensor, and vectors are aligned.
  bool is_inside = false;
  unsigned lane = 0;  // of a vector of the layout: which one lane 0 is

  // The same elements where they are in another tile.
  Place At(codegen::TilePlace other) const {
    Place place = *this;
    static_cast<codegen::TilePlace&>(place) = std::move(other);
    if (!place.has_lanes()) place.lanes = 1;
    return place;
  }
};

struct Environment : codegen::Environment {
  // All three must outlive this.
  Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder,
              const Plan& kernel_plan);

  const Plan& plan;
  Powers powers;
  llvm::GlobalVariable* shared = nullptr;  // the block's shared memory; null where it has none
  llvm::Value* thread = nullptr;           // i32, 0 <= thread < function.threads
  // By ValueId: the address of a tile that a kStage holds, in the thread's frame or in shared
  // memory.
  std::vector<llvm::Value*> held_tiles;
  // By kDot: what a thread has read of its left operand before the loop that it is in, step by step
  // along k, a word after the other.
  std::map<const ir::Op*, std::vector<llvm::Value*>> rows_before;
  // By kDot: the words that it multiplies first in its loop's next turn, each an i32.
  std::map<const ir::Op*, std::vector<llvm::AllocaInst*>> first_steps;

  // The threads of the block wait for each other.
  void Meet() const;

  llvm::Value* Int32(int64_t value) const { return builder.getInt32(static_cast<uint32_t>(value)); }
};

// Of the element in lane `lane` of a place: its index along a side; its number in row-major order,
// of a tile of this shape.
llvm::Value* IndexOf(const Environment& environment, const Place& place, size_t side,
                     unsigned lane);
llvm::Value* NumberOf(const Environment& environment, const std::vector<int64_t>& shape,
                      const Place& place, unsigned lane);
// The place, of one lane, of the element with that number.
Place PlaceOf(const Environment& environment, const std::vector<int64_t>& shape,
              llvm::Value* number);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_ENVIRONMENT_H_
