// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/math.h"

#include <algorithm>
#include <numeric>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/math_emitter.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

namespace phobos::compiler::codegen {
namespace {

// Vectors that there is a form of AVX-512's scalef for.
constexpr unsigned kLeastScalefBits = 128;
constexpr unsigned kMostScalefBits = 512;

llvm::SmallVector<int, 64> Sequence(unsigned first, unsigned count) {
  llvm::SmallVector<int, 64> numbers(count);
  std::iota(numbers.begin(), numbers.end(), static_cast<int>(first));
  return numbers;
}

llvm::Intrinsic::ID ScalefOf(unsigned bits, bool is_f32) {
  switch (bits) {
    case 128:
      return is_f32 ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_128
                    : llvm::Intrinsic::x86_avx512_mask_scalef_pd_128;
    case 256:
      return is_f32 ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_256
                    : llvm::Intrinsic::x86_avx512_mask_scalef_pd_256;
    default:
      return is_f32 ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512
                    : llvm::Intrinsic::x86_avx512_mask_scalef_pd_512;
  }
}

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

// In two steps where no instruction does it, as 2^n itself may be no normal number; only the second
// one can round.
Value* MathEmitter::Scale(Value* x, const Whole& n) const {
  if (HasScalef()) return Scalef(x, n.number);
  Value* half = b.CreateAShr(n.integer, 1);
  return Mul(Mul(x, PowerOfTwo(half)), PowerOfTwo(b.CreateSub(n.integer, half)));
}

Value* MathEmitter::ScaleInTheMiddle(Value* x, const Whole& n) const {
  return HasScalef() ? Scalef(x, n.number) : Mul(x, PowerOfTwo(n.integer));
}

// Of whole vectors alone: what is narrower is no work, and would have to be widened.
bool MathEmitter::HasScalef() const {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (vector == nullptr || vector->getPrimitiveSizeInBits() < kLeastScalefBits) return false;
  const llvm::Function* function = b.GetInsertBlock()->getParent();
  const llvm::StringRef features = function->getFnAttribute("target-features").getValueAsString();
  return features.contains("+avx512vl");
}

// The chip's x * 2^n, n a number, a vector of the chip at a time.
Value* MathEmitter::Scalef(Value* x, Value* n) const {
  const auto* vector = llvm::cast<llvm::FixedVectorType>(x->getType());
  const unsigned lanes = vector->getNumElements();
  const unsigned bits = lanes * vector->getScalarSizeInBits();
  if (bits > kMostScalefBits) {
    const auto half = [&](Value* value, unsigned first) {
      return b.CreateShuffleVector(value, Sequence(first, lanes / 2));
    };
    Value* low = Scalef(half(x, 0), half(n, 0));
    Value* high = Scalef(half(x, lanes / 2), half(n, lanes / 2));
    return b.CreateShuffleVector(low, high, Sequence(0, lanes));
  }
  llvm::Type* mask = b.getIntNTy(std::max(lanes, 8U));
  llvm::SmallVector<Value*, 5> operands = {x, n, x, llvm::Constant::getAllOnesValue(mask)};
  constexpr int kRoundAsEver = 4;
  if (bits == kMostScalefBits) operands.push_back(b.getInt32(kRoundAsEver));
  return b.CreateIntrinsic(ScalefOf(bits, is_f32), {}, operands);
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
