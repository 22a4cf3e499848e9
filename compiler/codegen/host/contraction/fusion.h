// SPDX-License-Identifier: Apache-2.0
//
// Which operands of products need no memory of their own: a product copies what it multiplies
// anyway, element by element, so what the copy is made from may be computed right there. Pure, any
// thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_FUSION_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_FUSION_H_

#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::host {

// By ValueId: the kStages that need not be held, for each is the operand of one kDot, and what it
// holds can be evaluated in its place when that is. REQUIRES: the function went through
// passes::Stage.
std::vector<bool> FindFusedStages(const ir::Function& function);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_FUSION_H_
