// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/division.h"

#include <algorithm>
#include <cstdint>

#include "compiler/codegen/arithmetic.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::codegen {
namespace {

using llvm::Value;

llvm::Constant* Integer(llvm::Type* type, uint64_t value) {
  return llvm::ConstantInt::get(type, value);
}

llvm::Constant* Float(llvm::Type* type, double value) { return llvm::ConstantFP::get(type, value); }

// A divisor by which dividing traps for no `a`, with the same quotient where that is defined: 1
// for 0, and for -1 under the least integer, whose wrapped quotient is itself.
Value* SafeDivisor(llvm::IRBuilderBase& b, Value* dividend, Value* divisor, ir::DType dtype) {
  llvm::Type* type = divisor->getType();
  Value* unsafe = b.CreateICmpEQ(divisor, Integer(type, 0));
  if (ir::IsSigned(dtype)) {
    const llvm::APInt least = llvm::APInt::getSignedMinValue(ir::BitWidth(dtype));
    Value* wraps = b.CreateAnd(b.CreateICmpEQ(divisor, llvm::Constant::getAllOnesValue(type)),
                               b.CreateICmpEQ(dividend, llvm::ConstantInt::get(type, least)));
    unsafe = b.CreateOr(unsafe, wraps);
  }
  return b.CreateSelect(unsafe, Integer(type, 1), divisor);
}

// Towards zero. Vectors have no integer division; a float with twice the bits gives the same
// quotient (the distance to the next integer is at least 1 / divisor, far more than its rounding).
Value* Quotient(llvm::IRBuilderBase& b, Value* dividend, Value* divisor, ir::DType dtype) {
  const bool is_signed = ir::IsSigned(dtype);
  const int bits = ir::BitWidth(dtype);
  llvm::Type* type = dividend->getType();
  if (!type->isVectorTy() || bits == 64 || llvm::isa<llvm::Constant>(divisor)) {
    return is_signed ? b.CreateSDiv(dividend, divisor) : b.CreateUDiv(dividend, divisor);
  }
  llvm::Type* real = WithLanesOf(bits == 32 ? b.getDoubleTy() : b.getFloatTy(), type);
  if (is_signed) {
    Value* ratio = b.CreateFDiv(b.CreateSIToFP(dividend, real), b.CreateSIToFP(divisor, real));
    return b.CreateTrunc(b.CreateFPToSI(ratio, WithLanesOf(b.getInt32Ty(), type)), type);
  }
  Value* ratio = b.CreateFDiv(b.CreateUIToFP(dividend, real), b.CreateUIToFP(divisor, real));
  return b.CreateTrunc(b.CreateFPToUI(ratio, WithLanesOf(b.getInt32Ty(), type)), type);
}

struct Parts {
  Value* quotient;
  Value* remainder;
};

Parts IntegerFloor(llvm::IRBuilderBase& b, Value* dividend, Value* divisor, ir::DType dtype) {
  llvm::Type* type = dividend->getType();
  Value* safe = SafeDivisor(b, dividend, divisor, dtype);
  Value* quotient = Quotient(b, dividend, safe, dtype);
  Value* remainder = b.CreateSub(dividend, b.CreateMul(quotient, safe));
  if (ir::IsSigned(dtype)) {
    // Cut towards zero, but the signs differ: the floor is one below.
    Value* differs = b.CreateICmpSLT(b.CreateXor(remainder, safe), Integer(type, 0));
    Value* adjusts = b.CreateAnd(differs, b.CreateIsNotNull(remainder));
    quotient = b.CreateSub(quotient, b.CreateZExt(adjusts, type));
    remainder = b.CreateAdd(remainder, b.CreateSelect(adjusts, safe, Integer(type, 0)));
  }
  Value* by_zero = b.CreateICmpEQ(divisor, Integer(type, 0));
  return {b.CreateSelect(by_zero, Integer(type, 0), quotient),
          b.CreateSelect(by_zero, Integer(type, 0), remainder)};
}

// The binary exponent of a positive finite float, also of a subnormal one, with an offset that is
// the same for all values of the type.
Value* Exponent(llvm::IRBuilderBase& b, Value* value) {
  llvm::Type* type = value->getType();
  const bool is_f32 = type->getScalarType()->isFloatTy();
  const int digits = is_f32 ? 23 : 52;
  llvm::Type* bits = WithLanesOf(b.getIntNTy(is_f32 ? 32 : 64), type);
  Value* is_small = b.CreateFCmpOLT(value, Float(type, is_f32 ? 0x1p-126 : 0x1p-1022));
  Value* scaled = b.CreateFMul(value, Float(type, is_f32 ? 0x1p23 : 0x1p52));
  Value* normal = b.CreateSelect(is_small, scaled, value);
  Value* exponent = b.CreateLShr(b.CreateBitCast(normal, bits), digits);
  return b.CreateSub(exponent, b.CreateSelect(is_small, Integer(bits, digits), Integer(bits, 0)));
}

// 2^exponent, for an exponent of normal numbers.
Value* PowerOfTwo(llvm::IRBuilderBase& b, Value* exponent, llvm::Type* type) {
  const bool is_f32 = type->getScalarType()->isFloatTy();
  llvm::Type* bits = exponent->getType();
  Value* biased = b.CreateAdd(exponent, Integer(bits, is_f32 ? 127 : 1023));
  return b.CreateBitCast(b.CreateShl(biased, is_f32 ? 23 : 52), type);
}

Value* AnyLane(llvm::IRBuilderBase& b, Value* condition) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(condition->getType());
  if (type == nullptr) return condition;
  return b.CreateIsNotNull(b.CreateBitCast(condition, b.getIntNTy(type->getNumElements())));
}

