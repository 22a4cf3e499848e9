// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles: the sums of a block of the result stay in vector registers while k runs. The
// operands are tiles in memory (passes/stage.h), or are computed as they are needed (fusion.h). One
// thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_CONTRACTION_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_CONTRACTION_H_

#include <cstdint>

#include "compiler/codegen/host/contraction/plan.h"
#include "compiler/codegen/host/tile/environment.h"
#include "compiler/ir/ir.h"
#include "llvm/IR/Value.h"

namespace phobos::compiler::host {

// Scratch memory that a kDot needs while it is computed, a multiple of 64.
int64_t ContractionBytes(const ir::Op& dot, const ContractionOperands& operands,
                         int64_t vector_bytes);

// Emits `statement`, which stores a kDot: a kStage, kDeclareVar or kWriteVar, whose tile or
// variable is in `environment` already; its operands are there unless they are fused. `workspace`
// is the kDot's scratch memory.
void EmitContraction(const Environment& environment, const ir::Op& statement,
                     llvm::Value* workspace);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_CONTRACTION_H_
