// SPDX-License-Identifier: Apache-2.0
//
// Shapes of tiles: their sides as they are written, and the built-ins that only arrange elements.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/language.h"
#include "compiler/sema/lowering/checker.h"

namespace phobos::compiler::sema {
namespace {

constexpr int64_t kMaxTileElements = int64_t{1} << 20;
constexpr size_t kMaxRank = 4;

int64_t ElementsOf(const ir::Shape& shape) { return ir::Type{ir::DType::kI64, shape}.elements(); }

bool IsWholeSide(const ast::Subscript& subscript) {
  return subscript.kind == ast::Subscript::Kind::kSlice && subscript.first == nullptr &&
         subscript.second == nullptr;
}

}  // namespace

absl::Status Checker::TooLarge(int64_t elements, Span span) const {
  return Error(
      span, Concat("a tile of ", elements, " elements is too large"),
      Concat("a tile holds at most ", kMaxTileElements, " elements: loop over smaller ones"));
}

absl::Status Checker::CheckShape(const ir::Shape& shape, Span span) const {
  if (shape.size() > kMaxRank) {
    return Error(
        span,
        Concat("a tile of rank ", shape.size(), ", and a tile has at most ", kMaxRank, " sides"),
        "put sides together with ph.reshape, or loop over one of them");
  }
  int64_t elements = 1;
  for (int64_t side : shape) {
    elements *= side;
    if (elements > kMaxTileElements) return TooLarge(elements, span);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Operand>> Checker::SideOperands(
    const std::vector<const ast::Expr*>& arguments, size_t first) {
  std::vector<Operand> operands;
  for (size_t i = first; i < arguments.size(); ++i) {
    ASSIGN_OR_RETURN(Operand operand, EvalOperand(*arguments[i]));
    operands.push_back(std::move(operand));
  }
  if (operands.size() != 1 || operands[0].value.kind != Value::Kind::kTuple) return operands;
  const Operand tuple = operands[0];
  operands.clear();
  for (const Value& element : tuple.value.elements) operands.push_back({element, tuple.span});
  return operands;
}

absl::StatusOr<ir::Shape> Checker::Sides(const std::vector<Operand>& sides, Span span,
                                         int64_t infer_from) const {
  ir::Shape shape;
  size_t inferred = sides.size();
  for (size_t i = 0; i < sides.size(); ++i) {
    const std::optional<WideInt> known = KnownInt(sides[i].value);
    if (infer_from > 0 && known.has_value() && *known == -1) {
      if (inferred < i) {
        return Error(sides[i].span, "two sides are -1", "only one side can follow from the others");
      }
      inferred = i;
      shape.push_back(1);
      continue;
    }
    ASSIGN_OR_RETURN(int64_t length,
                     ConstantInt(sides[i], 1, kMaxTileElements, "the side of a tile"));
    shape.push_back(length);
    RETURN_IF_ERROR(CheckShape(shape, span));
  }
  RETURN_IF_ERROR(CheckShape(shape, span));
  if (inferred < sides.size()) {
    shape[inferred] = std::max<int64_t>(1, infer_from / ElementsOf(shape));
  }
  return shape;
}

absl::StatusOr<Operand> Checker::EvalTile(const ast::Expr& expr, const std::string& what) {
  ASSIGN_OR_RETURN(Operand operand, EvalNumber(expr));
  if (!operand.value.is_scalar()) return operand;
  return Error(operand.span,
               Concat(what, " takes a tile, and this is ", Describe(operand.value, kernel_.params)),
               "ph.full(T, value, LENGTH) makes a tile of a scalar");
}

absl::StatusOr<Value> Checker::AddAxes(const ast::Index& index, const Operand& tile, Span span) {
  const ir::Shape& shape = tile.value.type.shape;
  ir::Shape result;
  size_t next = 0;
  for (const ast::Subscript& subscript : index.subscripts) {
    const bool is_axis = subscript.kind == ast::Subscript::Kind::kNewAxis;
    if (tile.value.is_scalar() || (!is_axis && !IsWholeSide(subscript))) {
      return Error(span,
                   Concat("this is ", Describe(tile.value, kernel_.params),
                          ", and only tensors have elements to take"),
                   "load the part you need from the tensor, or choose with ph.where and ph.iota");
    }
    if (!is_axis && next == shape.size()) {
      return Error(subscript.span,
                   Concat("this tile has ", shape.size(), " side", shape.size() == 1 ? "" : "s",
                          ", and here is one more `:`"),
                   "write one `:` a side, and None where a side of 1 is added");
    }
    result.push_back(is_axis ? 1 : shape[next++]);
  }
  result.insert(result.end(), shape.begin() + next, shape.end());
  RETURN_IF_ERROR(CheckShape(result, span));
  SetPlace(span);
  return emitter_.Reshape(tile.value, result);
}

absl::StatusOr<Value> Checker::EvalReshape(const std::vector<const ast::Expr*>& arguments,
                                           Span span) {
  ASSIGN_OR_RETURN(Operand tile, EvalTile(*arguments[0], "ph.reshape"));
  const int64_t elements = tile.value.type.elements();
  ASSIGN_OR_RETURN(std::vector<Operand> operands, SideOperands(arguments, 1));
  ASSIGN_OR_RETURN(ir::Shape shape, Sides(operands, span, elements));
  if (shape.empty()) {
    return Error(span, "ph.reshape gives a tile, and here is no side",
                 "a tile becomes a scalar by a reduction such as ph.sum(t)");
  }
  if (ElementsOf(shape) != elements) {
    return Error(span,
                 Concat("a tile of shape ", ShapeText(tile.value.type.shape), " has ", elements,
                        " elements, and shape ", ShapeText(shape), " has ", ElementsOf(shape)),
                 "ph.reshape keeps the elements: both shapes have equally many");
  }
  SetPlace(span);
  return emitter_.Reshape(tile.value, shape);
}

absl::StatusOr<Value> Checker::EvalTranspose(const std::vector<const ast::Expr*>& arguments,
                                             Span span) {
  ASSIGN_OR_RETURN(Operand tile, EvalTile(*arguments[0], "ph.transpose"));
  const auto rank = static_cast<int64_t>(tile.value.type.shape.size());
  std::vector<int32_t> permutation;
  for (int64_t side = rank; side-- > 0;) permutation.push_back(static_cast<int32_t>(side));
  SetPlace(span);
  if (arguments[1] == nullptr) return emitter_.Transpose(tile.value, permutation);
  ASSIGN_OR_RETURN(std::vector<Operand> sides, SideOperands(arguments, 1));
  permutation.clear();
  for (const Operand& side : sides) {
    ASSIGN_OR_RETURN(int64_t axis, ConstantInt(side, -rank, rank - 1, "an axis of this tile"));
    permutation.push_back(static_cast<int32_t>(axis < 0 ? axis + rank : axis));
  }
  std::vector<int32_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  const bool has_all = static_cast<int64_t>(sorted.size()) == rank &&
                       std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (!has_all) {
    return Error(arguments[1]->span,
                 Concat("(", absl::StrJoin(permutation, ", "), ") is no order of the ", rank,
                        " axes of a tile of shape ", ShapeText(tile.value.type.shape)),
                 "name each axis once, for example ph.transpose(t, (1, 0))");
  }
  return emitter_.Transpose(tile.value, permutation);
}

// Tiles that meet in one type; sides before the last one are equal.
absl::StatusOr<Value> Checker::EvalPair(const Builtin& builtin,
                                        const std::vector<const ast::Expr*>& arguments, Span span) {
  const std::string name = Concat("ph.", std::string(builtin.name));
  std::vector<Operand> tiles;
  for (const ast::Expr* argument : arguments) {
    ASSIGN_OR_RETURN(Operand tile, EvalTile(*argument, name));
    tiles.push_back(std::move(tile));
  }
  ir::Shape first = tiles[0].value.type.shape;
  ir::Shape second = tiles[1].value.type.shape;
  const std::string shapes = Concat(ShapeText(first), " and ", ShapeText(second));
  const bool is_join = builtin.opcode == ir::Opcode::kJoin;
  ir::Shape result = first;
  result.back() += second.back();
  if (is_join) first.back() = second.back() = 1;
  if (first != second) {
    return Error(span,
                 Concat(name, " puts tiles together along the last axis, and shapes ", shapes,
                        " do not fit each other"),
                 is_join ? "all sides but the last one are equal" : "both have one shape");
  }
  RETURN_IF_ERROR(CheckShape(result, span));
  ASSIGN_OR_RETURN(ir::DType dtype, CommonType(tiles));
  ASSIGN_OR_RETURN(Value a, ToType(tiles[0], dtype));
  ASSIGN_OR_RETURN(Value b, ToType(tiles[1], dtype));
  SetPlace(span);
  return emitter_.Pair(builtin.opcode, a, b);
}

}  // namespace phobos::compiler::sema
