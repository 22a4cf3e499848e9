// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/kernel/combination.h"

#include <cstdint>
#include <limits>

#include "compiler/codegen/arithmetic.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::codegen {
namespace {

using ir::DType;
using ir::Opcode;

bool WantsLargest(Opcode reduction) {
  return reduction == Opcode::kMaximumOver || reduction == Opcode::kArgMaximum;
}

// The smallest or largest integer (or bool) of the type.
int64_t EndOf(DType dtype, bool is_largest) {
  if (dtype == DType::kBool) return is_largest ? 1 : 0;
  const int bits = ir::BitWidth(dtype);
  if (!ir::IsSigned(dtype)) {
    if (!is_largest) return 0;
    return bits == 64 ? -1 : (int64_t{1} << bits) - 1;  // u64: its bits
  }
  const int64_t largest = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  return is_largest ? largest : -largest - 1;
}

llvm::Value* Lanes(llvm::IRBuilder<>& builder, llvm::Value* vector, unsigned first,
                   unsigned count) {
  if (vector == nullptr) return nullptr;
  if (count == 1) return builder.CreateExtractElement(vector, uint64_t{first});
  llvm::SmallVector<int, 32> lanes(count);
  for (unsigned i = 0; i < count; ++i) lanes[i] = static_cast<int>(first + i);
  return builder.CreateShuffleVector(vector, lanes);
}

}  // namespace

Combination::Combination(llvm::IRBuilder<>& builder, const ir::Op& op, DType dtype,
                         bool ranks_floats)
    : b_(builder),
      reduction_(op.opcode),
      dtype_(dtype),
      gives_place_(ir::GivesPlace(op.opcode)),
      is_ranked_(ranks_floats && ir::IsFloat(dtype) &&
                 (op.opcode == Opcode::kMaximumOver || op.opcode == Opcode::kMinimumOver)) {}

// The bits, all but the sign turned over where that is set; twice, they are as they were. By AND:
// two operations of AVX-512 in all, where another shift would be one more.
llvm::Value* Combination::Turned(llvm::Value* bits) const {
  llvm::Type* type = bits->getType();
  const unsigned width = type->getScalarSizeInBits();
  llvm::Value* sign = b_.CreateAShr(bits, llvm::ConstantInt::get(type, width - 1));
  llvm::Constant* all_but_sign =
      llvm::ConstantInt::get(type, llvm::APInt::getSignedMaxValue(width));
  return b_.CreateXor(bits, b_.CreateAnd(sign, all_but_sign));
}

// As signed integers the bits of positive floats are in their order, those of negative ones, turned
// over, too: -NaN, -infinity ... -0, 0 ... infinity, NaN. Counted from one end of the infinities
// on, unsigned and around, both kinds of NaN are beyond the other end. Two vectors are combined by
// one instruction so, where floats would take five.
llvm::Value* Combination::Ranked(llvm::Value* floats) const {
  const unsigned width = floats->getType()->getScalarSizeInBits();
  llvm::Type* type = WithLanesOf(b_.getIntNTy(width), floats->getType());
  return b_.CreateSub(Turned(b_.CreateBitCast(floats, type)), LowestRank(type));
}

llvm::Value* Combination::Unranked(llvm::Value* ranks) const {
  llvm::Type* type = ranks->getType();
  llvm::Value* bits = Turned(b_.CreateAdd(ranks, LowestRank(type)));
  llvm::Type* element = ElementType(b_.getContext(), dtype_);
  return b_.CreateBitCast(bits, WithLanesOf(element, type));
}

// The signed integer that counts as 0: -infinity where the largest is wanted, else what follows
// infinity.
llvm::Constant* Combination::LowestRank(llvm::Type* type) const {
  const unsigned width = type->getScalarSizeInBits();
  const int fraction = dtype_ == DType::kF16    ? 10
                       : dtype_ == DType::kBF16 ? 7
                       : width == 32            ? 23
                                                : 52;
  llvm::APInt infinity = llvm::APInt::getSignedMaxValue(width);
  infinity.clearLowBits(static_cast<unsigned>(fraction));
  return llvm::ConstantInt::get(type, WantsLargest(reduction_) ? ~infinity : infinity + 1);
}

llvm::Value* Combination::ResultOf(const Partial& partial) const {
  if (gives_place_) return partial.place;
  return is_ranked_ ? Unranked(partial.value) : partial.value;
}

// A sum's is -0.0: 0.0 would make a 0.0 of a -0.0.
ir::ConstantValue Combination::Identity() const {
  const bool is_float = ir::IsFloat(dtype_);
  switch (reduction_) {
    case Opcode::kSumOver:
      return is_float ? ir::ConstantValue(-0.0) : ir::ConstantValue(int64_t{0});
    case Opcode::kProductOver:
      return is_float ? ir::ConstantValue(1.0) : ir::ConstantValue(int64_t{1});
    default: {
      const bool is_largest = !WantsLargest(reduction_);
      if (!is_float) return EndOf(dtype_, is_largest);
      const double infinity = std::numeric_limits<double>::infinity();
      return is_largest ? infinity : -infinity;
    }
  }
}

