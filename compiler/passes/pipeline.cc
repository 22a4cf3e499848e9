// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/pipeline.h"

#include <utility>

#include "base/status_macros.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/stage.h"

namespace phobos::compiler::passes {

absl::StatusOr<ir::Function> Run(ir::Function function) {
  function = Stage(std::move(function));
  RETURN_IF_ERROR(ir::Verify(function));
  return function;
}

}  // namespace phobos::compiler::passes
