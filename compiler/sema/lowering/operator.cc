// SPDX-License-Identifier: Apache-2.0
//
// Operators, and the conversions that they and assignments make.
#include <limits>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/ir/shape.h"
#include "compiler/sema/lowering/checker.h"

namespace phobos::compiler::sema {
namespace {

using ast::BinaryOp;
using ir::DType;
using ir::Opcode;

Opcode OpcodeOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return Opcode::kAdd;
    case BinaryOp::kSub:
      return Opcode::kSub;
    case BinaryOp::kMul:
      return Opcode::kMul;
    case BinaryOp::kDiv:
      return Opcode::kDiv;
    case BinaryOp::kFloorDiv:
      return Opcode::kFloorDiv;
    case BinaryOp::kMod:
      return Opcode::kMod;
    case BinaryOp::kShiftLeft:
      return Opcode::kShiftLeft;
    case BinaryOp::kShiftRight:
      return Opcode::kShiftRight;
    case BinaryOp::kBitAnd:
      return Opcode::kAnd;
    case BinaryOp::kBitOr:
      return Opcode::kOr;
    default:
      return Opcode::kXor;
  }
}

bool IsShift(BinaryOp op) { return op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight; }

bool IsBitwise(BinaryOp op) {
  return op == BinaryOp::kBitAnd || op == BinaryOp::kBitOr || op == BinaryOp::kBitXor;
}

Opcode OpcodeOf(ast::CompareOp op) {
  switch (op) {
    case ast::CompareOp::kEq:
      return Opcode::kEqual;
    case ast::CompareOp::kNe:
      return Opcode::kNotEqual;
    case ast::CompareOp::kLt:
      return Opcode::kLess;
    case ast::CompareOp::kLe:
      return Opcode::kLessEqual;
    case ast::CompareOp::kGt:
      return Opcode::kGreater;
    case ast::CompareOp::kGe:
      return Opcode::kGreaterEqual;
  }
  return Opcode::kEqual;
}

DType IntegerOf(int bits, bool is_signed) {
  switch (bits) {
    case 8:
      return is_signed ? DType::kI8 : DType::kU8;
    case 16:
      return is_signed ? DType::kI16 : DType::kU16;
    case 32:
      return is_signed ? DType::kI32 : DType::kU32;
    default:
      return is_signed ? DType::kI64 : DType::kU64;
  }
}

// The promotion table for two computed types.
DType Promote(DType a, DType b) {
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  if (ir::IsFloat(a) != ir::IsFloat(b)) return ir::IsFloat(a) ? a : b;
  const int bits = std::max(ir::BitWidth(a), ir::BitWidth(b));
  if (ir::IsInteger(a)) return IntegerOf(bits, ir::IsSigned(a) || ir::IsSigned(b));
  if (bits == 16) return DType::kF32;  // f16 with bf16
  return bits == 32 ? DType::kF32 : DType::kF64;
}

}  // namespace

absl::Status Checker::CheckNumber(const Operand& operand) const {
  const Value& value = operand.value;
  if (value.is_number()) return absl::OkStatus();
  const std::string what =
      Concat("a number is needed here, and this is ", Describe(value, kernel_.params));
  if (value.kind == Value::Kind::kTensor) {
    const ir::Param& param = kernel_.params[value.param];
    std::string example = "i:+LENGTH";
    for (size_t i = 1; i < param.dims.size(); ++i) Append(&example, ", j");
    return Error(operand.span, what, Concat("load a part of it: ", param.name, "[", example, "]"));
  }
  if (value.is_literal()) {
    return Error(operand.span, what, "strings serve only as options such as precision=");
  }
  if (value.kind == Value::Kind::kTuple) {
    return Error(operand.span, what, "take it apart first: `a, b = ...`");
  }
  return Error(operand.span, what, "write a scalar or a tile");
}

absl::StatusOr<DType> Checker::CommonType(const std::vector<Operand>& operands) const {
  std::optional<DType> common;
  for (const Operand& operand : operands) {
    if (!operand.value.is_computed()) continue;
    const DType dtype = operand.value.type.dtype;
    common = common.has_value() ? Promote(*common, dtype) : dtype;
  }
  const bool all_literal = !common.has_value();
  for (const Operand& operand : operands) {
    if (!operand.value.is_literal() || IsBool(operand.value.literal)) continue;
    const bool is_float = IsFloat(operand.value.literal);
    if (common.has_value() && ir::IsFloat(*common)) continue;
    const bool fits = !is_float && common.has_value() && *common != DType::kBool && !all_literal;
    if (fits) continue;
    Problem problem;
    std::optional<DType> alone = TypeAlone(operand.value.literal, &problem);
    if (!alone.has_value()) return Error(operand.span, problem);
    common = is_float || !common.has_value() ? *alone : Promote(*common, *alone);
  }
  return common.value_or(DType::kBool);
}

