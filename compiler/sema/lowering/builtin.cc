// SPDX-License-Identifier: Apache-2.0
//
// Calls of the language's functions.
#include <algorithm>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/ir/shape.h"
#include "compiler/sema/language.h"
#include "compiler/sema/lowering/checker.h"

namespace phobos::compiler::sema {
namespace {

using ir::DType;
using ir::Opcode;
using Kind = Builtin::Kind;

constexpr int64_t kMaxTileElements = int64_t{1} << 20;

struct ParameterName {
  std::string name;
  bool optional = false;
};

// Takes Builtin::parameters apart; *variadic: it ends in "...".
std::vector<ParameterName> ParameterNames(std::string_view list, bool* variadic) {
  std::vector<ParameterName> names;
  *variadic = false;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    if (name == "...") {
      *variadic = true;
      break;
    }
    const bool optional = name.back() == '?';
    if (optional) name.remove_suffix(1);
    names.push_back({std::string(name), optional});
  }
  return names;
}

bool AllLiteral(const std::vector<Operand>& operands) {
  return std::all_of(operands.begin(), operands.end(),
                     [](const Operand& operand) { return operand.value.is_literal(); });
}

std::string Written(std::string_view name) { return Concat("ph.", std::string(name)); }

}  // namespace

absl::StatusOr<std::vector<const ast::Expr*>> Checker::BindArguments(const Builtin& builtin,
                                                                     const ast::Call& call,
                                                                     Span span) {
  bool variadic = false;
  const std::vector<ParameterName> names = ParameterNames(builtin.parameters, &variadic);
  std::string usage = Concat("write ", Written(builtin.name), "(");
  for (size_t i = 0; i < names.size(); ++i) {
    Append(&usage, i > 0 ? ", " : "", names[i].name, names[i].optional ? "=..." : "");
  }
  Append(&usage, variadic && !names.empty() ? ", " : "", variadic ? "...)" : ")");
  std::vector<const ast::Expr*> bound(names.size(), nullptr);
  for (size_t i = 0; i < call.positional.size(); ++i) {
    if (i < names.size()) {
      bound[i] = call.positional[i].get();
    } else if (variadic) {
      bound.push_back(call.positional[i].get());
    } else {
      return Error(call.positional[i]->span,
                   Concat("too many arguments for ", Written(builtin.name)), usage);
    }
  }
  for (const ast::KeywordArgument& argument : call.keyword) {
    auto found = std::find_if(names.begin(), names.end(), [&](const ParameterName& parameter) {
      return parameter.name == argument.name;
    });
    if (found == names.end()) {
      return Error(argument.name_span,
                   Concat(Written(builtin.name), " takes no argument ", argument.name), usage);
    }
    const ast::Expr*& slot = bound[found - names.begin()];
    if (slot != nullptr) {
      return Error(argument.name_span, Concat(argument.name, " is given twice"), usage);
    }
    slot = argument.value.get();
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (bound[i] == nullptr && !names[i].optional) {
      return Error(span, Concat(Written(builtin.name), " needs an argument ", names[i].name),
                   usage);
    }
  }
  return bound;
}

