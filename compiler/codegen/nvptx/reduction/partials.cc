// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/reduction/partials.h"

#include "compiler/codegen/arithmetic.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace phobos::compiler::nvptx {
namespace {

using codegen::Partial;
using codegen::Partials;

constexpr unsigned kWordBits = 32;

}  // namespace

PartialsEmitter::PartialsEmitter(Environment& environment, const Statement& statement)
    : env_(environment),
      b_(environment.builder),
      statement_(statement),
      dtype_(statement.type.dtype),
      combination_(environment.builder, *statement.whole, statement.type.dtype),
      gives_place_(ir::GivesPlace(statement.whole->opcode)) {}

void PartialsEmitter::MakeSlots(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    Partial slot{env_.Slot(codegen::ElementType(b_.getContext(), dtype_)), nullptr};
    if (gives_place_) slot.place = env_.Slot(b_.getInt32Ty());
    slots_.push_back(slot);
  }
}

void PartialsEmitter::Clear() {
  const Partial nothing = Nothing();
  for (const Partial& slot : slots_) {
    b_.CreateStore(nothing.value, slot.value);
    if (gives_place_) b_.CreateStore(nothing.place, slot.place);
  }
}

Partial PartialsEmitter::Read(size_t slot) const {
  llvm::Type* type = codegen::ElementType(b_.getContext(), dtype_);
  Partial partial{b_.CreateLoad(type, slots_[slot].value), nullptr};
  if (gives_place_) partial.place = b_.CreateLoad(b_.getInt32Ty(), slots_[slot].place);
  return partial;
}

void PartialsEmitter::Add(size_t slot, llvm::Value* element, llvm::Value* number) {
  const Partial after = combination_.Add(Read(slot), {element, gives_place_ ? number : nullptr});
  b_.CreateStore(after.value, slots_[slot].value);
  if (gives_place_) b_.CreateStore(after.place, slots_[slot].place);
}

Partial PartialsEmitter::Together(Partials partials) const {
  for (size_t h = 1; h < partials.size(); h *= 2) {
    for (size_t k = 0; k + h < partials.size(); k += 2 * h) {
      partials[k] = combination_.Combine(partials[k], partials[k + h]);
    }
  }
  return partials[0];
}

Partial PartialsEmitter::Fold(Partial partial, int64_t folded, int64_t group) const {
  for (int64_t h = 1; h < folded; h *= 2) {
    Partial other{FromLane(partial.value, h * group), nullptr};
    if (gives_place_) other.place = FromLane(partial.place, h * group);
    partial = combination_.Combine(partial, other);
  }
  return partial;
}

// What the thread has whose number in the warp differs by the bit `distance`.
llvm::Value* PartialsEmitter::FromLane(llvm::Value* value, int64_t distance) const {
  llvm::Type* type = value->getType();
  const unsigned bits = type->getPrimitiveSizeInBits().getFixedValue();
  llvm::Value* whole = b_.CreateBitCast(value, b_.getIntNTy(bits));
  if (bits < kWordBits) whole = b_.CreateZExt(whole, b_.getInt32Ty());
  llvm::Value* received = nullptr;
  for (unsigned first = 0; first < bits; first += kWordBits) {
    llvm::Value* word = b_.CreateTrunc(b_.CreateLShr(whole, uint64_t{first}), b_.getInt32Ty());
    word = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
                              {env_.Int32(-1), word, env_.Int32(distance), env_.Int32(kWarp - 1)});
    if (bits > kWordBits)
      word = b_.CreateShl(b_.CreateZExt(word, b_.getIntNTy(bits)), uint64_t{first});
    received = received == nullptr ? word : b_.CreateOr(received, word);
  }
  if (bits < kWordBits) received = b_.CreateTrunc(received, b_.getIntNTy(bits));
  return b_.CreateBitCast(received, type);
}

llvm::Value* PartialsEmitter::AddressOf(llvm::Value* number, bool is_place) const {
  llvm::Type* type = is_place ? static_cast<llvm::Type*>(b_.getInt32Ty())
                              : codegen::MemoryType(b_.getContext(), dtype_);
  const ReductionDealing& dealing = statement_.reduction;
  const int64_t values = dealing.left() * dealing.sides.results() * ir::ByteSize(dtype_);
  const int64_t start = statement_.exchange + (is_place ? SharedAligned(values) : 0);
  llvm::Value* base =
      b_.CreateConstGEP1_64(b_.getInt8Ty(), env_.shared, static_cast<uint64_t>(start));
  return b_.CreateGEP(type, base, b_.CreateZExt(number, b_.getInt64Ty()));
}

void PartialsEmitter::Put(llvm::Value* number, const Partial& partial) const {
  llvm::Type* type = codegen::MemoryType(b_.getContext(), dtype_);
  llvm::Value* value = partial.value;
  if (dtype_ == ir::DType::kBool) value = b_.CreateZExt(value, type);
  b_.CreateStore(value, AddressOf(number, /*is_place=*/false));
  if (gives_place_) b_.CreateStore(partial.place, AddressOf(number, /*is_place=*/true));
}

Partial PartialsEmitter::Get(llvm::Value* number) const {
  llvm::Type* type = codegen::MemoryType(b_.getContext(), dtype_);
  Partial partial{b_.CreateLoad(type, AddressOf(number, /*is_place=*/false)), nullptr};
  if (dtype_ == ir::DType::kBool) partial.value = b_.CreateIsNotNull(partial.value);
  if (gives_place_) {
    partial.place = b_.CreateLoad(b_.getInt32Ty(), AddressOf(number, /*is_place=*/true));
  }
  return partial;
}

}  // namespace phobos::compiler::nvptx
