// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/lower.h"

#include "compiler/sema/lowering/checker.h"

namespace phobos::compiler::sema {

absl::StatusOr<ir::Function> Lower(const Source& source, const ast::Module& module,
                                   const Kernel& kernel, const Settings& settings) {
  return Checker(source, module, kernel, settings).Run();
}

}  // namespace phobos::compiler::sema
