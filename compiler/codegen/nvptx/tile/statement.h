// SPDX-License-Identifier: Apache-2.0
//
// Statements over tiles, as one thread does its part of them. What a statement stores is evaluated
// vector by vector: everything that its value needs, back to loads, held tiles and scalars, is
// computed in registers and stored. passes/stage.h makes sure that evaluating late gives what
// evaluating in order would have. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_STATEMENT_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_STATEMENT_H_

#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/tile/environment.h"

namespace phobos::compiler::nvptx {

// Emits a statement of the environment's plan. Variables and held tiles are in `environment`
// already.
void EmitStatement(Environment& environment, const Statement& statement);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_STATEMENT_H_
