// SPDX-License-Identifier: Apache-2.0
//
// Expressions: the walk, logic and conditions.
#include <algorithm>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/lowering/checker.h"

namespace phobos::compiler::sema {
namespace {

using ir::DType;
using ir::Opcode;

// Whether the ops may run whatever a condition says: nothing in the language traps, so that is all
// but memory accesses, variables and control.
bool IsPure(const ir::Block& block) {
  return std::all_of(block.begin(), block.end(), [](const ir::Op& op) {
    return op.result != ir::kNoValue && !ir::IsAccess(op.opcode);
  });
}

Value ZeroOf(DType dtype) {
  return ir::IsFloat(dtype) ? Value::Known(dtype, 0.0) : Value::Known(dtype, int64_t{0});
}

}  // namespace

absl::StatusOr<Value> Checker::Eval(const ast::Expr& expr) {
  absl::Status entered = Enter(expr.span);
  absl::StatusOr<Value> value = entered.ok() ? EvalNode(expr) : entered;
  Leave();
  return value;
}

absl::StatusOr<Operand> Checker::EvalOperand(const ast::Expr& expr) {
  ASSIGN_OR_RETURN(Value value, Eval(expr));
  return Operand{std::move(value), expr.span};
}

absl::StatusOr<Operand> Checker::EvalNumber(const ast::Expr& expr) {
  ASSIGN_OR_RETURN(Operand operand, EvalOperand(expr));
  RETURN_IF_ERROR(CheckNumber(operand));
  return operand;
}

absl::StatusOr<Value> Checker::EvalNode(const ast::Expr& expr) {
  const Span span = expr.span;
  const auto& node = expr.node;
  if (const auto* n = std::get_if<ast::IntLiteral>(&node)) return Value::OfInt(WideInt{n->value});
  if (const auto* n = std::get_if<ast::FloatLiteral>(&node)) return Value::OfLiteral(n->value);
  if (const auto* n = std::get_if<ast::BoolLiteral>(&node)) return Value::OfLiteral(n->value);
  if (const auto* n = std::get_if<ast::StringLiteral>(&node)) return Value::OfLiteral(n->value);
  if (std::holds_alternative<ast::NoneLiteral>(node)) return Value();
  if (const auto* n = std::get_if<ast::Name>(&node)) return EvalName(*n, span);
  if (const auto* n = std::get_if<ast::LanguageName>(&node)) return EvalLanguageName(*n, span);
  if (const auto* n = std::get_if<ast::Attribute>(&node)) return EvalAttribute(*n, span);
  if (const auto* n = std::get_if<ast::Unary>(&node)) return EvalUnary(*n, span);
  if (const auto* n = std::get_if<ast::Compare>(&node)) return EvalCompare(*n, span);
  if (const auto* n = std::get_if<ast::Conditional>(&node)) return EvalConditional(*n, span);
  if (const auto* n = std::get_if<ast::Call>(&node)) return EvalCall(*n, span);
  if (const auto* n = std::get_if<ast::Index>(&node)) return EvalIndex(*n, span);
  if (const auto* n = std::get_if<ast::Binary>(&node)) {
    if (n->op == ast::BinaryOp::kAnd || n->op == ast::BinaryOp::kOr) return EvalLogic(*n);
    ASSIGN_OR_RETURN(Operand left, EvalNumber(*n->left));
    ASSIGN_OR_RETURN(Operand right, EvalNumber(*n->right));
    return Binary(n->op, left, right, span);
  }
  if (const auto* n = std::get_if<ast::Tuple>(&node)) {
    std::vector<Value> elements;
    for (const ast::ExprPtr& element : n->elements) {
      ASSIGN_OR_RETURN(Value value, Eval(*element));
      elements.push_back(std::move(value));
    }
    return Value::Tuple(std::move(elements));
  }
  return Error(span, "a list is no value in a kernel",
               "lists stand only in @ph.autotune; a tile is made by ph.full, ph.zeros, ph.iota");
}

absl::StatusOr<Value> Checker::EvalUnary(const ast::Unary& unary, Span span) {
  ASSIGN_OR_RETURN(Operand operand, EvalNumber(*unary.operand));
  const Value& value = operand.value;
  if (value.is_literal()) {
    Problem problem;
    std::optional<Literal> folded = Fold(unary.op, value.literal, &problem);
    if (!folded.has_value()) return Error(span, problem);
    return Value::OfLiteral(*std::move(folded));
  }
  const DType dtype = value.type.dtype;
  switch (unary.op) {
    case ast::UnaryOp::kPlus:
      return value;
    case ast::UnaryOp::kNegate:
      if (dtype == DType::kBool) {
        return Error(span, "a bool has no negative",
                     "write ~x for logic, or ph.cast(x, ph.i32) for a number");
      }
      return emitter_.Elementwise(Opcode::kNegate, {value});
    case ast::UnaryOp::kInvert:
      if (ir::IsFloat(dtype)) {
        return Error(
            span, Concat("~ works on integers and bools, not on ", Describe(value, kernel_.params)),
            "ph.cast it to an integer type, or write -x for the negative");
      }
      return emitter_.Elementwise(Opcode::kNot, {value});
    case ast::UnaryOp::kNot:
      break;
  }
  if (!value.is_scalar()) {
    return Error(span, Concat("not is for scalars, and this is ", Describe(value, kernel_.params)),
                 "write ~x for a tile of bools");
  }
  ASSIGN_OR_RETURN(Value truth, EmitTruth(operand));
  return emitter_.Elementwise(Opcode::kNot, {truth});
}

absl::StatusOr<Value> Checker::EvalCompare(const ast::Compare& compare, Span span) {
  std::vector<Operand> operands;
  bool any_tile = false;
  for (const ast::ExprPtr& expr : compare.operands) {
    ASSIGN_OR_RETURN(Operand operand, EvalOperand(*expr));
    const bool is_string = operand.value.is_literal() && IsString(operand.value.literal);
    if (!is_string) RETURN_IF_ERROR(CheckNumber(operand));
    any_tile |= operand.value.is_computed() && !operand.value.is_scalar();
    operands.push_back(std::move(operand));
  }
  if (any_tile && compare.ops.size() > 1) {
    return Error(span, "a chained comparison of tiles", "write (a < b) & (b < c)");
  }
  std::optional<Value> all;
  for (size_t i = 0; i < compare.ops.size(); ++i) {
    ASSIGN_OR_RETURN(Value one, Compare(compare.ops[i], operands[i], operands[i + 1], span));
    if (!all.has_value()) {
      all = std::move(one);
    } else if (all->is_literal() && one.is_literal()) {
      all = Value::OfLiteral(IsTrue(all->literal) && IsTrue(one.literal));
    } else {
      ASSIGN_OR_RETURN(Value left, ToType({*all, span}, DType::kBool));
      ASSIGN_OR_RETURN(Value right, ToType({one, span}, DType::kBool));
      all = emitter_.Elementwise(Opcode::kAnd, {left, right});
    }
  }
  return *std::move(all);
}

absl::StatusOr<Value> Checker::Truth(const Operand& operand) const {
  RETURN_IF_ERROR(CheckNumber(operand));
  const Value& value = operand.value;
  if (value.is_literal()) return Value::OfLiteral(IsTrue(value.literal));
  if (value.is_scalar()) return value;
  return Error(operand.span,
               Concat("a condition is a scalar, and this is ", Describe(value, kernel_.params)),
               "choose between elements with ph.where, or reduce it with ph.any or ph.all");
}

absl::StatusOr<Value> Checker::EmitTruth(const Operand& operand) {
  ASSIGN_OR_RETURN(Value truth, Truth(operand));
  if (truth.is_literal()) return Value::Known(DType::kBool, int64_t{IsTrue(truth.literal)});
  return emitter_.Cast(truth, DType::kBool);
}

absl::StatusOr<Operand> Checker::EvalApart(const ast::Expr& expr, ir::Block* block) {
  emitter_.BeginRegion();
  absl::StatusOr<Operand> operand = EvalNumber(expr);
  *block = emitter_.EndRegion();
  return operand;
}

// What `and`, `or` take: bools. Numbers are refused, for Python would give one of the numbers, not
// a bool.
absl::StatusOr<Value> Checker::LogicSide(const Operand& operand, std::string_view word) const {
  const Value& value = operand.value;
  const bool is_bool =
      value.is_literal() ? IsBool(value.literal) : value.type.dtype == DType::kBool;
  if (!value.is_scalar()) {
    return Error(
        operand.span,
        Concat(std::string(word), " is for scalars, and this is ", Describe(value, kernel_.params)),
        Concat("write ", word == "and" ? "a & b" : "a | b",
               " for tiles of bools, with parentheses around comparisons"));
  }
  if (!is_bool) {
    return Error(operand.span,
                 Concat(std::string(word), " joins conditions, and this is ",
                        Describe(value, kernel_.params)),
                 "write a comparison, for example x != 0");
  }
  return value;
}

absl::StatusOr<Value> Checker::EvalLogic(const ast::Binary& binary) {
  const bool is_and = binary.op == ast::BinaryOp::kAnd;
  const std::string_view word = is_and ? "and" : "or";
  ASSIGN_OR_RETURN(Operand left, EvalNumber(*binary.left));
  ASSIGN_OR_RETURN(Value a, LogicSide(left, word));
  ir::Block block;
  ASSIGN_OR_RETURN(Operand right, EvalApart(*binary.right, &block));
  ASSIGN_OR_RETURN(Value b, LogicSide(right, word));
  if (std::optional<WideInt> known = KnownInt(a)) {
    // The left side decides: either the answer, or that the right side is the answer.
    if ((*known != 0) != is_and) return a;
    emitter_.Splice(std::move(block));
    return b;
  }
  if (IsPure(block)) {
    emitter_.Splice(std::move(block));
    ASSIGN_OR_RETURN(Value second, ToType({b, right.span}, DType::kBool));
    return emitter_.Elementwise(is_and ? Opcode::kAnd : Opcode::kOr, {a, second});
  }
  ASSIGN_OR_RETURN(Value second, ToType({b, right.span}, DType::kBool));
  if (is_and) return ChooseByBranch(a, second, std::move(block), a, {});
  return ChooseByBranch(a, a, {}, second, std::move(block));
}

absl::StatusOr<Value> Checker::EvalConstantConditional(const ast::Conditional& conditional,
                                                       bool taken) {
  std::optional<Value> result;
  for (bool arm : {true, false}) {
    emitter_.BeginRegion();
    absl::StatusOr<Value> value = Eval(arm ? *conditional.then : *conditional.otherwise);
    ir::Block block = emitter_.EndRegion();
    RETURN_IF_ERROR(value.status());
    if (arm != taken) continue;
    emitter_.Splice(std::move(block));
    result = *std::move(value);
  }
  return *std::move(result);
}

absl::StatusOr<Value> Checker::EvalConditional(const ast::Conditional& conditional, Span span) {
  ASSIGN_OR_RETURN(Operand condition, EvalNumber(*conditional.condition));
  ASSIGN_OR_RETURN(Value truth, Truth(condition));
  if (std::optional<WideInt> known = KnownInt(truth)) {
    return EvalConstantConditional(conditional, *known != 0);
  }
  truth = emitter_.Cast(truth, DType::kBool);
  ir::Block then;
  ir::Block otherwise;
  ASSIGN_OR_RETURN(Operand a, EvalApart(*conditional.then, &then));
  ASSIGN_OR_RETURN(Operand b, EvalApart(*conditional.otherwise, &otherwise));
  for (const Operand* arm : {&a, &b}) {
    if (arm->value.is_scalar()) continue;
    return Error(arm->span,
                 Concat("`a if c else b` chooses between scalars, and this is ",
                        Describe(arm->value, kernel_.params)),
                 "write ph.where(c, a, b), or an if statement that assigns to a ph.var");
  }
  ASSIGN_OR_RETURN(DType dtype, CommonType({a, b}));
  if (IsPure(then) && IsPure(otherwise)) {
    emitter_.Splice(std::move(then));
    emitter_.Splice(std::move(otherwise));
    ASSIGN_OR_RETURN(std::vector<Value> arms, Unify({a, b}, dtype, span));
    return emitter_.Elementwise(Opcode::kSelect, {truth, arms[0], arms[1]});
  }
  // The arms' conversions belong into the arms.
  std::vector<Value> values;
  std::vector<ir::Block> blocks;
  for (auto& [operand, block] : {std::pair(&a, &then), std::pair(&b, &otherwise)}) {
    emitter_.BeginRegion();
    emitter_.Splice(std::move(*block));
    absl::StatusOr<Value> value = ToType(*operand, dtype);
    blocks.push_back(emitter_.EndRegion());
    RETURN_IF_ERROR(value.status());
    values.push_back(*std::move(value));
  }
  return ChooseByBranch(truth, values[0], std::move(blocks[0]), values[1], std::move(blocks[1]));
}

absl::StatusOr<Value> Checker::ChooseByBranch(const Value& condition, const Value& a,
                                              ir::Block block_a, const Value& b,
                                              ir::Block block_b) {
  const ir::VarId var = emitter_.Declare("chosen", ZeroOf(a.type.dtype));
  emitter_.BeginRegion();
  emitter_.Splice(std::move(block_a));
  emitter_.Write(var, a);
  ir::Block then = emitter_.EndRegion();
  emitter_.BeginRegion();
  emitter_.Splice(std::move(block_b));
  emitter_.Write(var, b);
  ir::Block otherwise = emitter_.EndRegion();
  emitter_.If(condition, std::move(then), std::move(otherwise));
  return emitter_.Read(var);
}

}  // namespace phobos::compiler::sema
