// SPDX-License-Identifier: Apache-2.0
//
// Integer scalars that are known while a kernel is checked.
#include <algorithm>

#include "compiler/ir/rules/comparison.h"
#include "compiler/sema/value/emitter.h"

namespace phobos::compiler::sema {
namespace {

using ir::Opcode;

std::optional<ast::BinaryOp> ArithmeticOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
      return ast::BinaryOp::kAdd;
    case Opcode::kSub:
      return ast::BinaryOp::kSub;
    case Opcode::kMul:
      return ast::BinaryOp::kMul;
    case Opcode::kFloorDiv:
      return ast::BinaryOp::kFloorDiv;
    case Opcode::kMod:
      return ast::BinaryOp::kMod;
    case Opcode::kAnd:
      return ast::BinaryOp::kBitAnd;
    case Opcode::kOr:
      return ast::BinaryOp::kBitOr;
    case Opcode::kXor:
      return ast::BinaryOp::kBitXor;
    default:
      return std::nullopt;
  }
}

bool IsKnownInt(const Value& value, WideInt wanted) {
  return value.type.is_scalar() && ir::IsInteger(value.type.dtype) && KnownInt(value) == wanted;
}

}  // namespace

std::optional<ir::ConstantValue> FoldKnown(Opcode opcode, const std::vector<Value>& operands) {
  std::vector<WideInt> v;
  for (const Value& operand : operands) {
    std::optional<WideInt> wide = KnownInt(operand);
    if (!operand.type.is_scalar() || !wide.has_value()) return std::nullopt;
    v.push_back(*wide);
  }
  const ir::DType dtype = operands[0].type.dtype;
  const bool is_bool = dtype == ir::DType::kBool;
  if (v.size() == 2) {
    if (std::optional<bool> holds = ir::Compared(opcode, v[0], v[1])) return int64_t{*holds};
    if (std::optional<ast::BinaryOp> op = ArithmeticOf(opcode)) {
      Problem ignored;
      std::optional<Literal> result = Fold(*op, Literal(v[0]), Literal(v[1]), &ignored);
      if (!result.has_value()) return std::nullopt;
      return is_bool ? int64_t{IsTrue(*result)} : WrapTo(dtype, *AsWide(*result));
    }
  }
  switch (opcode) {
    case Opcode::kMinimum:
      return WrapTo(dtype, std::min(v[0], v[1]));
    case Opcode::kMaximum:
      return WrapTo(dtype, std::max(v[0], v[1]));
    case Opcode::kNegate:
      return WrapTo(dtype, -v[0]);
    case Opcode::kAbs:
      return WrapTo(dtype, v[0] < 0 ? -v[0] : v[0]);
    case Opcode::kNot:
      return is_bool ? int64_t{v[0] == 0} : WrapTo(dtype, ~v[0]);
    default:
      return std::nullopt;
  }
}

std::optional<Value> FoldIdentity(Opcode opcode, const std::vector<Value>& operands) {
  if (operands.size() != 2 || !operands[0].type.is_scalar()) return std::nullopt;
  const Value& a = operands[0];
  const Value& b = operands[1];
  switch (opcode) {
    case Opcode::kAdd:
      if (IsKnownInt(b, 0)) return a;
      if (IsKnownInt(a, 0)) return b;
      break;
    case Opcode::kSub:
      if (IsKnownInt(b, 0)) return a;
      break;
    case Opcode::kMul:
      if (IsKnownInt(b, 1) || IsKnownInt(a, 0)) return a;
      if (IsKnownInt(a, 1) || IsKnownInt(b, 0)) return b;
      break;
    case Opcode::kFloorDiv:
      if (IsKnownInt(b, 1)) return a;
      break;
    case Opcode::kMod:
      if (IsKnownInt(b, 1)) return Value::Known(b.type.dtype, int64_t{0});
      break;
    default:
      break;
  }
  return std::nullopt;
}

}  // namespace phobos::compiler::sema
