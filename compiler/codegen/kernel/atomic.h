// SPDX-License-Identifier: Apache-2.0
//
// One step of an atomic on one element, for any target: by the chip's own instruction where LLVM
// has one with our meaning, else by compare and swap in a loop. One thread a builder.
#ifndef PHOBOS_COMPILER_CODEGEN_KERNEL_ATOMIC_H_
#define PHOBOS_COMPILER_CODEGEN_KERNEL_ATOMIC_H_

#include "compiler/codegen/kernel/environment.h"
#include "compiler/ir/ir.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::codegen {

// Emits the step of `op`, an atomic, on the element at `address` and gives the element as it was.
// All elements are as in memory: a bool is a byte.
llvm::Value* EmitAtomicStep(const Environment& environment, const ir::Op& op, llvm::Value* address,
                            llvm::ArrayRef<llvm::Value*> operands);

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_KERNEL_ATOMIC_H_
