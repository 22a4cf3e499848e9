// SPDX-License-Identifier: Apache-2.0
//
// A rough price of an op of the tile IR: what passes and back ends weigh recomputing and unrolling
// by. Not a prediction of time. Pure, any thread.
#ifndef PHOBOS_COMPILER_PASSES_COST_H_
#define PHOBOS_COMPILER_PASSES_COST_H_

#include "compiler/ir/ir.h"

namespace phobos::compiler::passes {

// About how many vector instructions the op itself takes, its operands being at hand.
int Cost(const ir::Op& op);

}  // namespace phobos::compiler::passes

#endif  // PHOBOS_COMPILER_PASSES_COST_H_
