// SPDX-License-Identifier: Apache-2.0
//
// What each element-wise operation works on, for the verifier. Pure, any thread.
#ifndef PHOBOS_COMPILER_IR_RULES_ELEMENTWISE_H_
#define PHOBOS_COMPILER_IR_RULES_ELEMENTWISE_H_

#include <cstddef>
#include <optional>

#include "compiler/ir/ir.h"

namespace phobos::compiler::ir {

enum Classes : unsigned { kFloats = 1, kInts = 2, kBools = 4 };

// Operands of one type; the result is ElementwiseResult's.
struct ElementwiseRule {
  size_t operands;
  unsigned classes;  // of Classes: what the operands may be
};

// Nothing for kSelect, kCast and kBitcast, which have rules of their own, and for all that is not
// element-wise.
std::optional<ElementwiseRule> ElementwiseRuleOf(Opcode opcode);

unsigned ClassOf(DType dtype);

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_RULES_ELEMENTWISE_H_
