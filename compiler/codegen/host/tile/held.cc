// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/tile/held.h"

#include "compiler/codegen/arithmetic.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::host {
namespace {

llvm::Value* Address(const Environment& environment, llvm::Value* start, const ir::Type& type,
                     const Chunk& chunk) {
  llvm::IRBuilder<>& b = environment.builder;
  llvm::Value* offset = chunk.indices[0];
  for (size_t side = 1; side < type.shape.size(); ++side) {
    offset =
        b.CreateAdd(b.CreateMul(offset, environment.Int(type.shape[side])), chunk.indices[side]);
  }
  return b.CreateGEP(codegen::MemoryType(b.getContext(), type.dtype), start, offset);
}

}  // namespace

int64_t HeldBytes(const ir::Type& type) {
  const int64_t bytes = (type.elements() + kMaxLanes) * ir::ByteSize(type.dtype);
  return (bytes + 63) / 64 * 64;
}

int LaneSide(const std::vector<int64_t>& shape) {
  size_t side = shape.size() - 1;
  while (side > 0 && shape[side] == 1) --side;
  return static_cast<int>(side);
}

llvm::Value* HeldStart(const Environment& environment, const ir::Op& op) {
  return op.opcode == ir::Opcode::kStage ? environment.held_tiles[op.result]
                                         : environment.variables[op.index];
}

llvm::Value* LoadHeld(const Environment& environment, llvm::Value* start, const ir::Type& type,
                      const Chunk& chunk) {
  llvm::IRBuilder<>& b = environment.builder;
  llvm::Type* element = codegen::MemoryType(b.getContext(), type.dtype);
  llvm::Type* loaded =
      chunk.has_lanes() ? llvm::FixedVectorType::get(element, chunk.lanes) : element;
  llvm::Value* value = b.CreateAlignedLoad(loaded, Address(environment, start, type, chunk),
                                           llvm::Align(ir::ByteSize(type.dtype)));
  return type.dtype == ir::DType::kBool ? b.CreateIsNotNull(value) : value;
}

void StoreHeld(const Environment& environment, llvm::Value* start, const ir::Type& type,
               const Chunk& chunk, llvm::Value* value) {
  llvm::IRBuilder<>& b = environment.builder;
  const llvm::Align align(ir::ByteSize(type.dtype));
  llvm::Type* element = codegen::MemoryType(b.getContext(), type.dtype);
  llvm::Value* address = Address(environment, start, type, chunk);
  if (type.dtype == ir::DType::kBool) {
    value = b.CreateZExt(value, codegen::WithLanesOf(element, value->getType()));
  }
  if (chunk.valid_lanes == chunk.lanes || chunk.lane_side <= 0) {
    b.CreateAlignedStore(value, address, align);
    return;
  }
  // The next row begins behind the last valid lane: only those are stored, in pieces.
  unsigned done = 0;
  for (unsigned piece = chunk.lanes / 2; piece > 0; piece /= 2) {
    if ((chunk.valid_lanes & piece) == 0) continue;
    llvm::SmallVector<int, kMaxLanes> lanes(piece);
    for (unsigned i = 0; i < piece; ++i) lanes[i] = static_cast<int>(done + i);
    b.CreateAlignedStore(b.CreateShuffleVector(value, lanes),
                         b.CreateGEP(element, address, environment.Int(done)), align);
    done += piece;
  }
}

}  // namespace phobos::compiler::host
