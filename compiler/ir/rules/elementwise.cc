// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/rules/elementwise.h"

namespace phobos::compiler::ir {

std::optional<ElementwiseRule> ElementwiseRuleOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
    case Opcode::kSub:
    case Opcode::kMul:
    case Opcode::kFloorDiv:
    case Opcode::kMod:
    case Opcode::kMinimum:
    case Opcode::kMaximum:
      return ElementwiseRule{2, kFloats | kInts};
    case Opcode::kDiv:
    case Opcode::kPow:
      return ElementwiseRule{2, kFloats};
    case Opcode::kMulHigh:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRight:
      return ElementwiseRule{2, kInts};
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
      return ElementwiseRule{2, kInts | kBools};
    case Opcode::kNot:
      return ElementwiseRule{1, kInts | kBools};
    case Opcode::kPowInt:
    case Opcode::kNegate:
    case Opcode::kAbs:
      return ElementwiseRule{1, kFloats | kInts};
    case Opcode::kRandomU32:
      return ElementwiseRule{2, kInts};
    case Opcode::kFma:
      return ElementwiseRule{3, kFloats};
    case Opcode::kIsNan:
    case Opcode::kIsInf:
      return ElementwiseRule{1, kFloats};
    default:
      if (opcode >= Opcode::kEqual && opcode <= Opcode::kGreaterEqual) {
        return ElementwiseRule{2, kFloats | kInts | kBools};
      }
      if (opcode >= Opcode::kExp && opcode <= Opcode::kRound) {
        return ElementwiseRule{1, kFloats};
      }
      return std::nullopt;
  }
}

unsigned ClassOf(DType dtype) {
  if (IsFloat(dtype)) return kFloats;
  return IsInteger(dtype) ? kInts : kBools;
}

}  // namespace phobos::compiler::ir
