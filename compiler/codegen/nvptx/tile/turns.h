// SPDX-License-Identifier: Apache-2.0
//
// A thread's way through its part of a tile, turn after turn of the tile's layout. What is done at
// a place is the caller's. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_TURNS_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_TURNS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/tile/environment.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace phobos::compiler::nvptx {

// Turns first, first + step, ... in which every thread has a vector.
struct TurnRange {
  llvm::Value* first = nullptr;  // i32
  int64_t step = 1;
  int64_t count = 0;
};

// What is done at a place, in code that knows nothing of other places.
struct TurnWork {
  llvm::function_ref<Fragment(const Place& place)> compute;
  llvm::function_ref<void(const Place& place, const Fragment& value)> store;
  // i1: something is to be done at a place that may not be inside; null: it is.
  llvm::function_ref<llvm::Value*(const Place& place)> is_wanted;
};

// One of the two where `inside` says (i1; null: inside), as Evaluator::Prepare gives it.
void EmitEitherWay(const Environment& environment, llvm::Value* inside,
                   llvm::function_ref<void()> emit_inside, llvm::function_ref<void()> emit_clipped);

class Turns {
 public:
  // The statement's tile, dealt out by its own layout or another one; `unroll` copies of a turn in
  // the code. Both must outlive this.
  Turns(Environment& environment, const Statement& statement, const Layout& layout, int64_t unroll);

  // What is inside is done vector by vector, all else element by element. What a few places store
  // is computed before any of it is stored, so that their loads are under way together.
  void Emit(const TurnRange& range, bool is_inside, const TurnWork& work) const;
  // The last turn, in which only some threads have a vector. REQUIRES: layout.rest() > 0.
  void EmitRest(bool is_inside, const TurnWork& work) const;
  // All turns.
  void EmitAll(bool is_inside, const TurnWork& work) const;

  // This thread's, in a turn (i32).
  Place PlaceAt(llvm::Value* turn) const;
  // One element of a place's vector.
  Place ElementOf(const Place& vector, int64_t lane) const;

 private:
  void EmitBatch(const TurnRange& range, llvm::Value* first, int64_t count, bool is_inside,
                 const TurnWork& work) const;
  void EmitElements(const std::vector<Place>& vectors, llvm::Value* exists,
                    const TurnWork& work) const;
  void SetIndices(llvm::Value* turn, Place* place) const;
  void SetBlockIndices(llvm::Value* turn, Place* place) const;

  Environment& env_;
  llvm::IRBuilder<>& b_;
  const Statement& statement_;
  const Layout layout_;
  const int64_t unroll_;
  int lane_side_ = 0;  // the last long side
};

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_TURNS_H_
