// SPDX-License-Identifier: Apache-2.0
//
// A kernel's parameters and the extents that their annotations name. Private to sema/. One thread.
#ifndef PHOBOS_COMPILER_SEMA_DECLARATION_SIGNATURE_H_
#define PHOBOS_COMPILER_SEMA_DECLARATION_SIGNATURE_H_

#include "absl/status/status.h"
#include "compiler/sema/declaration/scope.h"
#include "compiler/sema/kernel.h"

namespace phobos::compiler::sema {

// Fills kernel->params and kernel->extents. REQUIRES: kernel->function and kernel->space are set.
// Errors: Source::Error.
absl::Status ReadSignature(const DeclarationScope& scope, Kernel* kernel);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_DECLARATION_SIGNATURE_H_
