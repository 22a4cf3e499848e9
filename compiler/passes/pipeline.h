// SPDX-License-Identifier: Apache-2.0
//
// The passes over the tile IR, in their order: what stands between Lower and every back end. Pure,
// any thread.
#ifndef PHOBOS_COMPILER_PASSES_PIPELINE_H_
#define PHOBOS_COMPILER_PASSES_PIPELINE_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::passes {

// What a back end compiles; what it may assume is said at each pass. REQUIRES: the function passes
// ir::Verify. Internal: a pass made one that does not.
absl::StatusOr<ir::Function> Run(ir::Function function);

}  // namespace phobos::compiler::passes

#endif  // PHOBOS_COMPILER_PASSES_PIPELINE_H_
