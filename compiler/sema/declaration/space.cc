// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/declaration/decorators.h"

namespace phobos::compiler::sema {
namespace {

constexpr int64_t kDefaultLimit = 4096;
constexpr int64_t kLargestLimit = 1000000;  // so that the list of variants itself stays small

constexpr char kBothReadings[] =
    "two increasing ints [a, b] with a >= 1 are searched in doubling steps a, 2a, 4a ... up to b; "
    "any other list of "
    "distinct values of one type is searched as it stands";

std::string Show(const std::vector<ConstantValue>& values) {
  std::string out;
  for (const ConstantValue& value : values) Append(&out, out.empty() ? "" : ", ", ToString(value));
  return Concat("[", out, "]");
}

// [a, b] of two ints with a < b.
bool IsIncreasingPair(const std::vector<ConstantValue>& values) {
  return values.size() == 2 && std::holds_alternative<int64_t>(values[0]) && values[0] < values[1];
}

std::vector<ConstantValue> Doubling(int64_t first, int64_t last) {
  std::vector<ConstantValue> values;
  for (int64_t value = first; value <= last; value *= 2) {
    values.push_back(value);
    if (value > std::numeric_limits<int64_t>::max() / 2) break;
  }
  return values;
}

const std::vector<ast::ExprPtr>* Elements(const ast::Expr& expr) {
  if (const auto* list = std::get_if<ast::List>(&expr.node)) return &list->elements;
  if (const auto* tuple = std::get_if<ast::Tuple>(&expr.node)) return &tuple->elements;
  return nullptr;
}

// The values as they are written, of one type, each once.
absl::StatusOr<std::vector<ConstantValue>> WrittenValues(const DeclarationScope& scope,
                                                         const std::string& name,
                                                         const ast::Expr& expr) {
  const std::vector<ast::ExprPtr>* elements = Elements(expr);
  if (elements == nullptr) {
    return scope.source.Error(
        expr.span, Concat("the values of '", name, "' are no list"),
        std::holds_alternative<ast::Name>(expr.node) || std::holds_alternative<ast::Call>(expr.node)
            ? Concat("write the values themselves: ", kBothReadings)
            : Concat("write ", name, "=[", scope.source.text(expr.span).substr(0, 20), "]; ",
                     kBothReadings));
  }
  if (elements->empty()) {
    return scope.source.Error(expr.span, Concat("'", name, "' has no values"),
                              Concat("write at least one: ", kBothReadings));
  }
  std::vector<ConstantValue> values;
  std::set<ConstantValue> seen;
  for (const ast::ExprPtr& element : *elements) {
    ASSIGN_OR_RETURN(ConstantValue value, scope.constants.Evaluate(*element));
    if (!values.empty() && value.index() != values[0].index()) {
      return scope.source.Error(element->span,
                                Concat("the values of '", name, "' are of different types: ",
                                       KindOf(values[0]), " and ", KindOf(value)),
                                Concat("write values of one type: ", kBothReadings));
    }
    if (!seen.insert(value).second) {
      return scope.source.Error(element->span,
                                Concat("'", name, "' has the value ", ToString(value), " twice"),
                                Concat("write each value once: ", kBothReadings));
    }
    values.push_back(std::move(value));
  }
  return values;
}

absl::StatusOr<std::vector<ConstantValue>> Choices(const DeclarationScope& scope,
                                                   const std::string& name, const ast::Expr& expr) {
  ASSIGN_OR_RETURN(std::vector<ConstantValue> values, WrittenValues(scope, name, expr));
  if (!IsIncreasingPair(values)) return values;
  const int64_t first = std::get<int64_t>(values[0]);
  const int64_t last = std::get<int64_t>(values[1]);
  if (first >= 1) return Doubling(first, last);
  return scope.source.Error(
      expr.span,
      Concat("'", name, "' = ", Show(values),
             " has two increasing values, and doubling cannot start at ", first),
      Concat("for exactly these two write them decreasing: [", last, ", ", first, "]; ",
             kBothReadings));
}

absl::Status CheckSize(const DeclarationScope& scope, const ast::Decorator& decorator,
                       const Kernel& kernel) {
  int64_t variants = 1;
  std::string product;
  for (const TunedConstant& constant : kernel.space) {
    const int64_t choices = static_cast<int64_t>(constant.choices.size());
    if (__builtin_mul_overflow(variants, choices, &variants))
      variants = std::numeric_limits<int64_t>::max();
    Append(&product, product.empty() ? "" : " x ", constant.name, " ", choices);
  }
  if (variants <= kernel.variant_limit) return absl::OkStatus();
  return scope.source.Error(decorator.span,
                            Concat("the search space has ", variants, " variants (", product,
                                   "); the limit is ", kernel.variant_limit),
                            variants > kLargestLimit
                                ? "search fewer values"
                                : Concat("search fewer values, or allow it: ", scope.alias(),
                                         ".autotune(..., limit=", variants, ")"));
}

absl::Status ReadLimit(const DeclarationScope& scope, const ast::Expr& expr, Kernel* kernel) {
  ASSIGN_OR_RETURN(kernel->variant_limit, scope.IntArgument(expr, "limit"));
  if (kernel->variant_limit >= 1 && kernel->variant_limit <= kLargestLimit) return absl::OkStatus();
  return scope.source.Error(expr.span, Concat("limit=", kernel->variant_limit, " is out of range"),
                            Concat("write a number of variants from 1 to ", kLargestLimit));
}

}  // namespace

absl::Status ReadSpace(const DeclarationScope& scope, const ast::Decorator& decorator,
                       Kernel* kernel) {
  kernel->variant_limit = kDefaultLimit;
  if (!decorator.positional.empty()) {
    return scope.source.Error(decorator.positional[0]->span,
                              "a list of values needs the name of its constant",
                              Concat("write @", scope.alias(), ".autotune(BLOCK=[256, 4096])"));
  }
  for (const ast::KeywordArgument& argument : decorator.keyword) {
    if (argument.name == "limit") {
      RETURN_IF_ERROR(ReadLimit(scope, *argument.value, kernel));
      continue;
    }
    RETURN_IF_ERROR(
        scope.CheckHidesNothing(argument.name, "an autotuned constant", argument.name_span));
    TunedConstant constant;
    constant.name = argument.name;
    constant.span = argument.name_span;
    ASSIGN_OR_RETURN(constant.choices, Choices(scope, argument.name, *argument.value));
    kernel->space.push_back(std::move(constant));
  }
  if (kernel->space.empty()) {
    return scope.source.Error(
        decorator.span, "this declares no constant to search",
        Concat("write @", scope.alias(), ".autotune(BLOCK=[256, 4096]), or remove the decorator"));
  }
  return CheckSize(scope, decorator, *kernel);
}

}  // namespace phobos::compiler::sema
