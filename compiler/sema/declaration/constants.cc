// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/declaration/constants.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/concat.h"
#include "base/floor_division.h"
#include "compiler/sema/nearest.h"
#include "compiler/syntax/printer.h"

namespace phobos::compiler::sema {
namespace {

using Result = std::variant<ConstantValue, ConstantError>;

// Wide enough for a sum, difference or product of two int64.
__extension__ using Wide = __int128;

bool IsString(const ConstantValue& value) { return std::holds_alternative<std::string>(value); }
bool IsFloat(const ConstantValue& value) { return std::holds_alternative<double>(value); }
bool IsBool(const ConstantValue& value) { return std::holds_alternative<bool>(value); }

int64_t AsInt(const ConstantValue& value) {
  return IsBool(value) ? std::get<bool>(value) : std::get<int64_t>(value);
}
double AsFloat(const ConstantValue& value) {
  return IsFloat(value) ? std::get<double>(value) : static_cast<double>(AsInt(value));
}
// Holds each int64 and each double exactly.
long double AsExact(const ConstantValue& value) {
  return IsFloat(value) ? std::get<double>(value) : static_cast<long double>(AsInt(value));
}

// base ** exponent, or nothing when no int64 holds it. REQUIRES: exponent >= 0.
std::optional<Wide> Power(Wide base, int64_t exponent) {
  Wide result = 1;
  if (base == 0 || base == 1) return exponent == 0 ? Wide{1} : base;
  if (base == -1) return exponent % 2 == 0 ? Wide{1} : Wide{-1};
  for (; exponent > 0; --exponent) {
    result *= base;
    if (result > std::numeric_limits<int64_t>::max() ||
        result < std::numeric_limits<int64_t>::min())
      return std::nullopt;
  }
  return result;
}

class Evaluator {
 public:
  explicit Evaluator(const ConstantLookup& lookup) : lookup_(lookup) {}

  Result Run(const ast::Expr& expr) {
    return std::visit([&](const auto& node) { return Of(node, expr); }, expr.node);
  }

 private:
  Result Fail(const ast::Expr& expr, std::string problem, std::string remedy) const {
    return ConstantError{expr.span, std::move(problem), std::move(remedy)};
  }
  Result Integer(Wide value, const ast::Expr& expr) const {
    if (value > std::numeric_limits<int64_t>::max() ||
        value < std::numeric_limits<int64_t>::min()) {
      return Fail(expr, "this constant does not fit 64 bits",
                  "a constant lies between -2^63 and 2^63 - 1");
    }
    return ConstantValue(static_cast<int64_t>(value));
  }

  Result Of(const ast::IntLiteral& node, const ast::Expr& expr) {
    return Integer(node.value, expr);
  }
  Result Of(const ast::FloatLiteral& node, const ast::Expr&) { return ConstantValue(node.value); }
  Result Of(const ast::BoolLiteral& node, const ast::Expr&) { return ConstantValue(node.value); }
  Result Of(const ast::StringLiteral& node, const ast::Expr&) { return ConstantValue(node.value); }
  Result Of(const ast::Name& node, const ast::Expr& expr) { return lookup_(node.id, expr.span); }
  Result Of(const ast::Unary& node, const ast::Expr& expr);
  Result Of(const ast::Binary& node, const ast::Expr& expr);
  Result Of(const ast::Compare& node, const ast::Expr& expr);
  Result Of(const ast::Call& node, const ast::Expr& expr);
  Result Of(const ast::Conditional& node, const ast::Expr&) {
    const Result condition = Run(*node.condition);
    if (!std::holds_alternative<ConstantValue>(condition)) return condition;
    return Run(IsTrue(std::get<ConstantValue>(condition)) ? *node.then : *node.otherwise);
  }
  template <typename Other>
  Result Of(const Other&, const ast::Expr& expr) {
    return Fail(expr, "this is no constant",
                "write a literal, or an expression of module constants");
  }

  Result Integers(ast::BinaryOp op, int64_t a, int64_t b, const ast::Expr& expr) const;
  Result Floats(ast::BinaryOp op, double a, double b, const ast::Expr& expr) const;

