// SPDX-License-Identifier: Apache-2.0
//
// The checker: one kernel's body at one point of its search space, from syntax tree to tile IR,
// with every name, type and shape checked. Each ph.fn is inlined, each constant is a number. Pure,
// any thread.
#ifndef PHOBOS_COMPILER_SEMA_LOWER_H_
#define PHOBOS_COMPILER_SEMA_LOWER_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/sema/kernel.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler::sema {

// Errors: Source::Error (InvalidArgument) for what the language forbids. The result passes
// ir::Verify. REQUIRES: kernel came from AnalyzeModule of these.
absl::StatusOr<ir::Function> Lower(const Source& source, const ast::Module& module,
                                   const Kernel& kernel, const Settings& settings);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_LOWER_H_
