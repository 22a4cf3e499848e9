// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/conversion.h"

#include <cmath>
#include <cstdint>

#include "compiler/codegen/arithmetic.h"
#include "llvm/IR/Constants.h"

namespace phobos::compiler::codegen {
namespace {

using ir::DType;

bool Is16BitFloat(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

llvm::Constant* Bits(llvm::Type* type, uint64_t value) {
  return llvm::ConstantInt::get(type, value);
}

llvm::Type* IntegerLike(llvm::IRBuilderBase& b, llvm::Type* type) {
  return WithLanesOf(b.getIntNTy(type->getScalarSizeInBits()), type);
}

// Rounding to odd: of a float that is the nearest to some exact value, which `above` and `below`
// say it is greater or smaller in magnitude than. The result is the exact value cut towards zero
// with its last bit set if anything was cut, so that a second rounding to at least two bits fewer
// gives what one rounding would have given.
llvm::Value* ToOdd(llvm::IRBuilderBase& b, llvm::Value* nearest, llvm::Value* above,
                   llvm::Value* below) {
  llvm::Type* bits_type = IntegerLike(b, nearest->getType());
  llvm::Value* bits = b.CreateBitCast(nearest, bits_type);
  llvm::Value* cut = b.CreateSub(bits, b.CreateZExt(above, bits_type));
  llvm::Value* inexact = b.CreateZExt(b.CreateOr(above, below), bits_type);
  return b.CreateBitCast(b.CreateOr(cut, inexact), nearest->getType());
}

llvm::Value* F64ToF32ToOdd(llvm::IRBuilderBase& b, llvm::Value* value) {
  llvm::Value* nearest = b.CreateFPTrunc(value, WithLanesOf(b.getFloatTy(), value->getType()));
  llvm::Value* back = b.CreateFPExt(nearest, value->getType());
  llvm::Value* rounded = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back);
  llvm::Value* exact = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
  return ToOdd(b, nearest, b.CreateFCmpOGT(rounded, exact), b.CreateFCmpOLT(rounded, exact));
}

// A 64-bit integer to f64 such that a later rounding to a narrower float is right: the bits that
// do not fit are folded into the last one that does.
llvm::Value* IntegerToF64ToOdd(llvm::IRBuilderBase& b, llvm::Value* value, bool is_signed) {
  llvm::Type* type = value->getType();
  llvm::Type* f64 = WithLanesOf(b.getDoubleTy(), type);
  llvm::Value* magnitude =
      is_signed ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, value, b.getFalse()) : value;
  llvm::Value* low = b.CreateAnd(magnitude, Bits(type, 0x7ff));
  llvm::Value* sticky = b.CreateSelect(b.CreateIsNotNull(low), Bits(type, 0x800), Bits(type, 0));
  llvm::Value* folded = b.CreateOr(b.CreateAnd(magnitude, Bits(type, ~uint64_t{0x7ff})), sticky);
  llvm::Value* fits = b.CreateICmpULT(magnitude, Bits(type, uint64_t{1} << 53));
  llvm::Value* result = b.CreateUIToFP(b.CreateSelect(fits, magnitude, folded), f64);
  if (!is_signed) return result;
  return b.CreateSelect(b.CreateICmpSLT(value, Bits(type, 0)), b.CreateFNeg(result), result);
}

llvm::Value* IntegerToFloat(llvm::IRBuilderBase& b, llvm::Value* value, bool is_signed, DType to) {
  if (Is16BitFloat(to)) {
    llvm::Type* type = value->getType();
    if (type->getScalarSizeInBits() <= 16) {
      // Exact in f32.
      llvm::Type* f32 = WithLanesOf(b.getFloatTy(), type);
      return NarrowFromF32(b, is_signed ? b.CreateSIToFP(value, f32) : b.CreateUIToFP(value, f32),
                           to);
    }
    if (type->getScalarSizeInBits() == 64) {
      return NarrowFromF64(b, IntegerToF64ToOdd(b, value, is_signed), to);
    }
    llvm::Type* f64 = WithLanesOf(b.getDoubleTy(), type);
    return NarrowFromF64(b, is_signed ? b.CreateSIToFP(value, f64) : b.CreateUIToFP(value, f64),
                         to);
  }
  llvm::Type* type = WithLanesOf(ElementType(b.getContext(), to), value->getType());
  return is_signed ? b.CreateSIToFP(value, type) : b.CreateUIToFP(value, type);
}

// Truncation, saturating, NaN to 0. `value` is f32 or f64. The bounds are powers of two, so exact;
// only values inside reach the conversion, which is undefined outside.
llvm::Value* FloatToInteger(llvm::IRBuilderBase& b, llvm::Value* value, DType to) {
  llvm::Type* type = value->getType();
  const int bits = ir::BitWidth(to);
  const bool is_signed = ir::IsSigned(to);
  llvm::Type* target = WithLanesOf(b.getIntNTy(bits), type);
  llvm::Value* zero = llvm::ConstantFP::get(type, 0.0);
  // Below: every value that truncates to less than the least integer.
  llvm::Value* low = llvm::ConstantFP::get(type, is_signed ? -std::ldexp(1.0, bits - 1) : 0.0);
  llvm::Value* high = llvm::ConstantFP::get(type, std::ldexp(1.0, is_signed ? bits - 1 : bits));
  llvm::Value* too_low = b.CreateFCmpOLT(value, low);
  llvm::Value* too_high = b.CreateFCmpOGE(value, high);
  llvm::Value* fits = b.CreateAnd(b.CreateFCmpOGE(value, low), b.CreateFCmpOLT(value, high));
  llvm::Value* safe = b.CreateSelect(fits, value, zero);
  // Narrow conversions go through i32, which every chip has.
  llvm::Type* step = bits < 32 ? WithLanesOf(b.getInt32Ty(), type) : target;
  llvm::Value* converted =
      is_signed || bits < 32 ? b.CreateFPToSI(safe, step) : b.CreateFPToUI(safe, step);
  converted = b.CreateTrunc(converted, target);
  const llvm::APInt least =
      is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getZero(bits);
  const llvm::APInt greatest =
      is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  converted = b.CreateSelect(too_low, llvm::ConstantInt::get(target, least), converted);
  return b.CreateSelect(too_high, llvm::ConstantInt::get(target, greatest), converted);
}

llvm::Value* ToBool(llvm::IRBuilderBase& b, llvm::Value* value, DType from) {
  if (Is16BitFloat(from)) {
    // Not zero of either sign.
    return b.CreateIsNotNull(b.CreateAnd(value, Bits(value->getType(), 0x7fff)));
  }
  if (ir::IsFloat(from)) {
    return b.CreateFCmpUNE(value, llvm::ConstantFP::get(value->getType(), 0.0));
  }
  return b.CreateIsNotNull(value);
}

llvm::Value* FloatToFloat(llvm::IRBuilderBase& b, llvm::Value* value, DType from, DType to) {
  if (Is16BitFloat(from)) {
    value = WidenToF32(b, value, from);
    from = DType::kF32;
  }
  if (Is16BitFloat(to)) {
    return from == DType::kF64 ? NarrowFromF64(b, value, to) : NarrowFromF32(b, value, to);
  }
  return b.CreateFPCast(value, WithLanesOf(ElementType(b.getContext(), to), value->getType()));
}

// In the bits; the carry out of the fraction goes into the exponent, up to infinity. A NaN stays
// one.
llvm::Value* RoundToTf32(llvm::IRBuilderBase& b, llvm::Value* value) {
  llvm::Type* type = WithLanesOf(b.getInt32Ty(), value->getType());
  auto number = [type](uint64_t bits) { return llvm::ConstantInt::get(type, bits); };
  llvm::Value* bits = b.CreateBitCast(value, type);
  llvm::Value* last = b.CreateAnd(b.CreateLShr(bits, number(13)), number(1));
  llvm::Value* rounded = b.CreateAdd(b.CreateAdd(bits, number(0xfff)), last);
  rounded = b.CreateBitCast(b.CreateAnd(rounded, number(~uint64_t{0x1fff} & 0xffffffff)),
                            value->getType());
  return b.CreateSelect(b.CreateFCmpUNO(value, value), value, rounded);
}

}  // namespace

