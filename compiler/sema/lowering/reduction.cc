// SPDX-License-Identifier: Apache-2.0
//
// Calls of reductions and scans.
#include <algorithm>
#include <bit>
#include <utility>

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

// What no axis can be: 0.0, '1', a tile.
bool IsNoAxis(const Value& value) {
  if (value.is_literal()) return !std::holds_alternative<WideInt>(value.literal);
  return !value.is_scalar() || !ir::IsInteger(value.type.dtype);
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> Checker::Axes(const ast::Expr* expr, const Operand& tile,
                                                   const Builtin& builtin) {
  std::vector<int32_t> axes;
  Operand operand;
  if (expr != nullptr) {
    ASSIGN_OR_RETURN(operand, EvalOperand(*expr));
  }
  const auto rank = static_cast<int32_t>(tile.value.type.shape.size());
  if (operand.value.kind == Value::Kind::kNone) {
    for (int32_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
    return axes;
  }
  std::vector<Value> written = {operand.value};
  if (operand.value.kind == Value::Kind::kTuple) written = operand.value.elements;
  for (Value& value : written) {
    if (IsNoAxis(value)) {
      const std::string name(builtin.name);
      const bool has_pair = name == "max" || name == "min";
      return Error(operand.span,
                   Concat("an axis is an integer, and this is ", Describe(value, kernel_.params)),
                   has_pair ? Concat("write axis=0; of two values it is ph.", name, "imum(a, b)")
                            : "write axis=0");
    }
    ASSIGN_OR_RETURN(
        const int64_t axis,
        ConstantInt({std::move(value), operand.span}, -rank, rank - 1,
                    Concat("the axis of a tile of shape ", ShapeText(tile.value.type.shape))));
    axes.push_back(static_cast<int32_t>(axis < 0 ? axis + rank : axis));
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
    return Error(operand.span, "an axis is named twice", "name each axis once");
  }
  return axes;
}

absl::Status Checker::CheckOneAxis(const std::vector<int32_t>& axes, const ast::Expr* expr,
                                   const Operand& tile, const Builtin& builtin) const {
  if (axes.size() == 1 || axes.size() == tile.value.type.shape.size()) return absl::OkStatus();
  return Error(expr->span,
               Concat("ph.", std::string(builtin.name), " goes along one axis, or all of them"),
               "write axis=0, or leave the axis out");
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
Value Checker::ReduceSides(Opcode opcode, Value tile, std::vector<int32_t> axes) {
  if (axes.size() > 1 && ir::GivesPlace(opcode)) {
    tile = emitter_.Reshape(tile, {tile.type.elements()});  // the place is one number
    axes = {0};
  }
  for (size_t i = axes.size(); i-- > 0;) {
    const int32_t side = axes[i];
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
  std::vector<int32_t> axes = {1};
  bool keeps = true;
  if (!is_row) {
    ASSIGN_OR_RETURN(axes, Axes(arguments[1], tile, builtin));
    if (ir::GivesPlace(builtin.opcode)) {
      RETURN_IF_ERROR(CheckOneAxis(axes, arguments[1], tile, builtin));
    }
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
  ir::Shape kept = shape;
  int64_t count = 1;
  for (int32_t axis : axes) count *= std::exchange(kept[axis], 1);
  Value result = ReduceSides(builtin.opcode, elements, axes);
  if (builtin.kind == Kind::kMean) {
    const Value divisor = Value::Known(working, static_cast<double>(count));
    result = emitter_.Elementwise(Opcode::kDiv,
                                  {result, emitter_.Broadcast(divisor, result.type.shape)});
  }
  result = emitter_.Cast(result, ResultType(builtin, working, dtype));
  if (!keeps) return result;
  return result.is_scalar() ? emitter_.Broadcast(result, kept) : emitter_.Reshape(result, kept);
}

// As NumPy, without an axis along all elements in row-major order.
absl::StatusOr<Value> Checker::EvalScan(const Builtin& builtin,
                                        const std::vector<const ast::Expr*>& arguments, Span span) {
  ASSIGN_OR_RETURN(Operand tile, EvalTile(*arguments[0], Concat("ph.", std::string(builtin.name))));
  ASSIGN_OR_RETURN(const std::vector<int32_t> axes, Axes(arguments[1], tile, builtin));
  RETURN_IF_ERROR(CheckOneAxis(axes, arguments[1], tile, builtin));
  const DType dtype = tile.value.type.dtype;
  const DType working = WorkingType(builtin, dtype);
  ASSIGN_OR_RETURN(Value elements, ToType(tile, working));
  SetPlace(span);
  // Axis 0 of a tile of rank 1, whether it is named or not.
  if (axes.size() > 1) elements = emitter_.Reshape(elements, {elements.type.elements()});
  return emitter_.Cast(emitter_.CumulativeSum(elements, axes.size() > 1 ? 0 : axes[0]),
                       ResultType(builtin, working, dtype));
}

}  // namespace phobos::compiler::sema
