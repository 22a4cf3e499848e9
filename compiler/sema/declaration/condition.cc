// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/declaration/condition.h"

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/nearest.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/printer.h"

namespace phobos::compiler::sema {
namespace {

constexpr uint64_t kLargestPower = 16;

// What a condition names and holds, and the first thing in it that only the compiler can evaluate.
class ConditionReader {
 public:
  ConditionReader(const DeclarationScope& scope, const Kernel& kernel)
      : scope_(scope), kernel_(kernel) {}

  absl::Status Visit(const ast::Expr& expr) {
    return std::visit([&](const auto& node) { return Of(node, expr.span); }, expr.node);
  }

  bool only_constants() const { return !names_launch_; }

  // OK when the condition is over constants, or when a launch can evaluate it.
  absl::Status CheckEvaluable() const {
    if (only_constants() || compile_time_problem_.empty()) return absl::OkStatus();
    return scope_.source.Error(
        compile_time_span_,
        Concat(compile_time_problem_, " cannot stand in a condition that is decided at a launch"),
        "use + - * / // % comparisons, and, or, not, or make it a condition over constants alone");
  }

 private:
  absl::Status All(const std::vector<ast::ExprPtr>& list) {
    for (const ast::ExprPtr& element : list) RETURN_IF_ERROR(Visit(*element));
    return absl::OkStatus();
  }
  void OnlyTheCompiler(Span span, std::string what) {
    if (!compile_time_problem_.empty()) return;
    compile_time_problem_ = std::move(what);
    compile_time_span_ = span;
  }