absl::StatusOr<Value> Checker::CallBuiltin(const ast::LanguageName& name, const ast::Call& call,
                                           Span span) {
  const Builtin* builtin = name.path.size() == 1 ? FindBuiltin(name.path[0]) : nullptr;
  if (builtin == nullptr || builtin->kind == Kind::kStructure) {
    ASSIGN_OR_RETURN(Value value, EvalLanguageName(name, call.callee->span));
    return Error(call.callee->span,
                 Concat("this is ", Describe(value, kernel_.params), ", and no function"),
                 value.kind == Value::Kind::kDType
                     ? Concat("convert with ph.cast(x, ", Written(ir::Name(value.dtype)), ")")
                     : "use it without parentheses");
  }
  ASSIGN_OR_RETURN(Arguments arguments, BindArguments(*builtin, call, span));
  switch (builtin->kind) {
    case Kind::kWhere:
      return EvalWhere(arguments, span);
    case Kind::kCast:
    case Kind::kBitcast:
      return EvalCast(arguments, builtin->kind == Kind::kBitcast, span);
    case Kind::kIota:
      return EvalIota(*arguments[0]);
    case Kind::kZeros:
    case Kind::kFull:
      return EvalFill(arguments, builtin->kind == Kind::kFull, span);
    case Kind::kReduction:
    case Kind::kMean:
    case Kind::kRowReduction:
      return EvalReduction(*builtin, arguments, span);
    case Kind::kScan:
      return EvalScan(*builtin, arguments, span);
    case Kind::kReshape:
      return EvalReshape(arguments, span);
    case Kind::kTranspose:
      return EvalTranspose(arguments, span);
    case Kind::kDot:
    case Kind::kDotTransposed:
      return EvalDot(*builtin, arguments, span);
    case Kind::kPair:
      return EvalPair(*builtin, arguments, span);
    case Kind::kExtent:
      return EvalExtent(arguments);
    case Kind::kLoad:
      return EvalLoad(arguments);
    case Kind::kStore:
      return EvalStore(arguments, span);
    case Kind::kAtomic:
      return EvalAtomic(*builtin, arguments, span, /*has_result=*/true);
    case Kind::kAssert:
      return EvalAssert(arguments, span);
    case Kind::kAssume:
      return EvalAssume(*arguments[0]);
    case Kind::kPrint:
      return EvalPrint(arguments, span);
    default:
      return CallOnNumbers(*builtin, arguments, span);
  }
}

absl::StatusOr<Value> Checker::CallOnNumbers(const Builtin& builtin, const Arguments& arguments,
                                             Span span) {
  std::vector<Operand> operands;
  for (const ast::Expr* argument : arguments) {
    ASSIGN_OR_RETURN(Operand operand, EvalNumber(*argument));
    operands.push_back(std::move(operand));
  }
  switch (builtin.kind) {
    case Kind::kClip:
      return EvalClip(std::move(operands), span);
    case Kind::kCeilDivide:
      return EvalCeilDivide(operands[0], operands[1], span);
    case Kind::kRandom:
      return EvalRandom(operands, span);
    default:
      return EvalElementwise(builtin, std::move(operands), span);
  }
}

absl::StatusOr<DType> Checker::ElementwiseType(const Builtin& builtin,
                                               const std::vector<Operand>& operands,
                                               Span span) const {
  ASSIGN_OR_RETURN(DType dtype, CommonType(operands));
  const bool wants_float = builtin.kind == Kind::kFloat || builtin.kind == Kind::kPow;
  if (wants_float && !ir::IsFloat(dtype)) return DType::kF32;
  if (builtin.kind == Kind::kMulHigh && !ir::IsInteger(dtype)) {
    return Error(span, "ph.mulhi multiplies integers", "use * for floats");
  }
  return dtype;
}

absl::StatusOr<Value> Checker::EvalElementwise(const Builtin& builtin,
                                               std::vector<Operand> operands, Span span) {
  if (AllLiteral(operands) && builtin.kind != Kind::kMulHigh) {
    std::vector<Literal> literals;
    for (const Operand& operand : operands) literals.push_back(operand.value.literal);
    const bool is_int_power = builtin.kind == Kind::kPow && !IsFloat(literals[0]) &&
                              !IsFloat(literals[1]) && *AsWide(literals[1]) >= 0;
    if (is_int_power) return Binary(ast::BinaryOp::kPow, operands[0], operands[1], span);
    Problem problem;
    std::optional<Literal> folded = Fold(builtin.opcode, literals, &problem);
    if (!folded.has_value()) return Error(span, problem);
    return Value::OfLiteral(*std::move(folded));
  }
  ASSIGN_OR_RETURN(DType dtype, ElementwiseType(builtin, operands, span));
  // Integer powers are exact where the exponent is known, as ** is.
  ASSIGN_OR_RETURN(DType given, CommonType(operands));
  if (builtin.kind == Kind::kPow && !ir::IsFloat(given)) {
    return Binary(ast::BinaryOp::kPow, operands[0], operands[1], span);
  }
  ASSIGN_OR_RETURN(std::vector<Value> values, Unify(operands, dtype, span));
  const bool is_float = ir::IsFloat(dtype);
  if (builtin.kind == Kind::kRounding && !is_float) return values[0];
  if (builtin.kind == Kind::kTest && !is_float) {
    return emitter_.Broadcast(Value::Known(DType::kBool, int64_t{0}), values[0].type.shape);
  }
  if (builtin.kind == Kind::kNumber && dtype == DType::kBool) {
    if (builtin.opcode == Opcode::kAbs) return values[0];
    const bool is_minimum = builtin.opcode == Opcode::kMinimum;
    return emitter_.Elementwise(is_minimum ? Opcode::kAnd : Opcode::kOr, std::move(values));
  }
  return emitter_.Elementwise(builtin.opcode, std::move(values));
}