absl::StatusOr<Value> Checker::ToType(const Operand& operand, DType dtype) {
  if (operand.value.is_computed()) return emitter_.Cast(operand.value, dtype);
  Problem problem;
  std::optional<ir::ConstantValue> constant = Convert(operand.value.literal, dtype, &problem);
  if (!constant.has_value()) return Error(operand.span, problem);
  return Value::Known(dtype, *constant);
}

absl::StatusOr<std::vector<Value>> Checker::BroadcastTogether(std::vector<Value> values,
                                                              Span span) {
  ir::Shape shape;
  for (const Value& value : values) {
    std::optional<ir::Shape> both = ir::BroadcastShapes(shape, value.type.shape);
    if (!both.has_value()) {
      return Error(span,
                   Concat("shapes ", ShapeText(shape), " and ", ShapeText(value.type.shape),
                          " do not fit each other"),
                   "from the last side on, two sides must be equal or one of them 1; "
                   "t[:, None] adds a side of 1");
    }
    shape = *std::move(both);
  }
  RETURN_IF_ERROR(CheckShape(shape, span));
  for (Value& value : values) value = emitter_.Broadcast(value, shape);
  return values;
}

absl::StatusOr<std::vector<Value>> Checker::Unify(const std::vector<Operand>& operands, DType dtype,
                                                  Span span) {
  std::vector<Value> values;
  for (const Operand& operand : operands) {
    ASSIGN_OR_RETURN(Value value, ToType(operand, dtype));
    values.push_back(std::move(value));
  }
  return BroadcastTogether(std::move(values), span);
}

absl::StatusOr<Value> Checker::Binary(BinaryOp op, const Operand& a, const Operand& b, Span span) {
  if (a.value.is_literal() && b.value.is_literal()) {
    Problem problem;
    std::optional<Literal> folded = Fold(op, a.value.literal, b.value.literal, &problem);
    if (!folded.has_value()) return Error(span, problem);
    return Value::OfLiteral(*std::move(folded));
  }
  if (op == BinaryOp::kPow) return BinaryPower(a, b, span);
  ASSIGN_OR_RETURN(DType dtype, CommonType({a, b}));
  const std::string spelling(ast::Sign(op));
  const bool is_logic = IsBitwise(op) || IsShift(op);
  if (op == BinaryOp::kDiv && !ir::IsFloat(dtype)) {
    return Error(span, "/ divides floats, and both sides are integers",
                 "write // for integer division, or ph.cast one side to ph.f32");
  }
  if (is_logic && ir::IsFloat(dtype)) {
    return Error(
        span, Concat(spelling, " works on integers and bools, not on floats"),
        IsBitwise(op)
            ? Concat("put parentheses around comparisons, (a > 0) ", spelling,
                     " (b > 0); or ph.cast floats to integers, ph.bitcast them for their bits")
            : "ph.cast the floats to an integer type, or ph.bitcast them to work on their bits");
  }
  if (dtype == DType::kBool && !IsBitwise(op)) {
    return Error(span, Concat(spelling, " works on numbers, and both sides are bools"),
                 "write & | ^ for logic, or ph.cast(x, ph.i32) to count");
  }
  if (IsShift(op) && KnownInt(b.value).value_or(0) < 0) {
    return Error(b.span, "a shift by a negative number", "shift the other way by a positive one");
  }
  ASSIGN_OR_RETURN(std::vector<Value> values, Unify({a, b}, dtype, span));
  return emitter_.Elementwise(OpcodeOf(op), std::move(values));
}

