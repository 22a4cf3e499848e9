// SPDX-License-Identifier: Apache-2.0
//
// Emits the copies of tiles from tensors to shared memory that the chip does on its own, some turns
// of a loop ahead where the loop asks for that (plan/contraction/copies.h). One kernel, one thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_COPY_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_COPY_H_

#include <map>

#include "compiler/codegen/nvptx/plan/contraction/copies.h"
#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/tile/access.h"
#include "compiler/codegen/nvptx/tile/environment.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

class CopyEmitter {
 public:
  // The environment must outlive this.
  explicit CopyEmitter(Environment& environment) : env_(environment), b_(environment.builder) {}

  // Starts the copies of a loop's first turns, if it has any that are done ahead. `turns` is i64.
  void BeforeFor(const ir::Op& loop, llvm::Value* lo, llvm::Value* turns);

  // A kStage of the plan's copies: starts it, or another turn's and waits for this one's.
  // REQUIRES: its tile has its place in the environment, unless it is done ahead; then it gets it.
  void EmitStage(const ir::Op& stage);

  // The parts of that, for a loop with a Pipeline::product, which does them itself: each thread
  // waits for its copies of the next turn that is not begun, and all meet; that turn's tiles get
  // their places; it is begun; the copies of one more turn are started.
  void AwaitTurn(const ir::Op& loop) const;
  void ShowNext(const ir::Op& loop) const;
  void BeginTurn(const ir::Op& loop) const;
  void StartAhead(const ir::Op& loop);

  // This thread waits for all it has started.
  void AwaitAll() const;

 private:
  struct State {
    llvm::AllocaInst* read = nullptr;     // i32: the buffer of the next turn that is not begun
    llvm::AllocaInst* written = nullptr;  // i32: the buffer that is filled next
    llvm::AllocaInst* left = nullptr;     // i64: turns that are not started
  };

  void StartTurn(const ir::Op& loop, llvm::Value* index);
  void Start(const ir::Op& stage);
  void StartInside(const ir::Op& stage, const Access& access) const;
  void StartClipped(const ir::Op& stage, Access* access, llvm::Value* is_aligned) const;
  Place GranuleAt(const ir::Type& type, llvm::Value* number) const;
  llvm::Value* BufferOf(const Copy& copy, const Pipeline& pipeline, llvm::Value* number) const;
  void Advance(llvm::AllocaInst* number, int64_t count) const;

  Environment& env_;
  llvm::IRBuilder<>& b_;
  std::map<const ir::Op*, State> states_;  // by kFor
};

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_COPY_H_
