// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/tile/held.h"

#include <algorithm>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/nvptx/tile/words.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::nvptx {
namespace {

// What is read and written at once, and what stays together in a row that is rotated.
constexpr int64_t kGranuleBytes = Swizzle::kGranuleBytes;

llvm::Value* StartOf(const Environment& environment, const ir::Op& op) {
  return op.opcode == ir::Opcode::kStage ? environment.held_tiles[op.result]
                                         : environment.variables[op.index];
}

}  // namespace

HeldTile::HeldTile(Environment& environment, const ir::Op& op)
    : env_(environment),
      type_(op.opcode == ir::Opcode::kStage ? op.type : environment.function.vars[op.index].type),
      element_(codegen::MemoryType(environment.builder.getContext(), type_.dtype)),
      start_(StartOf(environment, op)),
      is_shared_(start_->getType()->getPointerAddressSpace() == kSharedSpace),
      is_of_rows_(environment.plan.KeepsRows(op)),
      is_operand_(environment.plan.kept.operands.count(&op) > 0) {
  if (!is_shared_ || op.opcode != ir::Opcode::kStage) return;
  if (env_.plan.copies.operands.count(&op) > 0) {
    if (env_.plan.straight.count(&op) == 0) swizzle_ = SwizzleOf(type_);
    return;
  }
  const ir::Op* whole = env_.plan.statements.at(&op).whole;
  if (whole == nullptr || whole->opcode != ir::Opcode::kTranspose) return;
  const int64_t row_bytes = type_.shape.back() * ir::ByteSize(type_.dtype);
  if (row_bytes % kGranuleBytes == 0) granules_ = row_bytes / kGranuleBytes;
}

llvm::Value* HeldTile::FromMemory(llvm::Value* value) const {
  return type_.dtype == ir::DType::kBool ? env_.builder.CreateIsNotNull(value) : value;
}

llvm::Value* HeldTile::ToMemory(llvm::Value* value) const {
  return type_.dtype == ir::DType::kBool ? env_.builder.CreateZExt(value, element_) : value;
}

llvm::Value* HeldTile::AddressOf(llvm::Value* number) const {
  llvm::IRBuilder<>& b = env_.builder;
  return b.CreateGEP(element_, start_, b.CreateZExt(number, b.getInt64Ty()));
}

// In shared memory by its indices; with a thread, by what the thread holds.
llvm::Value* HeldTile::NumberOf(const Place& place, unsigned lane) const {
  if (is_shared_) {
    if (AreRowsMoved()) return Moved(place, lane);
    return nvptx::NumberOf(env_, type_.shape, place, lane);
  }
  if (is_of_rows_) return place.row;
  return env_.builder.CreateAdd(place.held, env_.Int32(lane), "", true, true);
}

// The number of an element whose row is rotated or swizzled.
llvm::Value* HeldTile::Moved(const Place& place, unsigned lane) const {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Value* row = env_.Int32(0);
  llvm::Value* column = nullptr;
  for (size_t side = 0; side < type_.shape.size(); ++side) {
    column = IndexOf(env_, place, side, lane);
    if (side + 1 == type_.shape.size()) break;
    row = b.CreateMul(row, env_.Int32(type_.shape[side]), "", true, true);
    row = b.CreateAdd(row, column, "", true, true);
  }
  return MovedTo(row, column);
}

llvm::Value* HeldTile::MovedTo(llvm::Value* row, llvm::Value* column) const {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Value* moved = swizzle_.has_value() ? Swizzled(row, column) : Rotated(row, column);
  return b.CreateAdd(b.CreateMul(row, env_.Int32(type_.shape.back()), "", true, true), moved, "",
                     true, true);
}

// Of an element by its number: by that itself, unless rows are moved.
llvm::Value* HeldTile::AddressOfNumber(llvm::Value* number) const {
  if (!AreRowsMoved()) return AddressOf(number);
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Value* columns = env_.Int32(type_.shape.back());
  return AddressOf(MovedTo(b.CreateUDiv(number, columns), b.CreateURem(number, columns)));
}

// Row r begins at its granule r / (elements of a granule), and goes on from the row's end at its
// beginning.
llvm::Value* HeldTile::Rotated(llvm::Value* row, llvm::Value* column) const {
  llvm::IRBuilder<>& b = env_.builder;
  const int64_t granule = kGranuleBytes / ir::ByteSize(type_.dtype);
  llvm::Value* first = b.CreateMul(b.CreateUDiv(row, env_.Int32(granule)), env_.Int32(granule));
  return b.CreateURem(b.CreateAdd(column, first, "", true, true), env_.Int32(granules_ * granule));
}

