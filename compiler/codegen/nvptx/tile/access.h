// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of tensors by one thread. An Access is worked out once before a statement's
// turns: the address that its scalar positions give, and whether all of it lies inside the tensor;
// then it is used for one Place of the tile at a time. No element outside its tensor is ever
// touched. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_ACCESS_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_ACCESS_H_

#include <cstdint>
#include <vector>

#include "compiler/codegen/nvptx/tile/environment.h"
#include "compiler/ir/ir.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::nvptx {

class Access {
 public:
  // The positions of the gathers at one place, in the order of the subscripts, i64.
  using Positions = llvm::SmallVector<Fragment, 4>;

  // `op` is a kLoad, kStore or atomic. Emits what does not depend on the place.
  Access(Environment& environment, const ir::Op& op);

  // i1: every element is inside; gathered positions do not count, they are tested one by one. Null:
  // there is nothing to test.
  llvm::Value* inside() const { return inside_; }

  // i64: zero where vectors of so many lanes along the last side are all aligned; null where that
  // is known, or where neighbours along it are no neighbours in memory.
  llvm::Value* Misalignment(unsigned lanes) const;

  // Emits what places that are not inside need, before the turns.
  void PrepareRanges();

  // i1: the slices have the place inside the tensor; null: they do. REQUIRES: PrepareRanges.
  llvm::Value* IsInside(const Place& place) const;

  // Whether `other`, of a tile of the same shape, is inside at every place where this one is.
  bool Implies(const Access& other) const;

  // Bytes from an element to the next one along a side of the tile that a slice runs along (i64).
  llvm::Value* BytesAlong(int side) const;
  // Of an access without gathers: the address of a place, which may be none where it is not inside.
  llvm::Value* AddressAt(const Place& place) const { return AddressOf(place, {}, 0); }
  // i1: elements of vectors of so many lanes along the last side, of those that are aligned, are
  // all before the tensor's first or none is. REQUIRES: PrepareRanges; the last subscript is a
  // slice.
  llvm::Value* StartsAtVector(unsigned lanes) const;
  // i32: the elements that are inside from a place on along the last side, `lanes` at most, where
  // the first is inside or none is. REQUIRES: as StartsAtVector.
  llvm::Value* InsideFrom(const Place& place, unsigned lanes) const;

  // The sides that gathered positions stand for: [first, first + count).
  int gather_side() const { return gather_side_; }
  int gather_side_count() const { return gather_side_count_; }

  // The elements at a place. `mask` (empty: all) and `fill` (empty: zero) are the place's.
  // `is_tested`: the slices are known to be inside there.
  Fragment Load(const Place& place, bool is_tested, const Positions& gathered, const Fragment& mask,
                const Fragment& fill) const;
  // REQUIRES: the slices are inside there.
  void Store(const Place& place, const Positions& gathered, const Fragment& mask,
             const Fragment& value) const;
  // Does the atomic on each element at a place and gives the elements as they were, 0 outside;
  // empty where the op has no result.
  Fragment Atomic(const Place& place, const Positions& gathered,
                  llvm::ArrayRef<Fragment> operands) const;

 private:
  struct Axis {
    size_t dimension = 0;  // of the tensor
    bool is_gather = false;
    int side = 0;                     // of the tile, for a slice
    int64_t length = 0;               // for a slice
    llvm::Value* position = nullptr;  // for a slice, i64
    llvm::Value* bound = nullptr;     // side of the tensor, i64
    llvm::Value* first = nullptr;     // i32: the part of the slice that is inside
    llvm::Value* end = nullptr;
  };

  void AddPosition(size_t dimension, int* side, llvm::Value** offset);
  bool HasUnitStride(const Axis& axis) const { return axis.dimension + 1 == op_.subscripts.size(); }
  bool IsContiguousAlong(int side) const;
  // One lane's: `lane` counts along the lane side.
  llvm::Value* AddressOf(const Place& place, const Positions& gathered, unsigned lane) const;
  llvm::Value* GatherMask(const Positions& gathered, unsigned lane) const;
  llvm::Value* LoadOne(llvm::Value* address, llvm::Value* mask, llvm::Value* fill) const;
  void StoreOne(llvm::Value* address, llvm::Value* mask, llvm::Value* value) const;
  void StoreVector(llvm::Value* address, const Fragment& value, unsigned lanes) const;
  llvm::LoadInst* LoadFrom(llvm::Type* type, llvm::Value* address, uint64_t bytes) const;
  // Elements as tensors have them, and back.
  llvm::Value* FromMemory(llvm::Value* value) const;
  llvm::Value* ToMemory(llvm::Value* value) const;

  Environment& env_;
  const ir::Op& op_;
  const ir::Param& param_;
  const codegen::Tensor& tensor_;
  llvm::Type* const memory_type_;
  llvm::IntegerType* const offset_type_;
  std::vector<Axis> axes_;
  int gather_side_ = 0;
  int gather_side_count_ = 0;
  llvm::Value* base_ = nullptr;   // address of the element at every slice's start
  llvm::Value* fixed_ = nullptr;  // i1: the kElement subscripts are inside; null: there are none
  bool is_fixed_in_end_ = false;  // some slice has no part inside where they are not
  llvm::Value* inside_ = nullptr;
};

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_ACCESS_H_
