// SPDX-License-Identifier: Apache-2.0
//
// Conversions between the element types of the tile IR as LLVM IR, for any target: correctly
// rounded, saturating where the language says so, without library calls and without instructions
// for f16 arithmetic or bf16. Register forms as in arithmetic.h. One thread a builder.
#ifndef PHOBOS_COMPILER_CODEGEN_CONVERSION_H_
#define PHOBOS_COMPILER_CODEGEN_CONVERSION_H_

#include "compiler/ir/ir.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::codegen {

// kCast of ir.h.
llvm::Value* EmitCast(llvm::IRBuilderBase& builder, llvm::Value* value, ir::DType from,
                      ir::DType to);

// Of the two 16-bit float types: to f32, exactly, and from f32, to nearest even.
llvm::Value* WidenToF32(llvm::IRBuilderBase& builder, llvm::Value* value, ir::DType from);
llvm::Value* NarrowFromF32(llvm::IRBuilderBase& builder, llvm::Value* value, ir::DType to);

// f32 to the numbers that a product's precision leaves, to nearest even.
llvm::Value* RoundTo(llvm::IRBuilderBase& builder, llvm::Value* value, ir::Precision precision);

// f64 to a 16-bit float type with one rounding; the same for the exact sum `high + low`, where
// `high` is the f64 nearest to it.
llvm::Value* NarrowFromF64(llvm::IRBuilderBase& builder, llvm::Value* value, ir::DType to);
llvm::Value* NarrowFromSum(llvm::IRBuilderBase& builder, llvm::Value* high, llvm::Value* low,
                           ir::DType to);

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_CONVERSION_H_