llvm::Value* HeldTile::Swizzled(llvm::Value* row, llvm::Value* column) const {
  if (swizzle_->width == 1) return column;
  llvm::IRBuilder<>& b = env_.builder;
  const int64_t granule = kGranuleBytes / ir::ByteSize(type_.dtype);
  llvm::Value* turned =
      b.CreateAnd(b.CreateUDiv(row, env_.Int32(swizzle_->rows)), env_.Int32(swizzle_->width - 1));
  return b.CreateXor(column, b.CreateMul(turned, env_.Int32(granule), "", true, true));
}

unsigned HeldTile::ChunkAt(const Place& place) const {
  // The words that a matrix instruction takes.
  if (is_operand_) return place.lanes;
  if (!is_shared_ || place.lane_side == Place::kNoSide) return 1;
  for (size_t side = static_cast<size_t>(place.lane_side) + 1; side < type_.shape.size(); ++side) {
    if (type_.shape[side] > 1) return 1;
  }
  return std::min(place.lanes, static_cast<unsigned>(kGranuleBytes / ir::ByteSize(type_.dtype)));
}

// Whether an element is as far from one so many rows and columns beside it as it would be had no
// row been moved.
bool HeldTile::AreMovedAlike(int64_t rows, int64_t columns) const {
  if (!swizzle_.has_value()) return granules_ == 1;
  const int64_t granule = kGranuleBytes / ir::ByteSize(type_.dtype);
  return rows % (swizzle_->rows * swizzle_->width) == 0 &&
         columns % (swizzle_->width * granule) == 0;
}

Fragment HeldTile::LoadBeside(const Place& place, int64_t rows, int64_t columns) const {
  llvm::IRBuilder<>& b = env_.builder;
  const bool is_beside = rows != 0 || columns != 0;
  Place from = place;
  int64_t distance = 0;
  if (is_beside && AreMovedAlike(rows, columns)) {
    // The instruction adds it itself.
    distance = (rows * type_.shape.back() + columns) * ir::ByteSize(type_.dtype);
  } else if (is_beside) {
    const size_t rank = from.indices.size();
    from.indices[rank - 2] = b.CreateAdd(from.indices[rank - 2], env_.Int32(rows), "", true, true);
    from.indices[rank - 1] =
        b.CreateAdd(from.indices[rank - 1], env_.Int32(columns), "", true, true);
  }
  const unsigned chunk = ChunkAt(from);
  llvm::Type* words = chunk > 1 ? WordsType(element_, chunk) : element_;
  const llvm::Align align(static_cast<uint64_t>(ir::ByteSize(type_.dtype)) * chunk);
  Fragment loaded;
  for (unsigned lane = 0; lane < from.lanes; lane += chunk) {
    llvm::Value* address = AddressOf(NumberOf(from, lane));
    if (distance != 0) {
      address = b.CreateConstGEP1_64(b.getInt8Ty(), address, static_cast<uint64_t>(distance));
    }
    llvm::Value* value = b.CreateAlignedLoad(words, address, align);
    Fragment elements = chunk > 1 ? UnpackWords(b, value, element_, chunk) : Fragment{value};
    for (llvm::Value* element : elements) loaded.push_back(FromMemory(element));
  }
  return loaded;
}

void HeldTile::Store(const Place& place, const Fragment& value) const {
  llvm::IRBuilder<>& b = env_.builder;
  const unsigned chunk = ChunkAt(place);
  const llvm::Align align(static_cast<uint64_t>(ir::ByteSize(type_.dtype)) * chunk);
  for (unsigned lane = 0; lane < place.lanes; lane += chunk) {
    Fragment elements;
    for (unsigned i = 0; i < chunk; ++i) elements.push_back(ToMemory(LaneOf(value, lane + i)));
    llvm::Value* stored = chunk > 1 ? PackWords(b, elements, element_, chunk) : elements[0];
    b.CreateAlignedStore(stored, AddressOf(NumberOf(place, lane)), align);
  }
}

llvm::Value* HeldTile::LoadAt(llvm::Value* number) const {
  return FromMemory(env_.builder.CreateAlignedLoad(
      element_, AddressOfNumber(number),
      llvm::Align(static_cast<uint64_t>(ir::ByteSize(type_.dtype)))));
}

void HeldTile::StoreAt(llvm::Value* number, llvm::Value* value) const {
  env_.builder.CreateAlignedStore(ToMemory(value), AddressOfNumber(number),
                                  llvm::Align(static_cast<uint64_t>(ir::ByteSize(type_.dtype))));
}

}  // namespace phobos::compiler::nvptx
