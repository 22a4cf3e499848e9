// SPDX-License-Identifier: Apache-2.0
//
// Conditions on a variant and a launch: @ph.constraint and ph.assume. Private to sema/. One thread.
#ifndef PHOBOS_COMPILER_SEMA_DECLARATION_CONDITION_H_
#define PHOBOS_COMPILER_SEMA_DECLARATION_CONDITION_H_

#include <memory>

#include "absl/status/status.h"
#include "compiler/sema/declaration/scope.h"
#include "compiler/sema/kernel.h"

namespace phobos::compiler::sema {

// Adds the condition `expr` to kernel->conditions: over constants alone, or over constants,
// extents, scalars and ph.ctx.grid with the operators that a launch can evaluate (ConditionOp in
// manifest.proto). REQUIRES: the kernel's space, params and extents are set. Errors: Source::Error.
absl::Status AddCondition(const DeclarationScope& scope, std::shared_ptr<const ast::Expr> expr,
                          bool is_assumption, Kernel* kernel);

// @ph.constraint("...", ...).
absl::Status ReadConstraints(const DeclarationScope& scope, const ast::Decorator& decorator,
                             Kernel* kernel);

// The ph.assume(...) statements at the top of the body; one further down is an error.
absl::Status ReadAssumptions(const DeclarationScope& scope, Kernel* kernel);

// Whether a statement is a call of ph.assume.
bool IsAssumption(const ast::Stmt& statement);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_DECLARATION_CONDITION_H_
