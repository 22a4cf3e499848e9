// SPDX-License-Identifier: Apache-2.0
//
// Transposes: a tile's elements are computed in the order of its own rows and stored in that of the
// result's, square blocks of vectors at a time. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_TILE_TRANSPOSE_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_TILE_TRANSPOSE_H_

#include "compiler/codegen/host/tile/environment.h"
#include "compiler/ir/ir.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::host {

// As many vectors as they have lanes, 16 at most: a square of elements.
using VectorRows = llvm::SmallVector<llvm::Value*, 16>;

// Lane j of row i becomes lane i of row j.
void TransposeRows(llvm::IRBuilder<>& builder, VectorRows* rows);

// Emits a kStage of a kTranspose; the held tile is in `environment` already.
void EmitTranspose(const Environment& environment, const ir::Op& stage);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_TILE_TRANSPOSE_H_
