// SPDX-License-Identifier: Apache-2.0
//
// What the host's emitter knows beside codegen::Environment. Shared by kernel.cc (the frame)
// and all that emits statements over tiles: tile/, reduction/ and contraction/. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_TILE_ENVIRONMENT_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_TILE_ENVIRONMENT_H_

#include <cstdint>
#include <vector>

#include "compiler/codegen/host/chip.h"
#include "compiler/codegen/kernel/environment.h"
#include "compiler/ir/ir.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::host {

inline constexpr int64_t kLineBytes = 64;  // of a cache

// passes::Cost of what a statement computes for an element: above, it has work enough to overlap
// with memory's, and what a choice a vector costs is nothing.
inline constexpr int kDear = 16;

struct Environment : codegen::Environment {
  // All three must outlive this.
  Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder,
              const Chip& host_chip);

  const Chip& chip;
  // All of it that x86-64-v4 asks for: ResolveChip gives vectors of 64 bytes to nothing less.
  bool has_avx512() const { return chip.vector_bytes == 64; }
  // By parameter, i1: stores to it should go past the caches. Null: they never should.
  std::vector<llvm::Value*> is_streamed;
  // By ValueId: the address in scratch memory of a tile that a kStage holds.
  std::vector<llvm::Value*> held_tiles;

  // By ValueId of a kLoad: whether a statement has read that tile already. Evaluators keep it.
  mutable std::vector<bool> was_read;

  // A store whose subscripts are those of the load: it will fill the same place of another tensor.
  // Null where there is none.
  const ir::Op* StoreBeside(const ir::Op& load) const;

  // i1: whether a row of so many elements (i64) that begins at the address is to be stored past the
  // caches. REQUIRES: is_streamed has the store's tensor.
  llvm::Value* IsRowStreamed(const ir::Op& store, llvm::Value* address,
                             llvm::Value* elements) const;

  // A Slot for so many elements, aligned for vectors.
  llvm::Value* Buffer(llvm::Type* element, unsigned count) const;
};

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_TILE_ENVIRONMENT_H_
