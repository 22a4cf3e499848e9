// SPDX-License-Identifier: Apache-2.0
//
// @ph.autotune: the search space. Private to sema/. One thread.
#ifndef PHOBOS_COMPILER_SEMA_DECLARATION_SPACE_H_
#define PHOBOS_COMPILER_SEMA_DECLARATION_SPACE_H_

#include "absl/status/status.h"
#include "compiler/sema/declaration/scope.h"
#include "compiler/sema/kernel.h"

namespace phobos::compiler::sema {

// Fills kernel->space and kernel->variant_limit. Errors: Source::Error.
absl::Status ReadSpace(const DeclarationScope& scope, const ast::Decorator& decorator,
                       Kernel* kernel);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_DECLARATION_SPACE_H_
