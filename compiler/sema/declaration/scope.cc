// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/declaration/scope.h"

#include <algorithm>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/nearest.h"

namespace phobos::compiler::sema {

absl::Status DeclarationScope::CheckNotReserved(std::string_view name, Span span) const {
  if (name.substr(0, 3) != "_ph") return absl::OkStatus();
  return source.Error(span, "names that begin with '_ph' are the compiler's",
                      "choose another name");
}

absl::Status DeclarationScope::CheckHidesNothing(std::string_view name, std::string_view what,
                                                 Span span) const {
  RETURN_IF_ERROR(CheckNotReserved(name, span));
  if (!constants.Has(name)) return absl::OkStatus();
  const int line = source.Line(constants.Place(name).begin);
  return source.Error(
      span,
      Concat("'", name, "' is ", what, " here and a constant of the module (line ", line, ")"),
      "give one of the two another name");
}

absl::StatusOr<int64_t> DeclarationScope::IntArgument(const ast::Expr& expr,
                                                      std::string_view what) const {
  ASSIGN_OR_RETURN(const ConstantValue value, constants.Evaluate(expr));
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  return source.Error(expr.span, Concat(what, " is an int, and this is ", KindOf(value)),
                      "write a whole number");
}

absl::Status DeclarationScope::CheckArguments(const ast::Decorator& decorator, size_t positional,
                                              const std::vector<std::string_view>& allowed,
                                              std::string_view usage) const {
  for (const ast::KeywordArgument& argument : decorator.keyword) {
    if (std::find(allowed.begin(), allowed.end(), argument.name) != allowed.end()) continue;
    return source.Error(
        argument.name_span,
        Concat("@", alias(), ".", decorator.name, " has no argument '", argument.name, "'"),
        DidYouMean(argument.name, allowed, Concat("write @", alias(), ".", usage)));
  }
  if (decorator.positional.size() == positional) return absl::OkStatus();
  const Span span = decorator.positional.size() > positional
                        ? decorator.positional[positional]->span
                        : decorator.span;
  return source.Error(
      span,
      Concat("@", alias(), ".", decorator.name, " takes ", positional == 0 ? "no" : "one",
             " positional argument, and this has ", decorator.positional.size()),
      Concat("write @", alias(), ".", usage));
}

const TunedConstant* FindTuned(const Kernel& kernel, std::string_view name) {
  for (const TunedConstant& constant : kernel.space) {
    if (constant.name == name) return &constant;
  }
  return nullptr;
}

int FindExtent(const Kernel& kernel, std::string_view name) {
  for (size_t i = 0; i < kernel.extents.size(); ++i) {
    if (kernel.extents[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int FindParam(const Kernel& kernel, std::string_view name) {
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    if (kernel.params[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace phobos::compiler::sema
