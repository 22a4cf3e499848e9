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

struct Tensor {
  llvm::Value* address = nullptr;
  std::vector<llvm::Value*> sides;    // i64, outermost first
  std::vector<llvm::Value*> strides;  // i64, elements
  // i1: stores should go past the caches. Null: they never should.
  llvm::Value* is_streamed = nullptr;
};

struct Environment {
  Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder, int64_t bytes)
      : function(ir_function), builder(ir_builder), vector_bytes(bytes) {}

  const ir::Function& function;
  llvm::IRBuilder<>& builder;
  const int64_t vector_bytes;

  std::vector<Tensor> tensors;          // by parameter
  std::vector<llvm::Value*> arguments;  // scalar parameters, by parameter
  std::vector<llvm::Value*> extents;
  std::array<llvm::Value*, 3> grid = {};
  std::array<llvm::Value*, 3> block_id = {};

  std::vector<const ir::Op*> definitions;  // by ValueId
  std::vector<llvm::Value*> scalars;       // by ValueId: the scalar, once it is made
  std::vector<llvm::Value*> held_tiles;    // by ValueId: address of a staged tile
  std::vector<llvm::Value*> variables;     // by VarId: address, of a scalar or a tile
  std::vector<llvm::Value*> loop_indices;  // by loop id

  // A slot in the frame of the entry function, for values that must be in memory for a moment.
  llvm::Value* Slot(llvm::Type* type) const;

  llvm::Value* Int(int64_t value) const { return builder.getInt64(value); }
  // AND of conditions of which null is "true".
  llvm::Value* And(llvm::Value* a, llvm::Value* b) const;
  llvm::BasicBlock* NewBlock(const char* name) const;
  // for (i = begin; i < end; i += step) body(i): signed, step > 0.
  void Loop(llvm::Value* begin, llvm::Value* end, int64_t step,
            llvm::function_ref<void(llvm::Value*)> body) const;
  // if (condition) then(); else otherwise(): a null condition is true.
  void Branch(llvm::Value* condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise) const;
};

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_ENVIRONMENT_H_
