// SPDX-License-Identifier: Apache-2.0
//
// Scans: the tile is stored in its place in shared memory and summed there, pieces side by side
// (plan/dealing.h). One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_REDUCTION_SCAN_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_REDUCTION_SCAN_H_

#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/tile/environment.h"

namespace phobos::compiler::nvptx {

// Emits a kStage of the environment's plan whose operand is a scan.
void EmitScan(Environment& environment, const Statement& statement);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_REDUCTION_SCAN_H_