absl::StatusOr<Value> Checker::EvalWhere(const std::vector<const ast::Expr*>& arguments,
                                         Span span) {
  ASSIGN_OR_RETURN(Operand condition, EvalNumber(*arguments[0]));
  ASSIGN_OR_RETURN(Operand a, EvalNumber(*arguments[1]));
  ASSIGN_OR_RETURN(Operand b, EvalNumber(*arguments[2]));
  if (AllLiteral({condition, a, b})) {
    return IsTrue(condition.value.literal) ? a.value : b.value;
  }
  ASSIGN_OR_RETURN(DType dtype, CommonType({a, b}));
  ASSIGN_OR_RETURN(Value if_true, ToType(a, dtype));
  ASSIGN_OR_RETURN(Value if_false, ToType(b, dtype));
  Value chosen = condition.value;
  if (chosen.is_literal()) {
    chosen = Value::Known(DType::kBool, int64_t{IsTrue(chosen.literal)});
  } else {
    chosen = emitter_.Cast(chosen, DType::kBool);
  }
  ASSIGN_OR_RETURN(std::vector<Value> values, BroadcastTogether({chosen, if_true, if_false}, span));
  return emitter_.Elementwise(Opcode::kSelect, std::move(values));
}

absl::StatusOr<Value> Checker::EvalClip(std::vector<Operand> operands, Span span) {
  if (AllLiteral(operands)) {
    Problem problem;
    std::optional<Literal> result = operands[0].value.literal;
    result = Fold(Opcode::kMaximum, {*result, operands[1].value.literal}, &problem);
    if (result.has_value()) {
      result = Fold(Opcode::kMinimum, {*result, operands[2].value.literal}, &problem);
    }
    if (!result.has_value()) return Error(span, problem);
    return Value::OfLiteral(*std::move(result));
  }
  ASSIGN_OR_RETURN(DType dtype, CommonType(operands));
  if (dtype == DType::kBool) {
    return Error(span, "ph.clip works on numbers, and all of these are bools",
                 "write & and | for logic");
  }
  ASSIGN_OR_RETURN(std::vector<Value> values, Unify(operands, dtype, span));
  const Value raised = emitter_.Elementwise(Opcode::kMaximum, {values[0], values[1]});
  return emitter_.Elementwise(Opcode::kMinimum, {raised, values[2]});
}

absl::StatusOr<Value> Checker::EvalCeilDivide(const Operand& a, const Operand& b, Span span) {
  for (const Operand* operand : {&a, &b}) {
    const Value& value = operand->value;
    const bool is_float =
        value.is_literal() ? IsFloat(value.literal) : ir::IsFloat(value.type.dtype);
    if (is_float) {
      return Error(operand->span, "ph.cdiv divides integers", "write ph.ceil(a / b) for floats");
    }
  }
  // a // b, and one more when something is left: right for unsigned types too.
  ASSIGN_OR_RETURN(Value floor, Binary(ast::BinaryOp::kFloorDiv, a, b, span));
  ASSIGN_OR_RETURN(Value rest, Binary(ast::BinaryOp::kMod, a, b, span));
  const Operand zero{Value::OfInt(0), span};
  ASSIGN_OR_RETURN(Value more, Compare(ast::CompareOp::kNe, {rest, span}, zero, span));
  return Binary(ast::BinaryOp::kAdd, {floor, span}, {more, span}, span);
}

