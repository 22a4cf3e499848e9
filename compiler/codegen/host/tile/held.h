// SPDX-License-Identifier: Apache-2.0
//
// Tiles in memory: what a kStage holds, and variables. A tile lies in row-major order, without
// gaps, and has room around it to read whole vectors, behind it also to write them. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_TILE_HELD_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_TILE_HELD_H_

#include <cstdint>
#include <vector>

#include "compiler/codegen/host/tile/access.h"
#include "compiler/codegen/host/tile/environment.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::host {

// The most lanes of a chunk.
inline constexpr unsigned kMaxLanes = 64;

// Bytes that belong to nobody before the first tile, as others are behind each one: where a row is
// streamed, its first vector begins up to a line of the tensor's elements before it, and elements
// of the tile have 8 bytes at most.
inline constexpr int64_t kRoomBefore = kLineBytes * 8;

// Bytes that a tile occupies.
int64_t HeldBytes(const ir::Type& type);

// The side that the lanes of a statement over a whole tile run along: the last that is longer than
// 1, behind which elements follow one another.
int LaneSide(const std::vector<int64_t>& shape);

// The address of the tile that a kStage or kReadVar stands for.
llvm::Value* HeldStart(const Environment& environment, const ir::Op& op);

// The elements of a chunk of the tile of `type` at `start`. REQUIRES: behind the chunk's lane side
// there are only sides of length 1.
llvm::Value* LoadHeld(const Environment& environment, llvm::Value* start, const ir::Type& type,
                      const Chunk& chunk);

// Writes the chunk's valid lanes, and beyond them nothing of the tile but what a later chunk of the
// same statement writes.
void StoreHeld(const Environment& environment, llvm::Value* start, const ir::Type& type,
               const Chunk& chunk, llvm::Value* value);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_TILE_HELD_H_
