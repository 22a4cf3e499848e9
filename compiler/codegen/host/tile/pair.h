// SPDX-License-Identifier: Apache-2.0
//
// Joins and interleavings: the elements of two tiles are computed where they stand and stored where
// the result has them. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_TILE_PAIR_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_TILE_PAIR_H_

#include "compiler/codegen/host/tile/environment.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::host {

// Emits a kStage of a kJoin or kInterleave; the held tile is in `environment` already.
void EmitPair(const Environment& environment, const ir::Op& stage);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_TILE_PAIR_H_