absl::StatusOr<Value> Checker::EvalRandom(const std::vector<Operand>& operands, Span span) {
  std::vector<Value> values;
  for (const Operand& operand : operands) {
    const Value& value = operand.value;
    const bool is_int = value.is_literal() ? !IsFloat(value.literal) && !IsBool(value.literal)
                                           : ir::IsInteger(value.type.dtype);
    if (!is_int) {
      return Error(operand.span,
                   Concat("ph.random_u32 counts with integers, and this is ",
                          Describe(value, kernel_.params)),
                   "write ph.random_u32(seed, index), for example with index = i + ph.iota(L)");
    }
    ASSIGN_OR_RETURN(Value number, ToType(operand, DType::kU64));
    values.push_back(std::move(number));
  }
  ASSIGN_OR_RETURN(values, BroadcastTogether(std::move(values), span));
  return emitter_.Elementwise(Opcode::kRandomU32, std::move(values));
}

absl::StatusOr<DType> Checker::EvalDType(const ast::Expr& expr) {
  ASSIGN_OR_RETURN(Operand operand, EvalOperand(expr));
  if (operand.value.kind == Value::Kind::kDType) return operand.value.dtype;
  return Error(
      expr.span,
      Concat("a type is needed here, and this is ", Describe(operand.value, kernel_.params)),
      "write one of ph.f32, ph.f64, ph.f16, ph.bf16, ph.i32, ph.i64, ph.u8, ph.bool ...");
}

absl::StatusOr<Value> Checker::EvalCast(const std::vector<const ast::Expr*>& arguments,
                                        bool keep_bits, Span span) {
  ASSIGN_OR_RETURN(Operand operand, EvalNumber(*arguments[0]));
  ASSIGN_OR_RETURN(DType dtype, EvalDType(*arguments[1]));
  if (!keep_bits) {
    if (operand.value.is_literal()) {
      return Value::Known(dtype, CastTo(operand.value.literal, dtype));
    }
    return emitter_.Cast(operand.value, dtype);
  }
  ASSIGN_OR_RETURN(Value value, Settle(operand));
  const DType from = value.type.dtype;
  const bool has_bool = from == DType::kBool || dtype == DType::kBool;
  if (ir::BitWidth(from) != ir::BitWidth(dtype) || (has_bool && from != dtype)) {
    return Error(span,
                 Concat("ph.bitcast keeps the bits, and ", ir::Name(from), " and ", ir::Name(dtype),
                        " have not equally many"),
                 "ph.cast converts the value instead");
  }
  return emitter_.Bitcast(value, dtype);
}

absl::StatusOr<Value> Checker::EvalIota(const ast::Expr& length) {
  ASSIGN_OR_RETURN(Operand operand, EvalOperand(length));
  ASSIGN_OR_RETURN(int64_t elements,
                   ConstantInt(operand, 1, kMaxTileElements, "the length of ph.iota"));
  return emitter_.Iota(elements);
}

absl::StatusOr<Value> Checker::EvalFill(const std::vector<const ast::Expr*>& arguments,
                                        bool has_value, Span span) {
  ASSIGN_OR_RETURN(const Operand first, EvalOperand(*arguments[0]));
  if (first.value.kind != Value::Kind::kDType) {
    return Error(
        first.span,
        Concat("the type comes first, and this is ", Describe(first.value, kernel_.params)),
        has_value ? "write ph.full(ph.f32, 1.0, LENGTH), with a length for each side"
                  : "write ph.zeros(ph.f32, LENGTH), with a length for each side");
  }
  const DType dtype = first.value.dtype;
  Operand filler{Value::OfInt(0), span};
  const size_t sides = has_value ? 2 : 1;
  if (has_value) {
    ASSIGN_OR_RETURN(filler, EvalNumber(*arguments[1]));
  }
  ASSIGN_OR_RETURN(Value value, ToTarget(filler, ir::Type{dtype, {}}, "the elements of a fill"));
  ASSIGN_OR_RETURN(std::vector<Operand> lengths, SideOperands(arguments, sides));
  ASSIGN_OR_RETURN(ir::Shape shape, Sides(lengths, span));
  return emitter_.Broadcast(value, shape);
}