absl::StatusOr<Value> Checker::BinaryPower(const Operand& base, const Operand& exponent,
                                           Span span) {
  const bool is_float_literal = exponent.value.is_literal() && IsFloat(exponent.value.literal);
  std::optional<WideInt> power = KnownInt(exponent.value);
  if (is_float_literal || !power.has_value() || *power < 0 ||
      *power > std::numeric_limits<int32_t>::max()) {
    return Error(exponent.span, "** takes a constant exponent that is an integer >= 0",
                 "write ph.pow(x, y), ph.sqrt(x) or 1.0 / x");
  }
  ASSIGN_OR_RETURN(DType alone, CommonType({base}));
  ASSIGN_OR_RETURN(Value value, ToType(base, alone));
  if (value.type.dtype == DType::kBool) {
    return Error(span, "** works on numbers, and this is a bool", "ph.cast(x, ph.i32) it first");
  }
  if (*power == 1) return value;
  return emitter_.Elementwise(Opcode::kPowInt, {value}, static_cast<int32_t>(*power));
}

absl::StatusOr<Value> Checker::Compare(ast::CompareOp op, const Operand& a, const Operand& b,
                                       Span span) {
  if (a.value.is_literal() && b.value.is_literal()) {
    Problem problem;
    std::optional<bool> holds = Fold(op, a.value.literal, b.value.literal, &problem);
    if (!holds.has_value()) return Error(span, problem);
    return Value::OfLiteral(*holds);
  }
  RETURN_IF_ERROR(CheckNumber(a));
  RETURN_IF_ERROR(CheckNumber(b));
  ASSIGN_OR_RETURN(DType dtype, CommonType({a, b}));
  ASSIGN_OR_RETURN(std::vector<Value> values, Unify({a, b}, dtype, span));
  return emitter_.Elementwise(OpcodeOf(op), std::move(values));
}

absl::StatusOr<Value> Checker::ToTarget(const Operand& operand, const ir::Type& type,
                                        const std::string& target) {
  RETURN_IF_ERROR(CheckNumber(operand));
  ASSIGN_OR_RETURN(Value value, ToType(operand, type.dtype));
  if (ir::BroadcastShapes(value.type.shape, type.shape) == std::optional<ir::Shape>(type.shape)) {
    return emitter_.Broadcast(value, type.shape);
  }
  return Error(operand.span,
               Concat("a value of shape ", ShapeText(value.type.shape), " does not fit ", target,
                      " of shape ", ShapeText(type.shape)),
               type.is_scalar() ? "a scalar holds one number: declare a tile, or take one element"
                                : "make both shapes the same; a scalar fits any");
}

absl::StatusOr<Value> Checker::Settle(const Operand& operand) {
  if (operand.value.is_literal() && IsString(operand.value.literal)) return operand.value;
  RETURN_IF_ERROR(CheckNumber(operand));
  if (operand.value.is_computed()) return operand.value;
  ASSIGN_OR_RETURN(DType dtype, CommonType({operand}));
  return ToType(operand, dtype);
}

absl::StatusOr<Value> Checker::ToIndex(const Operand& operand, const std::string& what) {
  RETURN_IF_ERROR(CheckNumber(operand));
  const Value& value = operand.value;
  const bool is_integer = value.is_literal() ? std::holds_alternative<WideInt>(value.literal)
                                             : ir::IsInteger(value.type.dtype);
  if (!is_integer || !value.is_scalar()) {
    return Error(
        operand.span,
        Concat(what, " is an integer scalar, and this is ", Describe(value, kernel_.params)),
        is_integer ? "give one number" : "convert it with ph.cast(x, ph.i64)");
  }
  return ToType(operand, DType::kI64);
}

absl::StatusOr<int64_t> Checker::ConstantInt(const Operand& operand, int64_t lowest,
                                             int64_t highest, const std::string& what) const {
  std::optional<WideInt> known = KnownInt(operand.value);
  const bool is_float = operand.value.is_literal() && IsFloat(operand.value.literal);
  const bool is_constant = operand.value.is_literal() || operand.value.known.has_value();
  if (is_constant && (!known.has_value() || is_float)) {
    return Error(
        operand.span,
        Concat(what, " is an integer, and this is ", Describe(operand.value, kernel_.params)),
        is_float ? "write an integer; // divides integers to one" : "write an integer");
  }
  if (!known.has_value()) {
    return Error(
        operand.span,
        Concat(what, " must be known at compile time, and this is ",
               operand.value.kind == Value::Kind::kNone ? "None"
                                                        : Describe(operand.value, kernel_.params)),
        "use an integer literal, a module constant or an autotuned constant");
  }
  if (*known < lowest || *known > highest) {
    return Error(operand.span,
                 Concat(what, " is ", ToString(*known), ", outside ", lowest, " to ", highest),
                 "choose a value in that range");
  }
  return static_cast<int64_t>(*known);
}

}  // namespace phobos::compiler::sema