llvm::Value* EmitCast(llvm::IRBuilderBase& b, llvm::Value* value, DType from, DType to) {
  if (from == to) return value;
  if (to == DType::kBool) return ToBool(b, value, from);
  if (ir::IsFloat(from)) {
    if (ir::IsFloat(to)) return FloatToFloat(b, value, from, to);
    if (Is16BitFloat(from)) value = WidenToF32(b, value, from);
    return FloatToInteger(b, value, to);
  }
  if (from == DType::kBool) {
    value = b.CreateZExt(value, WithLanesOf(b.getInt8Ty(), value->getType()));
    from = DType::kU8;
  }
  if (ir::IsFloat(to)) return IntegerToFloat(b, value, ir::IsSigned(from), to);
  llvm::Type* type = WithLanesOf(ElementType(b.getContext(), to), value->getType());
  return b.CreateIntCast(value, type, ir::IsSigned(from));
}

llvm::Value* WidenToF32(llvm::IRBuilderBase& b, llvm::Value* value, DType from) {
  llvm::Type* f32 = WithLanesOf(b.getFloatTy(), value->getType());
  if (from == DType::kF16) {
    return b.CreateFPExt(b.CreateBitCast(value, WithLanesOf(b.getHalfTy(), value->getType())), f32);
  }
  llvm::Type* i32 = WithLanesOf(b.getInt32Ty(), value->getType());
  return b.CreateBitCast(b.CreateShl(b.CreateZExt(value, i32), 16), f32);
}

