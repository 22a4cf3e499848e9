// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles (kDot): what is multiplied is in shared memory, the sums are in registers. One
// thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_PRODUCT_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_PRODUCT_H_

#include "compiler/codegen/nvptx/contraction/copy.h"
#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/tile/environment.h"

namespace phobos::compiler::nvptx {

// A kStage, kDeclareVar or kWriteVar of a kDot; its tile and the operands' are in the environment
// already, and all threads' parts of the operands are there; a Pipeline::product sees to that
// itself.
void EmitProduct(Environment& environment, const Statement& statement, CopyEmitter& copies);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_PRODUCT_H_
