// SPDX-License-Identifier: Apache-2.0
//
// The built-ins of the tile IR on f32 and f64 as LLVM IR, for any target: fused multiply-adds, the
// four operations, square roots, comparisons and integer operations on the bits, never a library
// call or a table in memory, so every chip that rounds as IEEE 754 says gives the same bits. What a
// chip has in one instruction with the same result is used where the function's attribute
// "target-features" names its feature. Each is defined over the whole range, with infinities, NaNs,
// signed zeros and subnormals; accuracy by docs/language.md. Values are scalars or vectors alike.
// One thread a builder.
#ifndef PHOBOS_COMPILER_CODEGEN_MATH_H_
#define PHOBOS_COMPILER_CODEGEN_MATH_H_

#include "compiler/ir/ir.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::codegen {

// Any opcode from kExp to kSigmoid; the operands are (vectors of) float or of double.
llvm::Value* EmitMath(llvm::IRBuilderBase& builder, ir::Opcode opcode,
                      llvm::ArrayRef<llvm::Value*> operands);

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_MATH_H_
