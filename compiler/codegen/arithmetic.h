// SPDX-License-Identifier: Apache-2.0
//
// The element-wise operations of the tile IR as LLVM IR, for any target: nothing here calls a
// library or names an instruction set. Values are scalars or vectors alike. In a register f16 and
// bf16 are their bits (i16) and bool is i1. Emits at the builder's place, which may end up in
// another basic block. One thread a builder.
#ifndef PHOBOS_COMPILER_CODEGEN_ARITHMETIC_H_
#define PHOBOS_COMPILER_CODEGEN_ARITHMETIC_H_

#include "compiler/ir/ir.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::codegen {

// An element in a register.
llvm::Type* ElementType(llvm::LLVMContext& context, ir::DType dtype);

// An element in memory: bool is a byte there.
llvm::Type* MemoryType(llvm::LLVMContext& context, ir::DType dtype);

// `type` with the lanes of `like`: a vector of it where `like` is (of) a vector type.
llvm::Type* WithLanesOf(llvm::Type* type, llvm::Type* like);

// The value of a kConstant.
llvm::Constant* ConstantOf(llvm::LLVMContext& context, ir::DType dtype,
                           const ir::ConstantValue& value);

// Any opcode from kAdd to kBitcast. `dtype` is the element type of the operands (of kSelect: of
// its arms).
llvm::Value* EmitElementwise(llvm::IRBuilderBase& builder, const ir::Op& op, ir::DType dtype,
                             llvm::ArrayRef<llvm::Value*> operands);
// Of an opcode without attributes whose result has elements of `dtype`, too, or of bool.
llvm::Value* EmitElementwise(llvm::IRBuilderBase& builder, ir::Opcode opcode, ir::DType dtype,
                             llvm::ArrayRef<llvm::Value*> operands);

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_ARITHMETIC_H_
