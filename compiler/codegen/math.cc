// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/math.h"

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/math_emitter.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

namespace phobos::compiler::codegen {
namespace {

llvm::Type* BitsType(llvm::IRBuilderBase& b, llvm::Type* type) {
  return WithLanesOf(b.getIntNTy(type->getScalarSizeInBits()), type);
}

// Where the kernel allows an approximation and the chip has one; else null.
Value* EmitApproximation(llvm::IRBuilderBase& b, ir::Opcode opcode, Value* x) {
  const bool is_exp = opcode == ir::Opcode::kExp;
  if (!b.getFastMathFlags().approxFunc() || !x->getType()->isFloatTy() ||
      (!is_exp && opcode != ir::Opcode::kExp2) ||
      !llvm::Triple(b.GetInsertBlock()->getModule()->getTargetTriple()).isNVPTX()) {
    return nullptr;
  }
  constexpr double kLog2E = 1.4426950408889634;
  if (is_exp) x = b.CreateFMul(x, llvm::ConstantFP::get(x->getType(), kLog2E));
  return b.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {}, {x});
}

}  // namespace

MathEmitter::MathEmitter(llvm::IRBuilderBase& builder, llvm::Type* value_type)
    : b(builder),
      type(value_type),
      bits_type(BitsType(builder, value_type)),
      is_f32(value_type->getScalarType()->isFloatTy()),
      fraction_bits(is_f32 ? 23 : 52) {}

Value* MathEmitter::Number(const Coefficients& split, int part) const {
  return Number((is_f32 ? split.f32 : split.f64).begin()[part]);
}

Value* MathEmitter::Integer(int64_t value) const {
  return llvm::ConstantInt::get(bits_type, static_cast<uint64_t>(value), /*IsSigned=*/true);
}

Value* MathEmitter::Fma(Value* x, Value* y, Value* z) const {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, z});
}

Value* MathEmitter::WithSignOf(Value* x, Value* sign) const {
  return PositiveWithSignOf(Abs(x), sign);
}

// By bits: LLVM's copysign for PTX is a comparison and a selection.
Value* MathEmitter::PositiveWithSignOf(Value* x, Value* sign) const {
  Value* sign_bit = Integer(is_f32 ? INT32_MIN : INT64_MIN);
  return FromBits(b.CreateOr(ToBits(x), b.CreateAnd(ToBits(sign), sign_bit)));
}

Value* MathEmitter::AtMost(Value* x, double limit) const {
  if (type->isFloatTy()) {
    // One instruction of a GPU.
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, x, Number(limit));
  }
  return Choose(b.CreateFCmpOGT(x, Number(limit)), Number(limit), x);
}

Value* MathEmitter::AtLeast(Value* x, double limit) const {
  if (type->isFloatTy()) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, Number(limit));
  }
  return Choose(b.CreateFCmpOLT(x, Number(limit)), Number(limit), x);
}

Value* MathEmitter::Polynomial(Value* x, const Coefficients& coefficients) const {
  const llvm::ArrayRef<double> c = is_f32 ? coefficients.f32 : coefficients.f64;
  Value* result = Number(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) result = Fma(result, x, Number(c[i]));
  return result;
}

// Adding 1.5 * 2^fraction_bits leaves no bits for a fraction: the sum's low bits are the integer.
MathEmitter::Whole MathEmitter::Nearest(Value* x, Value* factor) const {
  Value* magic = Number(MagicNumber());
  Value* shifted = Fma(x, factor, magic);
  return {Sub(shifted, magic), b.CreateSub(ToBits(shifted), ToBits(magic))};
}

Value* MathEmitter::ToNumber(Value* integer) const {
  Value* magic = Number(MagicNumber());
  return Sub(FromBits(b.CreateAdd(integer, ToBits(magic))), magic);
}

Value* MathEmitter::PowerOfTwo(Value* n) const {
  const int64_t bias = is_f32 ? 127 : 1023;
  return FromBits(b.CreateShl(b.CreateAdd(n, Integer(bias)), fraction_bits));
}

// In two steps, as 2^n itself may be no normal number; only the second one can round.
Value* MathEmitter::Scale(Value* x, Value* n) const {
  Value* half = b.CreateAShr(n, 1);
  return Mul(Mul(x, PowerOfTwo(half)), PowerOfTwo(b.CreateSub(n, half)));
}

Sum MathEmitter::QuickSum(Value* x, Value* y) const {
  Value* high = Add(x, y);
  return {high, Add(Sub(x, high), y)};
}

Sum MathEmitter::Product(Value* x, Value* y) const {
  Value* high = Mul(x, y);
  return {high, Fma(x, y, Negate(high))};
}

Value* EmitMath(llvm::IRBuilderBase& builder, ir::Opcode opcode, llvm::ArrayRef<Value*> operands) {
  if (Value* approximation = EmitApproximation(builder, opcode, operands[0])) return approximation;
  // What a kernel allows its own operations would break the error terms computed here.
  const llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
  builder.clearFastMathFlags();
  Value* x = operands[0];
  const MathEmitter m(builder, x->getType());
  switch (opcode) {
    case ir::Opcode::kExp:
      return EmitExp(m, x);
    case ir::Opcode::kExp2:
      return EmitExp2(m, x);
    case ir::Opcode::kExpm1:
      return EmitExpm1(m, x);
    case ir::Opcode::kLog:
      return EmitLog(m, x);
    case ir::Opcode::kLog2:
      return EmitLog2(m, x);
    case ir::Opcode::kLog1p:
      return EmitLog1p(m, x);
    case ir::Opcode::kPow:
      return EmitPow(m, x, operands[1]);
    case ir::Opcode::kSqrt:
      return builder.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    case ir::Opcode::kRsqrt:
      return m.Div(m.Number(1.0), builder.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
    case ir::Opcode::kSin:
      return EmitSin(m, x);
    case ir::Opcode::kCos:
      return EmitCos(m, x);
    case ir::Opcode::kTanh:
      return EmitTanh(m, x);
    case ir::Opcode::kErf:
      return EmitErf(m, x);
    default:
      return EmitSigmoid(m, x);
  }
}

}  // namespace phobos::compiler::codegen
