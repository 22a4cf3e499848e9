// SPDX-License-Identifier: Apache-2.0
//
// Floor division and remainder, integer and float, and the upper half of a product, as LLVM IR for
// any target. Every integer divisor is allowed; float remainders are exact at any distance of the
// exponents. Register forms as in arithmetic.h. One thread a builder.
#ifndef PHOBOS_COMPILER_CODEGEN_DIVISION_H_
#define PHOBOS_COMPILER_CODEGEN_DIVISION_H_

#include "compiler/ir/type.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::codegen {

// kFloorDiv and kMod of ir.h on integers.
llvm::Value* EmitIntegerFloorDiv(llvm::IRBuilderBase& builder, llvm::Value* a, llvm::Value* b,
                                 ir::DType dtype);
llvm::Value* EmitIntegerMod(llvm::IRBuilderBase& builder, llvm::Value* a, llvm::Value* b,
                            ir::DType dtype);

// kFloorDiv and kMod of ir.h on f32 and f64, exactly as Python has them; by zero 0.
llvm::Value* EmitFloatFloorDiv(llvm::IRBuilderBase& builder, llvm::Value* a, llvm::Value* b);
llvm::Value* EmitFloatMod(llvm::IRBuilderBase& builder, llvm::Value* a, llvm::Value* b);

// kMulHigh of ir.h.
llvm::Value* EmitMulHigh(llvm::IRBuilderBase& builder, llvm::Value* a, llvm::Value* b,
                         ir::DType dtype);

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_DIVISION_H_
