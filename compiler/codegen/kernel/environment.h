// SPDX-License-Identifier: Apache-2.0
//
// What the emitter of one kernel knows at the place where it emits, whatever the chip: the launch's
// arguments in registers, the scalar values made so far, where variables live. Back ends add to it
// what is theirs. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_KERNEL_ENVIRONMENT_H_
#define PHOBOS_COMPILER_CODEGEN_KERNEL_ENVIRONMENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::codegen {

// A tensor parameter at this launch.
struct Tensor {
  llvm::Value* address = nullptr;
  std::vector<llvm::Value*> sides;    // i64, outermost first, never negative
  std::vector<llvm::Value*> strides;  // i64, in elements
  llvm::Value* elements = nullptr;    // i64
};

struct Environment {
  // Both must outlive this. The builder gets the flags of the function's arithmetic.
  Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder);

  const ir::Function& function;
  llvm::IRBuilder<>& builder;
  // Where set, each op's instructions carry its place in the source.
  llvm::DIScope* debug_scope = nullptr;

  // Read once a call of the entry. Both lists are as long as the parameters; an entry is empty
  // where the parameter is of the other kind.
  std::vector<Tensor> tensors;
  std::vector<llvm::Value*> arguments;
  std::vector<llvm::Value*> extents;      // i64
  std::array<llvm::Value*, 3> grid = {};  // i64
  // Of the block that is being run; null on an axis that the kernel does not read.
  std::array<llvm::Value*, 3> block_id = {};

  // By ValueId: the op that makes it; its register, for a scalar that is made already.
  std::vector<const ir::Op*> definitions;
  std::vector<llvm::Value*> scalars;
  // By VarId: the address of a scalar in the frame, of a tile where the back end keeps it.
  std::vector<llvm::Value*> variables;
  std::vector<llvm::Value*> loop_indices;  // by loop id, i64

  // Fills tensors, arguments and extents from the slots of the ABI, in the order of the manifest:
  // `address` gives a tensor's, `bits` the 64 bits of any other slot.
  void ReadSlots(llvm::function_ref<llvm::Value*(size_t slot)> address,
                 llvm::function_ref<llvm::Value*(size_t slot)> bits);

  // Memory in the frame of the entry function, for values that must be in memory for a moment. One
  // place for each call here, whatever loop it stands in.
  llvm::AllocaInst* Slot(llvm::Type* type) const;

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

  // condition ? then() : otherwise, where only the one that is wanted is computed. A null condition
  // is true.
  llvm::Value* Choose(llvm::Value* condition, llvm::function_ref<llvm::Value*()> then,
                      llvm::Value* otherwise) const;

 private:
  void Define(const ir::Block& block);
};

// The symbol of the entry function, whatever the chip.
std::string EntryName(const ir::Function& function);

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_KERNEL_ENVIRONMENT_H_