Partial Combination::Nothing(unsigned lanes) const {
  auto spread = [lanes](llvm::Constant* one) -> llvm::Value* {
    if (lanes == 1) return one;
    return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(lanes), one);
  };
  Partial nothing;
  nothing.value = spread(ConstantOf(b_.getContext(), dtype_, Identity()));
  if (is_ranked_) {
    llvm::Type* type = b_.getIntNTy(static_cast<unsigned>(ir::BitWidth(dtype_)));
    nothing.value = spread(WantsLargest(reduction_) ? llvm::Constant::getNullValue(type)
                                                    : llvm::Constant::getAllOnesValue(type));
  }
  if (gives_place_) nothing.place = spread(b_.getInt32(std::numeric_limits<int32_t>::max()));
  return nothing;
}

Partial Combination::Of(llvm::Value* elements, unsigned lanes, unsigned valid, llvm::Value* first,
                        unsigned step) const {
  Partial part{is_ranked_ ? Ranked(elements) : elements, nullptr};
  if (gives_place_) {
    part.place = b_.CreateTrunc(first, b_.getInt32Ty());
    if (lanes > 1) part.place = b_.CreateVectorSplat(lanes, part.place);
    if (lanes > 1 && step == 1) {
      llvm::Type* type = part.place->getType();
      part.place = b_.CreateAdd(part.place, b_.CreateStepVector(type));
    }
  }
  if (valid == lanes) return part;
  llvm::SmallVector<llvm::Constant*, 64> is_valid(lanes);
  for (unsigned i = 0; i < lanes; ++i) is_valid[i] = b_.getInt1(i < valid);
  llvm::Value* mask = llvm::ConstantVector::get(is_valid);
  const Partial nothing = Nothing(lanes);
  part.value = b_.CreateSelect(mask, part.value, nothing.value);
  if (gives_place_) part.place = b_.CreateSelect(mask, part.place, nothing.place);
  return part;
}

llvm::Value* Combination::Emit(Opcode opcode, llvm::Value* a, llvm::Value* b) const {
  llvm::SmallVector<llvm::Value*, 2> operands = {a};
  if (b != nullptr) operands.push_back(b);
  return EmitElementwise(b_, opcode, dtype_, operands);
}

// i1: a is the extreme of a and b, and b is not as much.
llvm::Value* Combination::Beats(llvm::Value* a, llvm::Value* b) const {
  llvm::Value* beats = Emit(WantsLargest(reduction_) ? Opcode::kGreater : Opcode::kLess, a, b);
  if (!ir::IsFloat(dtype_)) return beats;
  llvm::Value* only_a_is_nan = b_.CreateAnd(Emit(Opcode::kIsNan, a), Emit(Opcode::kEqual, b, b));
  return b_.CreateOr(beats, only_a_is_nan);
}

Partial Combination::Add(const Partial& partial, const Partial& later) const {
  if (!gives_place_) return Combine(partial, later);
  llvm::Value* beats = Beats(later.value, partial.value);
  // Nothing was added yet: any element is more than that, also one that is equal.
  llvm::Value* none =
      llvm::ConstantInt::get(partial.place->getType(), std::numeric_limits<int32_t>::max());
  beats = b_.CreateOr(beats, b_.CreateICmpEQ(partial.place, none));
  return {b_.CreateSelect(beats, later.value, partial.value),
          b_.CreateSelect(beats, later.place, partial.place)};
}

Partial Combination::Combine(const Partial& low, const Partial& high) const {
  const bool is_bool = dtype_ == DType::kBool;
  if (is_ranked_) {
    const auto extreme = WantsLargest(reduction_) ? llvm::Intrinsic::umax : llvm::Intrinsic::umin;
    return {b_.CreateBinaryIntrinsic(extreme, low.value, high.value), nullptr};
  }
  switch (reduction_) {
    case Opcode::kSumOver:
      return {Emit(Opcode::kAdd, low.value, high.value), nullptr};
    case Opcode::kProductOver:
      return {Emit(Opcode::kMul, low.value, high.value), nullptr};
    case Opcode::kMaximumOver:
      return {Emit(is_bool ? Opcode::kOr : Opcode::kMaximum, low.value, high.value), nullptr};
    case Opcode::kMinimumOver:
      return {Emit(is_bool ? Opcode::kAnd : Opcode::kMinimum, low.value, high.value), nullptr};
    default:
      break;
  }
  // Of two that are equal, the one that stands first.
  llvm::Value* is_before = b_.CreateICmpSLT(high.place, low.place);
  llvm::Value* is_tie = b_.CreateNot(Beats(low.value, high.value));
  llvm::Value* takes_high =
      b_.CreateOr(Beats(high.value, low.value), b_.CreateAnd(is_tie, is_before));
  return {b_.CreateSelect(takes_high, high.value, low.value),
          b_.CreateSelect(takes_high, high.place, low.place)};
}

Partial Combination::Together(Partials partials) const {
  for (size_t half = partials.size() / 2; half > 0; half /= 2) {
    for (size_t k = 0; k < half; ++k) partials[k] = Combine(partials[k], partials[k + half]);
  }
  return partials[0];
}

llvm::Value* Combination::OverLanes(Partial partial) const {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(partial.value->getType());
  for (unsigned half = vector == nullptr ? 0 : vector->getNumElements() / 2; half > 0; half /= 2) {
    const Partial low{Lanes(b_, partial.value, 0, half), Lanes(b_, partial.place, 0, half)};
    const Partial high{Lanes(b_, partial.value, half, half), Lanes(b_, partial.place, half, half)};
    partial = Combine(low, high);
  }
  return ResultOf(partial);
}

}  // namespace phobos::compiler::codegen
