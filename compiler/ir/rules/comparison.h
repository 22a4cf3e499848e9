// SPDX-License-Identifier: Apache-2.0
//
// The IR's comparisons of numbers of any C++ type that holds them. Pure, any thread.
#ifndef PHOBOS_COMPILER_IR_RULES_COMPARISON_H_
#define PHOBOS_COMPILER_IR_RULES_COMPARISON_H_

#include <optional>

#include "compiler/ir/rules/opcode.h"

namespace phobos::compiler::ir {

// What a comparison gives; nothing for an opcode that is none.
template <typename Number>
std::optional<bool> Compared(Opcode opcode, Number a, Number b) {
  switch (opcode) {
    case Opcode::kEqual:
      return a == b;
    case Opcode::kNotEqual:
      return a != b;
    case Opcode::kLess:
      return a < b;
    case Opcode::kLessEqual:
      return a <= b;
    case Opcode::kGreater:
      return a > b;
    case Opcode::kGreaterEqual:
      return a >= b;
    default:
      return std::nullopt;
  }
}

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_RULES_COMPARISON_H_