  const ConstantLookup& lookup_;
};

Result Evaluator::Of(const ast::Unary& node, const ast::Expr& expr) {
  // The one literal whose magnitude no int64 holds.
  if (const auto* literal = std::get_if<ast::IntLiteral>(&node.operand->node);
      literal != nullptr && node.op == ast::UnaryOp::kNegate) {
    return Integer(-Wide{literal->value}, expr);
  }
  Result operand = Run(*node.operand);
  if (!std::holds_alternative<ConstantValue>(operand)) return operand;
  const ConstantValue& value = std::get<ConstantValue>(operand);
  if (node.op == ast::UnaryOp::kNot) return ConstantValue(!IsTrue(value));
  if (IsString(value) || (IsFloat(value) && node.op == ast::UnaryOp::kInvert)) {
    return Fail(expr, Concat("this operator takes no ", IsString(value) ? "string" : "float"),
                "use it on an int");
  }
  if (IsFloat(value))
    return ConstantValue(node.op == ast::UnaryOp::kNegate ? -AsFloat(value) : AsFloat(value));
  const Wide number = AsInt(value);
  return Integer(node.op == ast::UnaryOp::kNegate   ? -number
                 : node.op == ast::UnaryOp::kInvert ? ~number
                                                    : number,
                 expr);
}

Result Evaluator::Integers(ast::BinaryOp op, int64_t a, int64_t b, const ast::Expr& expr) const {
  const Wide x = a;
  const Wide y = b;
  switch (op) {
    case ast::BinaryOp::kAdd:
      return Integer(x + y, expr);
    case ast::BinaryOp::kSub:
      return Integer(x - y, expr);
    case ast::BinaryOp::kMul:
      return Integer(x * y, expr);
    case ast::BinaryOp::kFloorDiv:
      return Integer(FloorDivide(x, y), expr);
    case ast::BinaryOp::kMod:
      return Integer(FloorModulo(x, y), expr);
    case ast::BinaryOp::kPow:
      if (b < 0) return Floats(op, static_cast<double>(a), static_cast<double>(b), expr);
      return Integer(Power(x, b).value_or(Wide{1} << 64), expr);
    case ast::BinaryOp::kShiftLeft:
      if (b < 0) return Fail(expr, "a shift by a negative number", "shift the other way");
      return Integer(a == 0 ? 0 : b > 63 ? Wide{1} << 64 : x * (Wide{1} << b), expr);
    case ast::BinaryOp::kShiftRight:
      if (b < 0) return Fail(expr, "a shift by a negative number", "shift the other way");
      return Integer(x >> (b > 63 ? 63 : b), expr);
    case ast::BinaryOp::kBitAnd:
      return Integer(a & b, expr);
    case ast::BinaryOp::kBitOr:
      return Integer(a | b, expr);
    case ast::BinaryOp::kBitXor:
      return Integer(a ^ b, expr);
    default:
      return Floats(op, static_cast<double>(a), static_cast<double>(b), expr);
  }
}

Result Evaluator::Floats(ast::BinaryOp op, double a, double b, const ast::Expr& expr) const {
  switch (op) {
    case ast::BinaryOp::kAdd:
      return ConstantValue(a + b);
    case ast::BinaryOp::kSub:
      return ConstantValue(a - b);
    case ast::BinaryOp::kMul:
      return ConstantValue(a * b);
    case ast::BinaryOp::kDiv:
      if (b == 0) return Fail(expr, "a division by zero", "divide by something else");
      return ConstantValue(a / b);
    case ast::BinaryOp::kFloorDiv:
      return ConstantValue(phobos::FloorDivide(a, b));
    case ast::BinaryOp::kMod:
      return ConstantValue(phobos::FloorModulo(a, b));
    case ast::BinaryOp::kPow:
      return ConstantValue(std::pow(a, b));
    default:
      return Fail(expr, Concat("'", ast::Sign(op), "' takes no floats"), "use it on ints");
  }
}

Result Evaluator::Of(const ast::Binary& node, const ast::Expr& expr) {
  Result left = Run(*node.left);
  if (!std::holds_alternative<ConstantValue>(left)) return left;
  const ConstantValue& a = std::get<ConstantValue>(left);
  if (node.op == ast::BinaryOp::kAnd && !IsTrue(a)) return left;
  if (node.op == ast::BinaryOp::kOr && IsTrue(a)) return left;
  Result right = Run(*node.right);
  if (!std::holds_alternative<ConstantValue>(right)) return right;
  if (node.op == ast::BinaryOp::kAnd || node.op == ast::BinaryOp::kOr) return right;
  const ConstantValue& b = std::get<ConstantValue>(right);
  if (IsString(a) && IsString(b) && node.op == ast::BinaryOp::kAdd) {
    return ConstantValue(std::get<std::string>(a) + std::get<std::string>(b));
  }
  if (IsString(a) || IsString(b)) {
    return Fail(expr, Concat("'", ast::Sign(node.op), "' takes no string here"),
                "compare strings with == or !=");
  }
  if (IsFloat(a) || IsFloat(b)) return Floats(node.op, AsFloat(a), AsFloat(b), expr);
  const bool is_logic = node.op == ast::BinaryOp::kBitAnd || node.op == ast::BinaryOp::kBitOr ||
                        node.op == ast::BinaryOp::kBitXor;
  Result result = Integers(node.op, AsInt(a), AsInt(b), expr);
  if (is_logic && IsBool(a) && IsBool(b) && std::holds_alternative<ConstantValue>(result)) {
    return ConstantValue(IsTrue(std::get<ConstantValue>(result)));
  }
  return result;
}

// -1, 0, 1; 2 for a NaN.
int Order(const ConstantValue& a, const ConstantValue& b) {
  if (IsString(a)) {
    const int order = std::get<std::string>(a).compare(std::get<std::string>(b));
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  const long double x = AsExact(a);
  const long double y = AsExact(b);
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

bool Holds(ast::CompareOp op, int order) {
  switch (op) {
    case ast::CompareOp::kEq:
      return order == 0;
    case ast::CompareOp::kNe:
      return order != 0;
    case ast::CompareOp::kLt:
      return order == -1;
    case ast::CompareOp::kLe:
      return order == -1 || order == 0;
    case ast::CompareOp::kGt:
      return order == 1;
    case ast::CompareOp::kGe:
      return order == 1 || order == 0;
  }
  return false;
}

Result Evaluator::Of(const ast::Compare& node, const ast::Expr& expr) {
  Result left = Run(*node.operands[0]);
  for (size_t i = 0; i < node.ops.size(); ++i) {
    if (!std::holds_alternative<ConstantValue>(left)) return left;
    Result right = Run(*node.operands[i + 1]);
    if (!std::holds_alternative<ConstantValue>(right)) return right;
    const ConstantValue& a = std::get<ConstantValue>(left);
    const ConstantValue& b = std::get<ConstantValue>(right);
    const bool is_equality =
        node.ops[i] == ast::CompareOp::kEq || node.ops[i] == ast::CompareOp::kNe;
    if (IsString(a) != IsString(b)) {
      if (!is_equality)
        return Fail(expr, "a string has no order with a number", "compare values of one kind");
      if (node.ops[i] == ast::CompareOp::kEq) return ConstantValue(false);
    } else if (!Holds(node.ops[i], Order(a, b))) {
      return ConstantValue(false);
    }
    left = std::move(right);
  }
  return ConstantValue(true);
}

Result Evaluator::Of(const ast::Call& node, const ast::Expr& expr) {
  const auto* name = std::get_if<ast::LanguageName>(&node.callee->node);
  const std::string function = name != nullptr && name->path.size() == 1 ? name->path[0] : "";
  const bool is_known = function == "cdiv" || function == "minimum" || function == "maximum";
  if (!is_known || node.positional.size() != 2 || !node.keyword.empty()) {
    return Fail(expr, "this call is no constant",
                "constants know ph.cdiv(a, b), ph.minimum(a, b) and ph.maximum(a, b)");
  }
  Result left = Run(*node.positional[0]);
  if (!std::holds_alternative<ConstantValue>(left)) return left;
  Result right = Run(*node.positional[1]);
  if (!std::holds_alternative<ConstantValue>(right)) return right;
  const ConstantValue& a = std::get<ConstantValue>(left);
  const ConstantValue& b = std::get<ConstantValue>(right);
  if (IsString(a) || IsString(b))
    return Fail(expr, Concat("ph.", function, " takes no string"), "give it numbers");
  if (function == "cdiv") {
    if (IsFloat(a) || IsFloat(b)) return Fail(expr, "ph.cdiv takes ints", "give it ints");
    return Integer(-FloorDivide(-Wide{AsInt(a)}, AsInt(b)), expr);
  }
  const int order = Order(a, b);
  if (order == 2) return ConstantValue(std::numeric_limits<double>::quiet_NaN());
  return (function == "minimum") == (order <= 0) ? left : right;
}

}  // namespace

Result Evaluate(const ast::Expr& expr, const ConstantLookup& lookup) {
  return Evaluator(lookup).Run(expr);
}

std::string_view KindOf(const ConstantValue& value) {
  constexpr std::string_view kKinds[] = {"an int", "a float", "a bool", "a string"};
  return kKinds[value.index()];
}

bool IsTrue(const ConstantValue& value) {
  if (IsString(value)) return !std::get<std::string>(value).empty();
  return IsFloat(value) ? std::get<double>(value) != 0 : AsInt(value) != 0;
}

std::string ToString(const ConstantValue& value) {
  if (IsString(value)) return ast::Quote(std::get<std::string>(value));
  if (IsBool(value)) return std::get<bool>(value) ? "True" : "False";
  return IsFloat(value) ? ast::PrintFloat(std::get<double>(value))
                        : Concat(std::get<int64_t>(value));
}

ModuleConstants::ModuleConstants(const Source& source, const ast::Module& module)
    : source_(source), module_(module) {
  // Those above are computed already, so no chain of constants recurses. What goes wrong is told
  // when it is asked for: most of a host program's names never are.
  const ConstantLookup earlier = [this](const std::string& name, Span span) -> Result {
    const auto known = constants_.find(name);
    if (known == constants_.end() || !known->second.value.has_value())
      return ConstantError{span, "", ""};
    return *known->second.value;
  };
  for (const ast::ModuleConstant& constant : module.constants) {
    Result result = sema::Evaluate(*constant.value, earlier);
    Constant& entry = constants_[constant.name];
    entry.definition = &constant;
    if (auto* value = std::get_if<ConstantValue>(&result)) entry.value = std::move(*value);
  }
}

Result ModuleConstants::Find(const std::string& name, Span span) const {
  const auto known = constants_.find(name);
  if (known != constants_.end()) {
    if (known->second.value.has_value()) return *known->second.value;
    const int line = source_.Line(known->second.definition->name_span.begin);
    return ConstantError{
        span, Concat("'", name, "' is no constant: its value cannot be computed (line ", line, ")"),
        "bind it to a literal, or to an expression of constants above it"};
  }
  const std::string why = WhyNot(name);
  if (!why.empty()) {
    return ConstantError{span, Concat("'", name, "' is no constant: ", why),
                         "a constant is bound once at module level, to a literal"};
  }
  return ConstantError{
      span, Concat("'", name, "' is not defined"),
      DidYouMean(name, Names(), "write a literal, or an expression of module constants")};
}

absl::StatusOr<ConstantValue> ModuleConstants::Value(std::string_view name) const {
  const Constant& constant = constants_.at(name);
  if (constant.value.has_value()) return *constant.value;
  return Evaluate(*constant.definition->value);
}

Span ModuleConstants::Place(std::string_view name) const {
  return constants_.at(name).definition->name_span;
}

std::string ModuleConstants::WhyNot(std::string_view name) const {
  for (const ast::HostName& host : module_.host_names) {
    if (host.name == name)
      return Concat(host.reason, " (line ", source_.Line(host.span.begin), ")");
  }
  return "";
}

absl::StatusOr<ConstantValue> ModuleConstants::Evaluate(const ast::Expr& expr) const {
  Result result =
      sema::Evaluate(expr, [this](const std::string& name, Span span) { return Find(name, span); });
  if (const auto* error = std::get_if<ConstantError>(&result)) {
    return source_.Error(error->span, error->problem, error->remedy);
  }
  return std::get<ConstantValue>(std::move(result));
}

std::vector<std::string_view> ModuleConstants::Names() const {
  std::vector<std::string_view> names;
  for (const auto& [name, constant] : constants_) {
    if (constant.value.has_value()) names.push_back(name);
  }
  return names;
}

}  // namespace phobos::compiler::sema
