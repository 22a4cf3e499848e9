// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of a tile that the block holds from one statement to another: with the threads,
// each what it made, or in shared memory, whole. There a transpose's rows are rotated against each
// other, so that neither its columns, which are written, nor its rows, which are read, meet in the
// same banks; those of what is multiplied are swizzled (plan/contraction/product.h). One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_HELD_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_HELD_H_

#include <cstdint>
#include <optional>

#include "compiler/codegen/nvptx/plan/contraction/product.h"
#include "compiler/codegen/nvptx/tile/environment.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

class HeldTile {
 public:
  // Of a kStage, kReadVar, kDeclareVar or kWriteVar whose tile has its place already.
  HeldTile(Environment& environment, const ir::Op& op);

  // Where a statement has element `place` of the tile, or of one that it is broadcast to.
  Fragment Load(const Place& place) const { return LoadBeside(place, 0, 0); }
  // Shared memory: the elements so many rows below and columns behind it.
  Fragment LoadBeside(const Place& place, int64_t rows, int64_t columns) const;
  void Store(const Place& place, const Fragment& value) const;

  // Shared memory: where the element is.
  llvm::Value* AddressAt(const Place& place) const { return AddressOf(NumberOf(place, 0)); }

  // Shared memory: an element by its number in row-major order (i32); with the threads, by which of
  // those that the thread holds it is.
  llvm::Value* LoadAt(llvm::Value* number) const;
  void StoreAt(llvm::Value* number, llvm::Value* value) const;

 private:
  llvm::Value* AddressOf(llvm::Value* number) const;
  bool AreMovedAlike(int64_t rows, int64_t columns) const;
  llvm::Value* NumberOf(const Place& place, unsigned lane) const;
  bool AreRowsMoved() const { return granules_ > 1 || swizzle_.has_value(); }
  llvm::Value* AddressOfNumber(llvm::Value* number) const;
  llvm::Value* Moved(const Place& place, unsigned lane) const;
  llvm::Value* MovedTo(llvm::Value* row, llvm::Value* column) const;
  llvm::Value* Rotated(llvm::Value* row, llvm::Value* column) const;
  llvm::Value* Swizzled(llvm::Value* row, llvm::Value* column) const;
  // Elements at a time at a place.
  unsigned ChunkAt(const Place& place) const;
  llvm::Value* FromMemory(llvm::Value* value) const;
  llvm::Value* ToMemory(llvm::Value* value) const;

  Environment& env_;
  const ir::Type& type_;
  llvm::Type* const element_;
  llvm::Value* const start_;
  const bool is_shared_;
  const bool is_of_rows_;  // each thread keeps it of its own rows
  const bool is_operand_;  // each thread keeps it for products
  int64_t granules_ = 1;   // of a row that is rotated
  std::optional<Swizzle> swizzle_;
};

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_HELD_H_
