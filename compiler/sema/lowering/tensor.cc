// SPDX-License-Identifier: Apache-2.0
//
// Subscripts, loads and stores.
#include <limits>

#include "absl/strings/str_join.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/ir/shape.h"
#include "compiler/sema/language.h"
#include "compiler/sema/lowering/checker.h"

namespace phobos::compiler::sema {
namespace {

using ir::DType;

constexpr int64_t kMaxTileElements = int64_t{1} << 20;

std::string DimText(const ir::Dim& dim, const std::vector<ir::Extent>& extents) {
  return dim.extent >= 0 ? extents[dim.extent].name : Concat(dim.literal);
}

// x[i:+B, None]: what is meant is x[i:+B][:, None].
std::string AxisRemedy(const Source& source, const std::string& tensor, const ast::Index& index) {
  std::vector<std::string> loaded;
  std::vector<std::string> axes;
  for (const ast::Subscript& subscript : index.subscripts) {
    const bool is_axis = subscript.kind == ast::Subscript::Kind::kNewAxis;
    if (!is_axis) loaded.emplace_back(source.text(subscript.span));
    if (subscript.kind != ast::Subscript::Kind::kIndex) axes.emplace_back(is_axis ? "None" : ":");
  }
  if (loaded.empty()) return "load a tile first, then add the axis: t[:, None]";
  return Concat("load the tile first, then add the axis: ", tensor, "[",
                absl::StrJoin(loaded, ", "), "][", absl::StrJoin(axes, ", "), "]");
}

// Of an atomic that is given a tile for one element.
std::string OneElementRemedy(ir::Opcode opcode) {
  std::string_view one;
  if (opcode == ir::Opcode::kAtomicAdd) one = "sum";
  if (opcode == ir::Opcode::kAtomicMaximum) one = "max";
  if (opcode == ir::Opcode::kAtomicMinimum) one = "min";
  const std::string each = "name as many elements as the tile has: A[i:+LENGTH]";
  if (one.empty()) return each;
  return Concat("make one number of the tile first: ph.", one, "(t); or ", each);
}

}  // namespace

absl::StatusOr<Value> Checker::EvalIndex(const ast::Index& index, Span span) {
  ASSIGN_OR_RETURN(Operand base, EvalOperand(*index.base));
  if (base.value.kind == Value::Kind::kTensor) {
    ASSIGN_OR_RETURN(Access access, CheckAccess(index, base, span));
    return EmitLoad(access, nullptr, nullptr);
  }
  RETURN_IF_ERROR(CheckNumber(base));
  return AddAxes(index, base, span);
}

absl::StatusOr<Access> Checker::CheckAccess(const ast::Index& index, const Operand& tensor,
                                            Span span) {
  Access access;
  access.param = tensor.value.param;
  access.span = span;
  const ir::Param& param = kernel_.params[access.param];
  for (const ast::Subscript& subscript : index.subscripts) {
    if (subscript.kind != ast::Subscript::Kind::kNewAxis) continue;
    return Error(subscript.span, "a tensor takes no new axis",
                 AxisRemedy(source_, param.name, index));
  }
  if (index.subscripts.size() != param.dims.size()) {
    std::vector<std::string> example;
    for (size_t i = 0; i < param.dims.size(); ++i) {
      example.push_back(i + 1 == param.dims.size() ? "i:+LENGTH" : Concat("i", i));
    }
    const bool has_one = index.subscripts.size() == 1;
    const std::string have =
        Concat(has_one ? "is " : "are ", index.subscripts.size(), " subscript", has_one ? "" : "s");
    return Error(span,
                 Concat(param.name, " has ", param.dims.size(), " dimension",
                        param.dims.size() == 1 ? "" : "s", ", and here ", have),
                 Concat("write one subscript a dimension: ", param.name, "[",
                        absl::StrJoin(example, ", "), "]"));
  }
  for (size_t i = 0; i < param.dims.size(); ++i) {
    RETURN_IF_ERROR(CheckSubscript(index.subscripts[i], param.dims[i], param.name, &access));
  }
  RETURN_IF_ERROR(FindShape(&access));
  return access;
}

absl::StatusOr<Access> Checker::CheckAccessExpr(const ast::Expr& expr, const std::string& builtin) {
  if (const ast::Index* index = std::get_if<ast::Index>(&expr.node)) {
    ASSIGN_OR_RETURN(Operand base, EvalOperand(*index->base));
    if (base.value.kind == Value::Kind::kTensor) return CheckAccess(*index, base, expr.span);
  }
  return Error(expr.span, Concat(builtin, " takes a part of a tensor first"),
               Concat("write ", builtin, "(A[i:+LENGTH], ...)"));
}

absl::Status Checker::CheckSubscript(const ast::Subscript& subscript, const ir::Dim& dim,
                                     const std::string& tensor, Access* access) {
  switch (subscript.kind) {
    case ast::Subscript::Kind::kIndex:
      return CheckElement(subscript, access);
    case ast::Subscript::Kind::kLengthSlice:
      return CheckLengthSlice(subscript, access);
    case ast::Subscript::Kind::kSlice:
      return CheckBoundSlice(subscript, dim, tensor, access);
    case ast::Subscript::Kind::kNewAxis:
      break;  // CheckAccess has refused it
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> Checker::Position(const Operand& operand) {
  std::optional<WideInt> known = KnownInt(operand.value);
  if (operand.value.is_literal() && known.has_value() && *known < 0) {
    return Error(operand.span, Concat("position ", ToString(*known), " lies before the tensor"),
                 "positions never count from the end: write the extent's name minus a number");
  }
  return ToIndex(operand, "a position");
}

absl::Status Checker::CheckElement(const ast::Subscript& subscript, Access* access) {
  ASSIGN_OR_RETURN(Operand operand, EvalNumber(*subscript.first));
  const Value& value = operand.value;
  if (!value.is_scalar() && ir::IsInteger(value.type.dtype)) {
    ASSIGN_OR_RETURN(Value positions, ToType(operand, DType::kI64));
    access->subscripts.push_back(
        {ir::Subscript::Kind::kGather, emitter_.Id(positions), /*length=*/1});
    return absl::OkStatus();
  }
  if (!value.is_scalar() && value.type.dtype == DType::kBool) {
    return Error(operand.span, "a tile of bools selects no elements",
                 "give it as mask= to ph.load or ph.store");
  }
  ASSIGN_OR_RETURN(Value position, Position(operand));
  access->subscripts.push_back(
      {ir::Subscript::Kind::kElement, emitter_.Id(position), /*length=*/1});
  return absl::OkStatus();
}

// The shape that the subscripts give.
absl::Status Checker::FindShape(Access* access) {
  std::vector<std::string> gathered;
  for (const ir::Subscript& subscript : access->subscripts) {
    if (subscript.kind != ir::Subscript::Kind::kGather) continue;
    gathered.push_back(ShapeText(emitter_.TypeOf(subscript.position).shape));
  }
  std::optional<ir::Shape> shape = ir::SubscriptShape(
      access->subscripts, [this](ir::ValueId value) { return emitter_.TypeOf(value).shape; });
  if (!shape.has_value()) {
    return Error(access->span,
                 Concat("index tiles of shapes ", absl::StrJoin(gathered, " and "),
                        " do not fit each other"),
                 "they are taken together, element by element; for each with each write "
                 "A[rows[:, None], columns[None, :]]");
  }
  access->shape = *std::move(shape);
  return CheckShape(access->shape, access->span);
}

absl::Status Checker::CheckLengthSlice(const ast::Subscript& subscript, Access* access) {
  ASSIGN_OR_RETURN(Operand start, EvalNumber(*subscript.first));
  ASSIGN_OR_RETURN(Value position, Position(start));
  ASSIGN_OR_RETURN(Operand length, EvalOperand(*subscript.second));
  ASSIGN_OR_RETURN(int64_t elements,
                   ConstantInt(length, 1, kMaxTileElements, "the length of a slice"));
  access->subscripts.push_back({ir::Subscript::Kind::kSlice, emitter_.Id(position), elements});
  return absl::OkStatus();
}

absl::Status Checker::CheckBoundSlice(const ast::Subscript& subscript, const ir::Dim& dim,
                                      const std::string& tensor, Access* access) {
  if (subscript.second == nullptr && dim.extent >= 0) {
    const std::string extent = DimText(dim, emitter_.function().extents);
    return Error(subscript.span,
                 Concat("the end of this slice is the extent ", extent,
                        ", which is not known at compile time"),
                 Concat("write ", tensor, "[i:+LENGTH] with a constant length; what lies outside",
                        " reads as 0"));
  }
  Operand start{Value::OfInt(0), subscript.span};
  if (subscript.first != nullptr) {
    ASSIGN_OR_RETURN(start, EvalNumber(*subscript.first));
  }
  ASSIGN_OR_RETURN(Value from, Position(start));
  // The end is only measured: what it emits is dropped.
  emitter_.BeginRegion();
  absl::StatusOr<Value> to = ToIndex({Value::OfInt(dim.literal), subscript.span}, "a position");
  if (subscript.second != nullptr) {
    absl::StatusOr<Operand> end = EvalNumber(*subscript.second);
    to = end.ok() ? Position(*end) : end.status();
  }
  std::optional<int64_t> length;
  if (to.ok()) length = emitter_.Difference(*to, from);
  emitter_.EndRegion();
  RETURN_IF_ERROR(to.status());
  if (!length.has_value()) {
    return Error(subscript.span, "the length of this slice is not known at compile time",
                 Concat("write ", tensor, "[start:+LENGTH] with a constant length"));
  }
  if (*length < 1) {
    return Error(subscript.span, Concat("this slice has ", *length, " elements"),
                 "a slice has at least one: its end lies after its start");
  }
  if (*length > kMaxTileElements) return TooLarge(*length, subscript.span);
  access->subscripts.push_back({ir::Subscript::Kind::kSlice, emitter_.Id(from), *length});
  return absl::OkStatus();
}

Value Checker::EmitLoad(const Access& access, const Value* fill, const Value* mask) {
  SetPlace(access.span);
  return emitter_.Load(access.param, access.subscripts, fill, mask);
}

std::string Checker::TargetText(const Access& access) const {
  return Concat("the part of ", kernel_.params[access.param].name);
}

absl::StatusOr<Value> Checker::Mask(const ast::Expr& expr, const std::vector<int64_t>& shape) {
  ASSIGN_OR_RETURN(Operand mask, EvalNumber(expr));
  const bool is_bool =
      mask.value.is_literal() ? IsBool(mask.value.literal) : mask.value.type.dtype == DType::kBool;
  if (!is_bool) {
    return Error(
        mask.span,
        Concat("a mask is made of bools, and this is ", Describe(mask.value, kernel_.params)),
        "write a comparison, for example m != 0");
  }
  return ToTarget(mask, ir::Type{DType::kBool, shape}, "the masked part");
}

absl::StatusOr<Value> Checker::EvalLoad(const std::vector<const ast::Expr*>& arguments) {
  ASSIGN_OR_RETURN(Access access, CheckAccessExpr(*arguments[0], "ph.load"));
  const DType dtype = kernel_.params[access.param].dtype;
  std::optional<Value> fill;
  std::optional<Value> mask;
  if (arguments[1] != nullptr) {
    ASSIGN_OR_RETURN(Operand operand, EvalNumber(*arguments[1]));
    const ir::Type type{dtype, operand.value.is_scalar() ? ir::Shape{} : access.shape};
    ASSIGN_OR_RETURN(fill, ToTarget(operand, type, TargetText(access)));
  }
  if (arguments[2] != nullptr) {
    ASSIGN_OR_RETURN(mask, Mask(*arguments[2], access.shape));
  }
  return EmitLoad(access, fill.has_value() ? &*fill : nullptr, mask.has_value() ? &*mask : nullptr);
}

absl::StatusOr<Value> Checker::EvalStore(const std::vector<const ast::Expr*>& arguments,
                                         Span span) {
  ASSIGN_OR_RETURN(Access access, CheckAccessExpr(*arguments[0], "ph.store"));
  const ir::Type type{kernel_.params[access.param].dtype, access.shape};
  ASSIGN_OR_RETURN(Operand operand, EvalNumber(*arguments[1]));
  ASSIGN_OR_RETURN(Value value, ToTarget(operand, type, TargetText(access)));
  std::optional<Value> mask;
  if (arguments[2] != nullptr) {
    ASSIGN_OR_RETURN(mask, Mask(*arguments[2], access.shape));
  }
  SetPlace(span);
  emitter_.Store(access.param, access.subscripts, value, mask.has_value() ? &*mask : nullptr);
  return Value();
}

absl::StatusOr<Value> Checker::EvalAtomic(const Builtin& builtin,
                                          const std::vector<const ast::Expr*>& arguments, Span span,
                                          bool has_result) {
  const std::string name = Concat("ph.", std::string(builtin.name));
  ASSIGN_OR_RETURN(Access access, CheckAccessExpr(*arguments[0], name));
  const ir::Param& tensor = kernel_.params[access.param];
  if (!ir::AtomicWorksOn(builtin.opcode, tensor.dtype)) {
    const bool is_bool = tensor.dtype == DType::kBool;
    return Error(access.span,
                 Concat(name, " works on ", is_bool ? "numbers" : "integers and bools", ", and ",
                        tensor.name, " is a tensor of ", ir::Name(tensor.dtype)),
                 is_bool ? "write ph.atomic_or or ph.atomic_and for bools"
                         : "atomics of floats are ph.atomic_add, ph.atomic_max, ph.atomic_min and "
                           "ph.atomic_cas");
  }
  const ir::Type type{tensor.dtype, access.shape};
  std::vector<Value> operands;
  for (size_t i = 1; i < arguments.size(); ++i) {
    ASSIGN_OR_RETURN(Operand operand, EvalNumber(*arguments[i]));
    if (type.is_scalar() && !operand.value.is_scalar()) {
      return Error(operand.span,
                   Concat(TargetText(access), " is one element, and this is ",
                          Describe(operand.value, kernel_.params)),
                   OneElementRemedy(builtin.opcode));
    }
    ASSIGN_OR_RETURN(Value value, ToTarget(operand, type, TargetText(access)));
    operands.push_back(std::move(value));
  }
  SetPlace(span);
  return emitter_.Atomic(builtin.opcode, access.param, access.subscripts, operands, has_result);
}

}  // namespace phobos::compiler::sema
