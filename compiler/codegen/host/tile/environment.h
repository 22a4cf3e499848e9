// SPDX-License-Identifier: Apache-2.0
//
// What the host's emitter knows beside codegen::Environment. Shared by kernel.cc (the frame)
// and all that emits statements over tiles: tile/, reduction/ and contraction/. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_TILE_ENVIRONMENT_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_TILE_ENVIRONMENT_H_

#include <cstdint>
#include <vector>

#include "compiler/codegen/kernel/environment.h"
#include "compiler/ir/ir.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::host {

struct Environment : codegen::Environment {
  // `bytes` is the width of the chip's vectors.
  Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder, int64_t bytes);

  const int64_t vector_bytes;
  // By parameter, i1: stores to it should go past the caches. Null: they never should.
  std::vector<llvm::Value*> is_streamed;
  // By ValueId: the address in scratch memory of a tile that a kStage holds.
  std::vector<llvm::Value*> held_tiles;

  // A Slot for so many elements, aligned for vectors.
  llvm::Value* Buffer(llvm::Type* element, unsigned count) const;
};

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_TILE_ENVIRONMENT_H_
