// SPDX-License-Identifier: Apache-2.0
//
// Statements over tiles. What a statement stores is evaluated chunk by chunk: everything that its
// value needs, back to loads, held tiles and scalars, is computed for a few vectors at a time and
// stored, so that no tile but the held ones ever exists as a whole. passes/stage.h makes sure that
// evaluating late gives what evaluating in order would have. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_TILE_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_TILE_H_

#include "compiler/codegen/host/environment.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::host {

// Emits a kStore, kDeclareVar, kWriteVar or kStage of a tile. Variables and held tiles are in
// `environment` already.
// REQUIRES: the function went through passes::Stage.
void EmitTileStatement(const Environment& environment, const ir::Op& op);

// Bytes that a tile occupies in scratch memory: with room to read and write whole vectors.
int64_t HeldBytes(const ir::Type& type);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_TILE_H_
