// SPDX-License-Identifier: Apache-2.0
//
// Reductions: what is reduced is evaluated chunk by chunk and combined in registers, in the order
// that the opcode tells, whatever the width of the chip's vectors. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_REDUCTION_REDUCTION_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_REDUCTION_REDUCTION_H_

#include "compiler/codegen/host/tile/environment.h"
#include "compiler/ir/ir.h"
#include "llvm/IR/Value.h"

namespace phobos::compiler::host {

// Emits a reduction. One that gives a tile is stored at `held`, and null returned; one that gives a
// scalar is returned, and `held` is null.
llvm::Value* EmitReduction(const Environment& environment, const ir::Op& op, llvm::Value* held);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_REDUCTION_REDUCTION_H_
