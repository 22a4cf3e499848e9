// SPDX-License-Identifier: Apache-2.0
//
// What the emitter of one kernel knows at the place where it emits: the launch's arguments in
// registers, the scalar values made so far, where variables and staged tiles live. Shared by
// kernel.cc (control flow), tile.cc (statements over tiles) and access.cc (tensors). One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_ENVIRONMENT_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_ENVIRONMENT_H_

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::host {

// A tensor parameter at this launch.
struct Tensor {
  llvm::Value* address = nullptr;
  std::vector<llvm::Value*> sides;    // i64, outermost first, never negative
  std::vector<llvm::Value*> strides;  // i64, in elements
  // i1: stores should go past the caches. Null: they never should.
  llvm::Value* is_streamed = nullptr;
};

struct Environment {
  // Both must outlive this. `bytes` is the width of the chip's vectors.
  Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder, int64_t bytes)
      : function(ir_function), builder(ir_builder), vector_bytes(bytes) {}

  const ir::Function& function;
  llvm::IRBuilder<>& builder;
  const int64_t vector_bytes;

  // Read once a call of the entry, before its first block. Both lists are as long as the
  // parameters; an entry is empty where the parameter is of the other kind.
  std::vector<Tensor> tensors;
  std::vector<llvm::Value*> arguments;
  std::vector<llvm::Value*> extents;      // i64
  std::array<llvm::Value*, 3> grid = {};  // i64
  // Of the block that is being run; null on an axis that the kernel does not read.
  std::array<llvm::Value*, 3> block_id = {};

  // By ValueId: the op that makes it; its register, for a scalar that is made already; its address
  // in scratch memory, for a tile that a kStage holds.
  std::vector<const ir::Op*> definitions;
  std::vector<llvm::Value*> scalars;
  std::vector<llvm::Value*> held_tiles;
  // By VarId: the address of a scalar in the frame or of a tile in scratch memory.
  std::vector<llvm::Value*> variables;
  std::vector<llvm::Value*> loop_indices;  // by loop id, i64

  // Memory in the frame of the entry function, for values that must be in memory for a moment. One
  // place for each call here, whatever loop it stands in.
  llvm::Value* Slot(llvm::Type* type) const;

  llvm::Value* Int(int64_t value) const { return builder.getInt64(value); }

  // AND of two i1, either of which may be null for "true"; null if both are.
  llvm::Value* And(llvm::Value* a, llvm::Value* b) const;

  // A basic block at the end of the function, empty and reached from nowhere yet.
  llvm::BasicBlock* NewBlock(const char* name) const;

  // for (i = begin; i < end; i += step) body(i), signed, step > 0; goes on behind the loop. The
  // body may make blocks of its own and must end where it can be left.
  void Loop(llvm::Value* begin, llvm::Value* end, int64_t step,
            llvm::function_ref<void(llvm::Value*)> body) const;

  // if (condition) then(); else otherwise(); goes on behind both. A null condition is true.
  void Branch(llvm::Value* condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise) const;
};

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_ENVIRONMENT_H_
