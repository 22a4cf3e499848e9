// SPDX-License-Identifier: Apache-2.0
//
// Emits a kernel's body for one block of the grid, whatever the chip: control flow and scalars
// here, tiles and memory by the back end. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_KERNEL_BODY_H_
#define PHOBOS_COMPILER_CODEGEN_KERNEL_BODY_H_

#include <cstdint>
#include <vector>

#include "compiler/codegen/kernel/environment.h"
#include "compiler/ir/ir.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::codegen {

// A back end's part. Each emits at the environment's builder.
class MemoryEmitter {
 public:
  virtual ~MemoryEmitter() = default;
  // A kStore, kDeclareVar, kWriteVar or kStage of a tile, or an atomic on one without a result.
  virtual void EmitTileStatement(const ir::Op& op) = 0;
  // A kLoad of one element: its value.
  virtual llvm::Value* LoadScalar(const ir::Op& op) = 0;
  // A reduction that gives a scalar: its value.
  virtual llvm::Value* ReduceToScalar(const ir::Op& op) = 0;
  // A kStore of one element.
  virtual void StoreScalar(const ir::Op& op) = 0;
  // An atomic on one element: the element as it was, or null if the op has no result.
  virtual llvm::Value* AtomicScalar(const ir::Op& op) = 0;
  // A kPrint. Nothing where the chip does not print.
  virtual void Print(const ir::Op&) {}
  // Called before the first turn of a kFor, which has `turns` of them (i64), the first at index
  // `lo`.
  virtual void BeforeFor(const ir::Op&, llvm::Value* /*lo*/, llvm::Value* /*turns*/) {}
};

// The value of a scalar that is computed from its operands, the launch and loops' indices alone.
llvm::Value* EmitPureScalar(Environment& environment, const ir::Op& op);

class BodyEmitter {
 public:
  // Both must outlive this. REQUIRES: the environment's slots, grid and block ids are read.
  BodyEmitter(Environment& environment, MemoryEmitter& memory)
      : env_(environment), builder_(environment.builder), memory_(memory) {}

  // The function's body; every way out of it goes to `end`, which is the caller's to place.
  void Emit(llvm::BasicBlock* end);

 private:
  struct LoopTargets {
    llvm::BasicBlock* next;   // continue
    llvm::BasicBlock* after;  // break
  };

  void EmitRegion(const ir::Block& block);
  void EmitOp(const ir::Op& op);
  void EmitStatement(const ir::Op& op);
  void EmitAtomic(const ir::Op& op);
  void EmitFor(const ir::Op& op);
  void EmitForTurns(const ir::Op& op, llvm::Value* turns, int32_t copies, llvm::Value* lo);
  void EmitWhile(const ir::Op& op);
  void EmitIf(const ir::Op& op);
  void Jump(llvm::BasicBlock* target);
  llvm::Value* Scalar(const ir::Op& op);

  Environment& env_;
  llvm::IRBuilder<>& builder_;
  MemoryEmitter& memory_;
  llvm::BasicBlock* end_ = nullptr;
  std::vector<LoopTargets> loops_;  // innermost last
  llvm::Value* yielded_ = nullptr;
  int32_t copies_around_ = 1;  // of the body at hand, made by the loops around it
  bool is_reachable_ = true;
};

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_KERNEL_BODY_H_