absl::StatusOr<Value> Checker::EvalExtent(const std::vector<const ast::Expr*>& arguments) {
  ASSIGN_OR_RETURN(Operand tensor, EvalOperand(*arguments[0]));
  if (tensor.value.kind != Value::Kind::kTensor) {
    return Error(
        tensor.span,
        Concat("ph.extent asks for a tensor, and this is ", Describe(tensor.value, kernel_.params)),
        "write ph.extent(A, 0)");
  }
  const ir::Param& param = kernel_.params[tensor.value.param];
  const int64_t rank = static_cast<int64_t>(param.dims.size());
  ASSIGN_OR_RETURN(Operand axis, EvalOperand(*arguments[1]));
  ASSIGN_OR_RETURN(int64_t dimension, ConstantInt(axis, -rank, rank - 1, "the dimension"));
  const ir::Dim& dim = param.dims[dimension < 0 ? dimension + rank : dimension];
  if (dim.extent < 0) return Value::OfInt(dim.literal);
  return emitter_.Extent(dim.extent);
}

absl::StatusOr<Value> Checker::EvalAssert(const std::vector<const ast::Expr*>& arguments,
                                          Span span) {
  ASSIGN_OR_RETURN(Operand condition, EvalNumber(*arguments[0]));
  ASSIGN_OR_RETURN(Value text, Eval(*arguments[1]));
  ASSIGN_OR_RETURN(Value truth, Truth(condition));
  if (!text.is_literal() || !IsString(text.literal)) {
    return Error(arguments[1]->span, "the second argument of ph.assert_ is its message",
                 "write ph.assert_(cond, \"text\")");
  }
  std::optional<WideInt> known = KnownInt(truth);
  if (!known.has_value()) {
    return Error(condition.span, "ph.assert_ decides over constants, and this is known at run time",
                 "write ph.assume(cond) for a promise about extents and scalars");
  }
  if (*known == 0) {
    return Error(span, std::get<std::string>(text.literal),
                 "this ph.assert_ is false for these constants; @ph.constraint leaves such a "
                 "variant out");
  }
  return Value();
}

absl::StatusOr<Value> Checker::EvalPrint(const std::vector<const ast::Expr*>& arguments,
                                         Span span) {
  std::vector<std::string> texts(1);
  std::vector<Value> values;
  for (const ast::Expr* argument : arguments) {
    ASSIGN_OR_RETURN(Operand operand, EvalOperand(*argument));
    if (argument != arguments[0]) texts.back() += " ";
    if (operand.value.is_literal()) {
      const std::string* text = std::get_if<std::string>(&operand.value.literal);
      texts.back() += text != nullptr ? *text : ToString(operand.value.literal);
      continue;
    }
    if (operand.value.kind == Value::Kind::kTensor) {
      const std::string& name = kernel_.params[operand.value.param].name;
      return Error(argument->span, Concat("'", name, "' is a tensor: ph.print prints parts of it"),
                   Concat("write ph.print(", name, "[i:+LENGTH])"));
    }
    RETURN_IF_ERROR(CheckNumber(operand));
    values.push_back(operand.value);
    texts.emplace_back();
  }
  SetPlace(span);
  emitter_.Print(std::move(texts), values);
  return Value();
}

absl::StatusOr<Value> Checker::EvalAssume(const ast::Expr& expr) {
  if (in_function() || block_depth_ != 1) {
    return Error(expr.span, "ph.assume stands at the top of a kernel's body only",
                 "move it before the other statements");
  }
  ASSIGN_OR_RETURN(Operand condition, EvalNumber(expr));
  ASSIGN_OR_RETURN(Value truth, EmitTruth(condition));
  if (std::optional<WideInt> known = KnownInt(truth)) {
    if (*known != 0) return Value();
    return Error(expr.span, "this assumption is false whatever the launch",
                 "write a condition over extents, scalars and ph.ctx.grid");
  }
  if (!emitter_.IsLaunchUniform(truth)) {
    return Error(expr.span,
                 "an assumption is checked once a launch, and this one changes inside it",
                 "use only constants, extents, scalar parameters and ph.ctx.grid");
  }
  emitter_.Assume(truth);
  return Value();
}

}  // namespace phobos::compiler::sema
