// SPDX-License-Identifier: Apache-2.0
//
// Statements over tiles. What a statement stores is evaluated chunk by chunk (evaluator.h): a few
// vectors at a time are computed and stored, so that no tile but the held ones ever exists as a
// whole. passes/stage.h makes sure that evaluating late gives what evaluating in order would have.
// One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_TILE_STATEMENT_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_TILE_STATEMENT_H_

#include "compiler/codegen/host/tile/environment.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::host {

// Emits a kStore, kDeclareVar, kWriteVar or kStage of a tile other than a reduction's. Variables
// and held tiles are in `environment` already. REQUIRES: the function went through passes::Stage.
void EmitTileStatement(const Environment& environment, const ir::Op& op);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_TILE_STATEMENT_H_
