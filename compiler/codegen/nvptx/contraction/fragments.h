// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles by the chip's matrix instructions, one warp's part of the result at a time. One
// thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_FRAGMENTS_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_FRAGMENTS_H_

#include <vector>

#include "compiler/codegen/nvptx/contraction/copy.h"
#include "compiler/codegen/nvptx/plan/contraction/product.h"
#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/tile/environment.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

// Adds the products of `dot` to what a thread holds of the result: `sums`, in the order of
// FragmentLayout. All threads' parts of the operands are in shared memory.
void AddFragments(Environment& environment, const ir::Op& dot, const FragmentDealing& dealing,
                  std::vector<llvm::Value*>* sums);

// The same in a loop with a Pipeline::product, whose copies it awaits and starts. REQUIRES:
// ReadFirstStep before the loop.
void AddFragmentsAhead(Environment& environment, const Statement& statement, CopyEmitter& copies,
                       std::vector<llvm::Value*>* sums);
// Awaits the first turn and reads the product's first step of it.
void ReadFirstStep(Environment& environment, const Statement& statement, CopyEmitter& copies);

// Reads all that a thread needs of the left operand, for products that come later (Environment::
// rows_before).
void ReadRowsBefore(Environment& environment, const ir::Op& dot, const FragmentDealing& dealing);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_FRAGMENTS_H_