  absl::Status Of(const ast::IntLiteral& node, Span span) {
    if (node.value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return absl::OkStatus();
    return scope_.source.Error(span, "this int does not fit 64 bits with a sign",
                               "write a smaller one");
  }
  absl::Status Of(const ast::FloatLiteral&, Span) { return absl::OkStatus(); }
  absl::Status Of(const ast::BoolLiteral&, Span) { return absl::OkStatus(); }
  absl::Status Of(const ast::StringLiteral&, Span span) {
    OnlyTheCompiler(span, "a string");
    return absl::OkStatus();
  }
  absl::Status Of(const ast::Name& node, Span span);
  absl::Status Of(const ast::LanguageName& node, Span span);
  absl::Status Of(const ast::Unary& node, Span span) {
    if (node.op == ast::UnaryOp::kInvert) OnlyTheCompiler(span, "'~'");
    return Visit(*node.operand);
  }
  absl::Status Of(const ast::Binary& node, Span span);
  absl::Status Of(const ast::Compare& node, Span span) {
    // A launch evaluates the middle of a chain twice; chains inside chains would do so again and
    // again.
    if (node.ops.size() > 1 && std::exchange(in_chain_, true))
      OnlyTheCompiler(span, "a chain of comparisons inside another");
    const absl::Status status = All(node.operands);
    if (node.ops.size() > 1) in_chain_ = false;
    return status;
  }
  absl::Status Of(const ast::Conditional& node, Span) {
    RETURN_IF_ERROR(Visit(*node.condition));
    RETURN_IF_ERROR(Visit(*node.then));
    return Visit(*node.otherwise);
  }
  absl::Status Of(const ast::Call& node, Span span);
  template <typename Other>
  absl::Status Of(const Other&, Span span) {
    return scope_.source.Error(
        span, "this cannot stand in a condition",
        "write an expression over constants, extents, scalars and ph.ctx.grid");
  }

  const DeclarationScope& scope_;
  const Kernel& kernel_;
  bool names_launch_ = false;  // an extent, a scalar or the grid
  bool in_chain_ = false;
  std::string compile_time_problem_;
  Span compile_time_span_;
};

absl::Status ConditionReader::Of(const ast::Name& node, Span span) {
  if (const TunedConstant* tuned = FindTuned(kernel_, node.id)) {
    if (std::holds_alternative<std::string>(tuned->choices[0])) OnlyTheCompiler(span, "a string");
    return absl::OkStatus();
  }
  if (FindExtent(kernel_, node.id) >= 0) {
    names_launch_ = true;
    return absl::OkStatus();
  }
  if (const int param = FindParam(kernel_, node.id); param >= 0) {
    names_launch_ = true;
    if (!kernel_.params[param].is_tensor) return absl::OkStatus();
    return scope_.source.Error(
        span, Concat("'", node.id, "' is a tensor, and a condition sees no elements"),
        "write a condition over its extents");
  }
  if (scope_.constants.Has(node.id)) {
    ASSIGN_OR_RETURN(const ConstantValue value, scope_.constants.Value(node.id));
    if (std::holds_alternative<std::string>(value)) OnlyTheCompiler(span, "a string");
    return absl::OkStatus();
  }
  if (const std::string why = scope_.constants.WhyNot(node.id); !why.empty()) {
    return scope_.source.Error(span, Concat("'", node.id, "' is no constant: ", why),
                               "a constant is bound once at module level, to a literal");
  }
  std::vector<std::string_view> names = scope_.constants.Names();
  for (const TunedConstant& constant : kernel_.space) names.push_back(constant.name);
  for (const ir::Extent& extent : kernel_.extents) names.push_back(extent.name);
  for (const ir::Param& param : kernel_.params) names.push_back(param.name);
  return scope_.source.Error(
      span, Concat("'", node.id, "' is not defined"),
      DidYouMean(node.id, names, "a condition names constants, extents, scalars and ph.ctx.grid"));
}

absl::Status ConditionReader::Of(const ast::LanguageName& node, Span span) {
  const bool is_grid = node.path.size() == 3 && node.path[0] == "ctx" && node.path[1] == "grid" &&
                       (node.path[2] == "x" || node.path[2] == "y" || node.path[2] == "z");
  if (!is_grid) {
    return scope_.source.Error(
        span, Concat("'", scope_.source.text(span), "' cannot stand in a condition"),
        "write an expression over constants, extents, scalars and ph.ctx.grid.x, .y, .z");
  }
  names_launch_ = true;
  const std::string clash = Concat("grid_", node.path[2]);
  const bool clashes = FindExtent(kernel_, clash) >= 0 || FindParam(kernel_, clash) >= 0 ||
                       FindTuned(kernel_, clash) != nullptr;
  if (!clashes) return absl::OkStatus();
  return scope_.source.Error(
      span, Concat("conditions call this '", clash, "', and the kernel has a name like that"),
      Concat("rename '", clash, "' in the kernel"));
}

absl::Status ConditionReader::Of(const ast::Binary& node, Span span) {
  switch (node.op) {
    case ast::BinaryOp::kShiftLeft:
    case ast::BinaryOp::kShiftRight:
    case ast::BinaryOp::kBitAnd:
    case ast::BinaryOp::kBitOr:
    case ast::BinaryOp::kBitXor:
      OnlyTheCompiler(span, Concat("'", ast::Sign(node.op), "'"));
      break;
    case ast::BinaryOp::kPow: {
      // A launch multiplies, so the base is written out once for each factor.
      const auto* exponent = std::get_if<ast::IntLiteral>(&node.right->node);
      const bool is_short = std::holds_alternative<ast::Name>(node.left->node) &&
                            exponent != nullptr && exponent->value <= kLargestPower;
      if (!is_short) OnlyTheCompiler(span, "'**' but of a name by a literal from 0 to 16");
      break;
    }
    default:
      break;
  }
  RETURN_IF_ERROR(Visit(*node.left));
  return Visit(*node.right);
}

absl::Status ConditionReader::Of(const ast::Call& node, Span span) {
  const auto* name = std::get_if<ast::LanguageName>(&node.callee->node);
  const std::string function = name != nullptr && name->path.size() == 1 ? name->path[0] : "";
  const bool is_known = function == "cdiv" || function == "minimum" || function == "maximum";
  if (!is_known || node.positional.size() != 2 || !node.keyword.empty()) {
    return scope_.source.Error(
        span, "this call cannot stand in a condition",
        "conditions know ph.cdiv(a, b), ph.minimum(a, b) and ph.maximum(a, b)");
  }
  return All(node.positional);
}

// The expression of a statement `ph.assume(...)`, or null.
const ast::Call* AssumeCall(const ast::Stmt& statement) {
  const auto* expression = std::get_if<ast::ExprStmt>(&statement.node);
  const auto* call =
      expression == nullptr ? nullptr : std::get_if<ast::Call>(&expression->value->node);
  const auto* name =
      call == nullptr ? nullptr : std::get_if<ast::LanguageName>(&call->callee->node);
  return name != nullptr && name->path.size() == 1 && name->path[0] == "assume" ? call : nullptr;
}

}  // namespace

bool IsAssumption(const ast::Stmt& statement) { return AssumeCall(statement) != nullptr; }

absl::Status AddCondition(const DeclarationScope& scope, std::shared_ptr<const ast::Expr> expr,
                          bool is_assumption, Kernel* kernel) {
  ConditionReader reader(scope, *kernel);
  RETURN_IF_ERROR(reader.Visit(*expr));
  RETURN_IF_ERROR(reader.CheckEvaluable());
  Condition condition;
  condition.text = absl::StrReplaceAll(
      ast::PrintShort(*expr),
      {{"ph.ctx.grid.x", "grid_x"}, {"ph.ctx.grid.y", "grid_y"}, {"ph.ctx.grid.z", "grid_z"}});
  condition.line = scope.source.Line(expr->span.begin);
  condition.is_assumption = is_assumption;
  condition.only_constants = reader.only_constants();
  condition.expr = std::move(expr);
  kernel->conditions.push_back(std::move(condition));
  return absl::OkStatus();
}

absl::Status ReadConstraints(const DeclarationScope& scope, const ast::Decorator& decorator,
                             Kernel* kernel) {
  const std::string usage =
      Concat("write @", scope.alias(), ".constraint(\"BLOCK % THREADS == 0\")");
  if (!decorator.keyword.empty()) {
    return scope.source.Error(decorator.keyword[0].name_span, "a constraint has no keywords",
                              usage);
  }
  if (decorator.positional.empty())
    return scope.source.Error(decorator.span, "this constraint says nothing", usage);
  for (const ast::ExprPtr& argument : decorator.positional) {
    if (!std::holds_alternative<ast::StringLiteral>(argument->node)) {
      return scope.source.Error(
          argument->span,
          "a constraint is written in a string, because Python runs the decorator too", usage);
    }
    ASSIGN_OR_RETURN(ast::ExprPtr expr,
                     ParseQuotedExpression(scope.source, argument->span, scope.module.aliases));
    RETURN_IF_ERROR(AddCondition(scope, std::move(expr), false, kernel));
  }
  return absl::OkStatus();
}

absl::Status ReadAssumptions(const DeclarationScope& scope, Kernel* kernel) {
  for (const ast::Stmt& statement : kernel->function->body) {
    const ast::Call* call = AssumeCall(statement);
    if (call == nullptr) break;
    if (call->positional.size() != 1 || !call->keyword.empty()) {
      return scope.source.Error(statement.span, "an assumption is one condition",
                                Concat("write ", scope.alias(), ".assume(N % 4 == 0)"));
    }
    // Owned by the module, which outlives the kernel.
    std::shared_ptr<const ast::Expr> expr(std::shared_ptr<void>(), call->positional[0].get());
    RETURN_IF_ERROR(AddCondition(scope, std::move(expr), true, kernel));
  }
  return absl::OkStatus();
}

}  // namespace phobos::compiler::sema
