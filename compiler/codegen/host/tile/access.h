// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of tensors. An Access is worked out once before a statement's loops: the address
// that its scalar positions give, and whether all of it lies inside the tensor; then it is used for
// one chunk of the tile at a time. No element outside its tensor is ever touched. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_TILE_ACCESS_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_TILE_ACCESS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/codegen/host/tile/environment.h"
#include "compiler/codegen/kernel/tile_place.h"
#include "compiler/ir/ir.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::host {

// Where in a tile a chunk is; indices are i64. Without a side for lanes it is a scalar.
struct Chunk : codegen::TilePlace {
  unsigned lanes = 1;
  unsigned valid_lanes = 1;  // the first so many are elements of the tile
  bool is_inside = false;    // every access of the statement lies inside its tensor
  // Vector of i1: the lanes that anybody wants. An Access neither loads nor stores the others,
  // which may lie outside of the tile; of a held tile they are read all the same. Null: all.
  llvm::Value* wanted = nullptr;

  // The same chunk where its elements are in another tile.
  Chunk At(codegen::TilePlace place) const {
    Chunk chunk = *this;
    static_cast<codegen::TilePlace&>(chunk) = std::move(place);
    return chunk;
  }
};

class Access {
 public:
  // The elements [first, end) of one side, i64.
  struct Range {
    llvm::Value* first = nullptr;
    llvm::Value* end = nullptr;
  };
  // The positions of the gathers for one chunk, in the order of the subscripts: each a vector of
  // the chunk's lanes, or a scalar where it is one for all lanes.
  using Positions = llvm::SmallVector<llvm::Value*, 4>;

  // `op` is a kLoad, kStore or atomic. Emits what does not depend on the chunk.
  Access(const Environment& environment, const ir::Op& op);

  // i1: every element is inside; gathered positions do not count, they are tested one by one.
  llvm::Value* inside() const { return inside_; }

  // The address of the element at every slice's start, inside or not.
  llvm::Value* start() const { return base_; }

  // Emits what chunks that are not inside need, before the loops over them.
  void PrepareRanges();

  // How far the tile lies inside along one side, where it does along all others.
  struct Reach {
    llvm::Value* is_inside = nullptr;  // i1: all but the end of the side; null: it is
    llvm::Value* elements = nullptr;  // i64: from the first on; may be negative, or beyond the tile
  };
  // Null elements: no slice runs along the side. REQUIRES: no gather.
  Reach ReachAlong(int side) const;

  // The part of `side` that lies inside the tensor, if a slice runs along it (else null values).
  // REQUIRES: PrepareRanges was called.
  Range RangeOf(int side) const;

  // Whether `side` runs along consecutive addresses.
  bool IsContiguousAlong(int side) const;

  // The address of a chunk's first element. REQUIRES: the chunk is inside, contiguous along its
  // lanes; no gather.
  llvm::Value* AddressOf(const Chunk& chunk) const;

  // The sides that gathered positions stand for: [first, first + count).
  int gather_side() const { return gather_side_; }
  int gather_side_count() const { return gather_side_count_; }

  int64_t element_bytes() const { return ir::ByteSize(op_.type.dtype); }

  // Of the tensor.
  size_t dimensions() const { return op_.subscripts.size(); }

  // The elements of a chunk. `mask` (null: all) and `fill` (null: zero) have the chunk's lanes.
  llvm::Value* Load(const Chunk& chunk, const Positions& gathered, llvm::Value* mask,
                    llvm::Value* fill) const;
  void Store(const Chunk& chunk, const Positions& gathered, llvm::Value* mask,
             llvm::Value* value) const;
  // The same past the caches. REQUIRES: the chunk is inside, contiguous along its lanes and aligned
  // to its own size, or to a line where that is less; no gather.
  void Stream(const Chunk& chunk, llvm::Value* value) const;
  // Does the atomic on each element of a chunk, in order, and gives the elements as they were, 0
  // outside; null where the op has no result. `operands` have the chunk's lanes.
  llvm::Value* Atomic(const Chunk& chunk, const Positions& gathered,
                      llvm::ArrayRef<llvm::Value*> operands) const;

 private:
  struct Axis {
    bool is_gather = false;
    int side = 0;                     // of the tile, for a slice
    int64_t length = 0;               // for a slice
    llvm::Value* position = nullptr;  // for a slice
    llvm::Value* bound = nullptr;     // side of the tensor
    llvm::Value* stride = nullptr;    // elements
    bool has_unit_stride = false;
    Range range;
  };
  struct Place {
    llvm::Value* address = nullptr;  // of lane 0, or what offsets count from
    llvm::Value* offsets = nullptr;  // a vector, elements; null: consecutive lanes
    llvm::Value* mask = nullptr;     // null: all lanes
  };

  Place PlaceOf(const Chunk& chunk, const Positions& gathered, llvm::Value* mask) const;
  llvm::Value* SliceMask(const Chunk& chunk, const Axis& axis) const;
  llvm::Value* OffsetVector(const Chunk& chunk, const Axis& axis, llvm::Value* index) const;
  llvm::Value* ElementAddress(llvm::Value* base, llvm::Value* offset) const;
  llvm::Value* InMemory(llvm::Value* value) const;
  bool HasVectorForm(const Place& place) const;
  llvm::Value* LoadLaneByLane(const Chunk& chunk, const Place& place, llvm::Value* fill) const;
  void StoreLaneByLane(const Chunk& chunk, const Place& place, llvm::Value* value) const;
  void ForEachLane(const Chunk& chunk, const Place& place,
                   llvm::function_ref<void(llvm::Value* lane, llvm::Value* address)> body) const;

  const Environment& env_;
  const ir::Op& op_;
  llvm::Type* const memory_type_;
  std::vector<Axis> axes_;
  int gather_side_ = 0;
  int gather_side_count_ = 0;
  llvm::Value* base_ = nullptr;   // address of the element at every slice's start
  llvm::Value* fixed_ = nullptr;  // i1: the kElement subscripts are inside; null: there are none
  llvm::Value* inside_ = nullptr;
};

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_TILE_ACCESS_H_