// One step of the long division: `rest` less the largest multiple of divisor * 2^k that a quotient
// of the type can tell exactly. All of it is exact.
Value* ReduceOnce(llvm::IRBuilderBase& b, Value* rest, Value* divisor) {
  llvm::Type* type = rest->getType();
  const int digits = type->getScalarType()->isFloatTy() ? 24 : 53;
  Value* distance = b.CreateSub(Exponent(b, rest), Exponent(b, divisor));
  llvm::Type* bits = distance->getType();
  Value* shift = b.CreateBinaryIntrinsic(
      llvm::Intrinsic::smax, b.CreateSub(distance, Integer(bits, digits - 3)), Integer(bits, 0));
  // In two factors, as the whole power may be no number of the type; each of them is one.
  const uint64_t greatest = digits == 24 ? 2 * 127 : 2 * 1023;
  shift = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, shift, Integer(bits, greatest));
  Value* half = b.CreateLShr(shift, 1);
  Value* scaled = b.CreateFMul(divisor, PowerOfTwo(b, half, type));
  scaled = b.CreateFMul(scaled, PowerOfTwo(b, b.CreateSub(shift, half), type));
  Value* ratio = b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, b.CreateFDiv(rest, scaled));
  Value* left =
      b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {b.CreateFNeg(ratio), scaled, rest});
  // The ratio may have been rounded up to the next integer.
  Value* too_much = b.CreateFCmpOLT(left, Float(type, 0.0));
  left = b.CreateSelect(too_much, b.CreateFAdd(left, scaled), left);
  return b.CreateSelect(b.CreateFCmpOGE(rest, divisor), left, rest);
}

// C's fmod: exact, with the sign of the dividend.
Value* TruncatedRemainder(llvm::IRBuilderBase& b, Value* dividend, Value* divisor) {
  llvm::Type* type = dividend->getType();
  Value* infinity = llvm::ConstantFP::getInfinity(type);
  Value* zero = Float(type, 0.0);
  Value* numerator = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, dividend);
  Value* denominator = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, divisor);
  Value* is_defined =
      b.CreateAnd(b.CreateFCmpOLT(numerator, infinity), b.CreateFCmpOGT(denominator, zero));
  Value* is_plain = b.CreateAnd(is_defined, b.CreateFCmpOLT(denominator, infinity));
  Value* start = b.CreateSelect(is_plain, numerator, zero);
  denominator = b.CreateSelect(is_plain, denominator, Float(type, 1.0));

  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::BasicBlock* body = llvm::BasicBlock::Create(b.getContext(), "remainder", function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(b.getContext(), "after_remainder", function);
  b.CreateCondBr(AnyLane(b, b.CreateFCmpOGE(start, denominator)), body, after);
  b.SetInsertPoint(body);
  llvm::PHINode* rest = b.CreatePHI(type, 2);
  rest->addIncoming(start, before);
  Value* left = ReduceOnce(b, rest, denominator);
  rest->addIncoming(left, body);
  b.CreateCondBr(AnyLane(b, b.CreateFCmpOGE(left, denominator)), body, after);
  b.SetInsertPoint(after);
  llvm::PHINode* result = b.CreatePHI(type, 2);
  result->addIncoming(start, before);
  result->addIncoming(left, body);

  Value* is_undefined = b.CreateNot(is_defined);
  Value* magnitude = b.CreateSelect(is_plain, result, numerator);  // by infinity: the dividend
  magnitude = b.CreateSelect(is_undefined, llvm::ConstantFP::getNaN(type), magnitude);
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, dividend);
}

