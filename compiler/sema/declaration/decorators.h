// SPDX-License-Identifier: Apache-2.0
//
// The decorators of a kernel, each once and @ph.kernel outermost. Private to sema/. One thread.
#ifndef PHOBOS_COMPILER_SEMA_DECLARATION_DECORATORS_H_
#define PHOBOS_COMPILER_SEMA_DECLARATION_DECORATORS_H_

#include "absl/status/status.h"
#include "compiler/sema/declaration/scope.h"
#include "compiler/sema/kernel.h"

namespace phobos::compiler::sema {

// An error when a function's decorators are unknown, repeated or in a wrong order; for a ph.fn,
// when it has another one.
absl::Status CheckDecorators(const DeclarationScope& scope, const ast::Function& function);

// The decorator called `name`, or null.
const ast::Decorator* FindDecorator(const ast::Function& function, std::string_view name);

// @ph.autotune (space.cc): fills kernel->space and kernel->variant_limit. Errors: Source::Error.
absl::Status ReadSpace(const DeclarationScope& scope, const ast::Decorator& decorator,
                       Kernel* kernel);

// What stands in @ph.kernel, @ph.launch, @ph.index_bits, @ph.aligned, @ph.fast_math. REQUIRES:
// CheckDecorators was OK; the kernel's space, params and extents are set. Errors: Source::Error.
absl::Status ReadDecorators(const DeclarationScope& scope, Kernel* kernel);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_DECLARATION_DECORATORS_H_
