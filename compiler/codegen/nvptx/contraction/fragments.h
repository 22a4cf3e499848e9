// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles by the chip's matrix instructions, one warp's part of the result at a time. One
// thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_FRAGMENTS_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_FRAGMENTS_H_

#include <vector>

#include "compiler/codegen/nvptx/plan/contraction/product.h"
#include "compiler/codegen/nvptx/tile/environment.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

// Adds the products of `dot` to what a thread holds of the result: `sums`, in the order of
// FragmentLayout. All threads' parts of the operands are in shared memory.
void AddFragments(Environment& environment, const ir::Op& dot, const FragmentDealing& dealing,
                  std::vector<llvm::Value*>* sums);

// Reads all that a thread needs of the left operand, for products that come later (Environment::
// rows_before).
void ReadRowsBefore(Environment& environment, const ir::Op& dot, const FragmentDealing& dealing);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_FRAGMENTS_H_