llvm::Value* NarrowFromF32(llvm::IRBuilderBase& b, llvm::Value* value, DType to) {
  llvm::Type* i16 = WithLanesOf(b.getInt16Ty(), value->getType());
  if (to == DType::kF16) {
    llvm::Value* half = b.CreateFPTrunc(value, WithLanesOf(b.getHalfTy(), value->getType()));
    return b.CreateBitCast(half, i16);
  }
  llvm::Type* i32 = WithLanesOf(b.getInt32Ty(), value->getType());
  llvm::Value* bits = b.CreateBitCast(value, i32);
  // Half of the last place that stays, less one unless that place is odd, carries into it.
  llvm::Value* last = b.CreateAnd(b.CreateLShr(bits, 16), Bits(i32, 1));
  llvm::Value* rounded = b.CreateAdd(bits, b.CreateAdd(last, Bits(i32, 0x7fff)));
  // A NaN stays one: quiet, whatever its low bits were.
  llvm::Value* quiet = b.CreateOr(bits, Bits(i32, 0x400000));
  llvm::Value* result = b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, rounded);
  return b.CreateTrunc(b.CreateLShr(result, 16), i16);
}

llvm::Value* NarrowFromF64(llvm::IRBuilderBase& b, llvm::Value* value, DType to) {
  return NarrowFromF32(b, F64ToF32ToOdd(b, value), to);
}

llvm::Value* NarrowFromSum(llvm::IRBuilderBase& b, llvm::Value* high, llvm::Value* low, DType to) {
  llvm::Value* zero = llvm::ConstantFP::get(low->getType(), 0.0);
  llvm::Value* adds = b.CreateFCmpOGT(low, zero);
  llvm::Value* takes = b.CreateFCmpOLT(low, zero);
  llvm::Value* positive = b.CreateFCmpOGT(high, zero);
  // The magnitude of `high` is above the exact one where the rest has the other sign.
  llvm::Value* above = b.CreateSelect(positive, takes, adds);
  llvm::Value* below = b.CreateSelect(positive, adds, takes);
  return NarrowFromF64(b, ToOdd(b, high, above, below), to);
}

llvm::Value* RoundTo(llvm::IRBuilderBase& b, llvm::Value* value, ir::Precision precision) {
  switch (precision) {
    case ir::Precision::kTf32:
      return RoundToTf32(b, value);
    case ir::Precision::kF16:
      value = EmitCast(b, value, ir::DType::kF32, ir::DType::kF16);
      return EmitCast(b, value, ir::DType::kF16, ir::DType::kF32);
    case ir::Precision::kExact:
      break;
  }
  return value;
}

}  // namespace phobos::compiler::codegen
