// SPDX-License-Identifier: Apache-2.0
//
// Expressions of constants, computed exactly and as Python computes them, and the module constants
// of a file. Private to sema/. Any thread, but a ModuleConstants belongs to one.
#ifndef PHOBOS_COMPILER_SEMA_DECLARATION_CONSTANTS_H_
#define PHOBOS_COMPILER_SEMA_DECLARATION_CONSTANTS_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/sema/kernel.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler::sema {

// A place in the kernel's file with what is wrong there; Source::Error makes the message.
struct ConstantError {
  Span span;
  std::string problem;
  std::string remedy;
};

// The value of a name, or why it has none.
using ConstantLookup =
    std::function<std::variant<ConstantValue, ConstantError>(const std::string& name, Span span)>;

// The value of an expression of literals, names, operators and ph.cdiv, ph.minimum, ph.maximum.
// Integers are exact: a result that no int64 holds is an error. `//` and `%` by zero give 0, as
// everywhere in the language.
std::variant<ConstantValue, ConstantError> Evaluate(const ast::Expr& expr,
                                                    const ConstantLookup& lookup);

// "an int", "a float", "a bool", "a string".
std::string_view KindOf(const ConstantValue& value);

// As Python's bool(value).
bool IsTrue(const ConstantValue& value);

// The constants at module level, computed in their order, and why other names are none.
class ModuleConstants {
 public:
  // Both must outlive this. A constant that cannot be computed is an error only once it is asked
  // for.
  ModuleConstants(const Source& source, const ast::Module& module);

  bool Has(std::string_view name) const { return constants_.count(name) > 0; }

  // The value of a constant. Errors: Source::Error at its own line when it cannot be computed.
  // REQUIRES: Has(name).
  absl::StatusOr<ConstantValue> Value(std::string_view name) const;

  // Where it is bound. REQUIRES: Has(name).
  Span Place(std::string_view name) const;

  // Why a name of module level is no constant: "it is imported (line 3)"; empty when module level
  // does not bind it.
  std::string WhyNot(std::string_view name) const;

  // The value of an expression of literals and module constants. Errors: Source::Error.
  absl::StatusOr<ConstantValue> Evaluate(const ast::Expr& expr) const;

  // Names of all constants.
  std::vector<std::string_view> Names() const;

 private:
  struct Constant {
    const ast::ModuleConstant* definition;
    std::optional<ConstantValue> value;  // absent when it cannot be computed
  };

  std::variant<ConstantValue, ConstantError> Find(const std::string& name, Span span) const;

  const Source& source_;
  const ast::Module& module_;
  std::map<std::string_view, Constant> constants_;
};

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_DECLARATION_CONSTANTS_H_
