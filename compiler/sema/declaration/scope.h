// SPDX-License-Identifier: Apache-2.0
//
// What the parts of a kernel's declaration are read against: the file, its constants, the kernel as
// far as it is known. Private to sema/. One thread.
#ifndef PHOBOS_COMPILER_SEMA_DECLARATION_SCOPE_H_
#define PHOBOS_COMPILER_SEMA_DECLARATION_SCOPE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "compiler/sema/declaration/constants.h"
#include "compiler/sema/kernel.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler::sema {

struct DeclarationScope {
  const Source& source;
  const ast::Module& module;
  const ModuleConstants& constants;

  // "ph": how the file spells the language, for remedies.
  const std::string& alias() const { return module.aliases.front(); }

  // An error when `name` is reserved ("_ph...").
  absl::Status CheckNotReserved(std::string_view name, Span span) const;

  // An error when `name`, a new `what` ("a parameter"), is a constant of the module as well.
  absl::Status CheckHidesNothing(std::string_view name, std::string_view what, Span span) const;

  // The value of an int argument; `what` names it in errors: "the number of threads".
  absl::StatusOr<int64_t> IntArgument(const ast::Expr& expr, std::string_view what) const;

  // An error unless the decorator has exactly this many positional arguments and no keyword outside
  // `allowed`. `usage` is how the decorator is written, without the alias: "launch(256)".
  absl::Status CheckArguments(const ast::Decorator& decorator, size_t positional,
                              const std::vector<std::string_view>& allowed,
                              std::string_view usage) const;
};

// The choices of a tuned constant, or null.
const TunedConstant* FindTuned(const Kernel& kernel, std::string_view name);
// The index of an extent or parameter, or -1.
int FindExtent(const Kernel& kernel, std::string_view name);
int FindParam(const Kernel& kernel, std::string_view name);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_DECLARATION_SCOPE_H_
