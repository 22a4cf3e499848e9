// SPDX-License-Identifier: Apache-2.0
//
// Calls of reductions and scans.
#include <algorithm>
#include <bit>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/language.h"
#include "compiler/sema/lowering/checker.h"

namespace phobos::compiler::sema {
namespace {

using ir::DType;
using ir::Opcode;
using Kind = Builtin::Kind;

// Partials of a reduction (see ir/rules/opcode.h). Along the last side they are lanes of vectors:
// two of f32 on a chip with AVX-512, a warp of a GPU. Along another side each is a whole vector.
constexpr int64_t kLanePartials = 32;
constexpr int64_t kRowPartials = 4;

// What elements of `dtype` are reduced in.
DType WorkingType(const Builtin& builtin, DType dtype) {
  if (builtin.name == "any" || builtin.name == "all") return DType::kBool;
  if (ir::IsFloat(dtype)) return ir::BitWidth(dtype) == 16 ? DType::kF32 : dtype;
  if (builtin.kind == Kind::kMean) return DType::kF32;
  const bool is_arithmetic =
      builtin.opcode == Opcode::kSumOver || builtin.opcode == Opcode::kProductOver;
  const bool is_small = dtype == DType::kBool || ir::BitWidth(dtype) < 32;
  return is_arithmetic && is_small ? DType::kI32 : dtype;
}

// Of what was reduced in `working`, elements of `dtype`: the type of the result.
DType ResultType(const Builtin& builtin, DType working, DType dtype) {
  if (ir::GivesPlace(builtin.opcode)) return DType::kI32;
  return ir::IsFloat(dtype) && ir::BitWidth(dtype) == 16 && ir::IsFloat(working) ? dtype : working;
}

}  // namespace

absl::StatusOr<std::optional<int32_t>> Checker::Axis(const ast::Expr* expr, const Operand& tile) {
  if (expr == nullptr) return std::optional<int32_t>();
  ASSIGN_OR_RETURN(Operand operand, EvalOperand(*expr));
  if (operand.value.kind == Value::Kind::kNone) return std::optional<int32_t>();
  const auto rank = static_cast<int64_t>(tile.value.type.shape.size());
  if (operand.value.kind == Value::Kind::kTuple) {
    return Error(operand.span, "this goes along one axis, or all of them",
                 "write one call an axis, the last axis first");
  }
  ASSIGN_OR_RETURN(int64_t axis, ConstantInt(operand, -rank, rank - 1,
                                             Concat("the axis of a tile of shape ",
                                                    ShapeText(tile.value.type.shape))));
  return std::optional<int32_t>(static_cast<int32_t>(axis < 0 ? axis + rank : axis));
}

absl::StatusOr<bool> Checker::KeepsSides(const ast::Expr* expr) {
  if (expr == nullptr) return false;
  ASSIGN_OR_RETURN(Operand operand, EvalOperand(*expr));
  if (operand.value.is_literal() && IsBool(operand.value.literal)) {
    return IsTrue(operand.value.literal);
  }
  return Error(
      operand.span,
      Concat("keepdims is True or False, and this is ", Describe(operand.value, kernel_.params)),
      "write keepdims=True to keep the reduced side as a side of 1");
}

// One axis after the other, the last one first, so that each is reduced along consecutive elements.
Value Checker::ReduceSides(Opcode opcode, Value tile, std::optional<int32_t> axis) {
  if (!axis.has_value() && ir::GivesPlace(opcode)) {
    tile = emitter_.Reshape(tile, {tile.type.elements()});  // the place is one number
  }
  const auto rank = static_cast<int32_t>(tile.type.shape.size());
  const int32_t first = axis.value_or(0);
  for (int32_t side = axis.value_or(rank - 1); side >= first; --side) {
    const ir::Shape& shape = tile.type.shape;
    const bool is_last =
        std::all_of(shape.begin() + side + 1, shape.end(), [](int64_t s) { return s == 1; });
    const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(shape[side])));
    const int64_t lanes = std::min(wanted, is_last ? kLanePartials : kRowPartials);
    tile = emitter_.Reduce(opcode, tile, side, static_cast<int32_t>(lanes));
  }
  return tile;
}

absl::StatusOr<Value> Checker::EvalReduction(const Builtin& builtin,
                                             const std::vector<const ast::Expr*>& arguments,
                                             Span span) {
  const bool is_row = builtin.kind == Kind::kRowReduction;
  const std::string name = Concat("ph.", std::string(builtin.name));
  ASSIGN_OR_RETURN(Operand tile, EvalTile(*arguments[0], name));
  const ir::Shape shape = tile.value.type.shape;
  std::optional<int32_t> axis = 1;
  bool keeps = true;
  if (!is_row) {
    ASSIGN_OR_RETURN(axis, Axis(arguments[1], tile));
    ASSIGN_OR_RETURN(keeps, KeepsSides(arguments[2]));
  } else if (shape.size() < 2) {
    return Error(tile.span,
                 Concat(name, " reduces rows, and this is ", Describe(tile.value, kernel_.params)),
                 Concat("write ph.", std::string(builtin.name).substr(3), "(t) for one row"));
  }
  const DType dtype = tile.value.type.dtype;
  const DType working = WorkingType(builtin, dtype);
  ASSIGN_OR_RETURN(Value elements, ToType(tile, working));
  SetPlace(span);
  Value result = ReduceSides(builtin.opcode, elements, axis);
  if (builtin.kind == Kind::kMean) {
    const int64_t count = axis.has_value() ? shape[*axis] : tile.value.type.elements();
    const Value divisor = Value::Known(working, static_cast<double>(count));
    result = emitter_.Elementwise(Opcode::kDiv,
                                  {result, emitter_.Broadcast(divisor, result.type.shape)});
  }
  result = emitter_.Cast(result, ResultType(builtin, working, dtype));
  if (!keeps) return result;
  ir::Shape kept = axis.has_value() ? shape : ir::Shape(shape.size(), 1);
  if (axis.has_value()) kept[*axis] = 1;
  return result.is_scalar() ? emitter_.Broadcast(result, kept) : emitter_.Reshape(result, kept);
}

// As NumPy, without an axis along all elements in row-major order.
absl::StatusOr<Value> Checker::EvalScan(const Builtin& builtin,
                                        const std::vector<const ast::Expr*>& arguments, Span span) {
  ASSIGN_OR_RETURN(Operand tile, EvalTile(*arguments[0], Concat("ph.", std::string(builtin.name))));
  ASSIGN_OR_RETURN(std::optional<int32_t> axis, Axis(arguments[1], tile));
  const DType dtype = tile.value.type.dtype;
  const DType working = WorkingType(builtin, dtype);
  ASSIGN_OR_RETURN(Value elements, ToType(tile, working));
  SetPlace(span);
  if (!axis.has_value()) elements = emitter_.Reshape(elements, {elements.type.elements()});
  return emitter_.Cast(emitter_.CumulativeSum(elements, axis.value_or(0)),
                       ResultType(builtin, working, dtype));
}

}  // namespace phobos::compiler::sema
