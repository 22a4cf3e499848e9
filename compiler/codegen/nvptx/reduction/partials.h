// SPDX-License-Identifier: Apache-2.0
//
// Partial results of a reduction, as one thread has them: combined in its registers, exchanged with
// its neighbours in the warp and, through shared memory, with all threads of the block. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_REDUCTION_PARTIALS_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_REDUCTION_PARTIALS_H_

#include <cstdint>
#include <vector>

#include "compiler/codegen/kernel/combination.h"
#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/tile/environment.h"

namespace phobos::compiler::nvptx {

class PartialsEmitter {
 public:
  // Of a reduction. Both must outlive this.
  PartialsEmitter(Environment& environment, const Statement& statement);

  // Registers for `count` partials that elements are added to, one after the other.
  void MakeSlots(size_t count);
  void Clear();
  // The element at `number` (i32) along the reduced side.
  void Add(size_t slot, llvm::Value* element, llvm::Value* number);
  codegen::Partial Read(size_t slot) const;

  codegen::Partial Nothing() const { return combination_.Nothing(1); }
  // The near ones first.
  codegen::Partial Together(codegen::Partials partials) const;
  // Each thread's combined with those of the next ones, `folded` groups of `group` threads.
  codegen::Partial Fold(codegen::Partial partial, int64_t folded, int64_t group) const;

  // Partials in the statement's part of shared memory, by number (i32).
  void Put(llvm::Value* number, const codegen::Partial& partial) const;
  codegen::Partial Get(llvm::Value* number) const;

  llvm::Value* ResultOf(const codegen::Partial& partial) const {
    return combination_.ResultOf(partial);
  }

 private:
  llvm::Value* FromLane(llvm::Value* value, int64_t distance) const;
  llvm::Value* AddressOf(llvm::Value* number, bool is_place) const;

  Environment& env_;
  llvm::IRBuilder<>& b_;
  const Statement& statement_;
  const ir::DType dtype_;
  const codegen::Combination combination_;
  const bool gives_place_;
  codegen::Partials slots_;  // addresses
};

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_REDUCTION_PARTIALS_H_