// The remainder with the divisor's sign is one divisor further where the signs differ.
Value* SignsDiffer(llvm::IRBuilderBase& b, Value* remainder, Value* divisor) {
  Value* zero = Float(remainder->getType(), 0.0);
  Value* differ = b.CreateXor(b.CreateFCmpOLT(remainder, zero), b.CreateFCmpOLT(divisor, zero));
  return b.CreateAnd(differ, b.CreateFCmpONE(remainder, zero));
}

}  // namespace

Value* EmitIntegerFloorDiv(llvm::IRBuilderBase& builder, Value* a, Value* b, ir::DType dtype) {
  return IntegerFloor(builder, a, b, dtype).quotient;
}

Value* EmitIntegerMod(llvm::IRBuilderBase& builder, Value* a, Value* b, ir::DType dtype) {
  return IntegerFloor(builder, a, b, dtype).remainder;
}

Value* EmitFloatMod(llvm::IRBuilderBase& builder, Value* a, Value* b) {
  llvm::Type* type = a->getType();
  Value* zero = Float(type, 0.0);
  Value* remainder = TruncatedRemainder(builder, a, b);
  Value* further = builder.CreateSelect(SignsDiffer(builder, remainder, b),
                                        builder.CreateFAdd(remainder, b), remainder);
  Value* signed_zero = builder.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, b);
  further = builder.CreateSelect(builder.CreateFCmpOEQ(remainder, zero), signed_zero, further);
  return builder.CreateSelect(builder.CreateFCmpOEQ(b, zero), zero, further);
}

Value* EmitFloatFloorDiv(llvm::IRBuilderBase& builder, Value* a, Value* b) {
  llvm::Type* type = a->getType();
  Value* zero = Float(type, 0.0);
  Value* remainder = TruncatedRemainder(builder, a, b);
  Value* ratio = builder.CreateFDiv(builder.CreateFSub(a, remainder), b);
  ratio = builder.CreateSelect(SignsDiffer(builder, remainder, b),
                               builder.CreateFSub(ratio, Float(type, 1.0)), ratio);
  // The ratio is a whole number but for rounding.
  Value* floor = builder.CreateUnaryIntrinsic(llvm::Intrinsic::floor, ratio);
  Value* is_above = builder.CreateFCmpOGT(builder.CreateFSub(ratio, floor), Float(type, 0.5));
  floor = builder.CreateSelect(is_above, builder.CreateFAdd(floor, Float(type, 1.0)), floor);
  Value* plain = builder.CreateFDiv(a, b);
  Value* signed_zero = builder.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, plain);
  floor = builder.CreateSelect(builder.CreateFCmpOEQ(ratio, zero), signed_zero, floor);
  return builder.CreateSelect(builder.CreateFCmpOEQ(b, zero), zero, floor);
}

Value* EmitMulHigh(llvm::IRBuilderBase& builder, Value* a, Value* b, ir::DType dtype) {
  const bool is_signed = ir::IsSigned(dtype);
  const unsigned bits = static_cast<unsigned>(ir::BitWidth(dtype));
  llvm::Type* type = a->getType();
  if (bits < 64 || !type->isVectorTy()) {
    llvm::Type* wide = WithLanesOf(builder.getIntNTy(std::max(2 * bits, 32u)), type);
    Value* product = builder.CreateMul(builder.CreateIntCast(a, wide, is_signed),
                                       builder.CreateIntCast(b, wide, is_signed));
    return builder.CreateTrunc(builder.CreateLShr(product, bits), type);
  }
  // Four products of halves, as vectors have no 128-bit one.
  Value* mask = Integer(type, 0xffffffff);
  Value* a_low = builder.CreateAnd(a, mask);
  Value* a_high = builder.CreateLShr(a, 32);
  Value* b_low = builder.CreateAnd(b, mask);
  Value* b_high = builder.CreateLShr(b, 32);
  Value* low = builder.CreateMul(a_low, b_low);
  Value* cross = builder.CreateAdd(builder.CreateMul(a_low, b_high), builder.CreateLShr(low, 32));
  Value* other =
      builder.CreateAdd(builder.CreateMul(a_high, b_low), builder.CreateAnd(cross, mask));
  Value* high = builder.CreateAdd(
      builder.CreateMul(a_high, b_high),
      builder.CreateAdd(builder.CreateLShr(cross, 32), builder.CreateLShr(other, 32)));
  if (!is_signed) return high;
  Value* zero = Integer(type, 0);
  high = builder.CreateSub(high, builder.CreateSelect(builder.CreateICmpSLT(a, zero), b, zero));
  return builder.CreateSub(high, builder.CreateSelect(builder.CreateICmpSLT(b, zero), a, zero));
}

}  // namespace phobos::compiler::codegen
