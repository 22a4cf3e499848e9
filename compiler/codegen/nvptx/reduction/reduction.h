// SPDX-License-Identifier: Apache-2.0
//
// Reductions: each thread combines the elements that it holds or computes, neighbours exchange what
// they have, warps meet in shared memory, as the plan deals it (plan/dealing.h). One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_REDUCTION_REDUCTION_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_REDUCTION_REDUCTION_H_

#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/tile/environment.h"

namespace phobos::compiler::nvptx {

// Emits a statement of the environment's plan that does a reduction. Every thread is given a
// scalar; a tile is stored in its place, and null is returned.
llvm::Value* EmitReduction(Environment& environment, const Statement& statement);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_REDUCTION_REDUCTION_H_
