// SPDX-License-Identifier: Apache-2.0
//
// The vocabulary of the built-ins' expansions: floating-point and bit operations on values of one
// type, f32 or f64, scalar or vector. Private to math*.cc. One thread a builder.
#ifndef PHOBOS_COMPILER_CODEGEN_MATH_EMITTER_H_
#define PHOBOS_COMPILER_CODEGEN_MATH_EMITTER_H_

#include <cstdint>

#include "compiler/codegen/coefficients.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::codegen {

using llvm::Value;

// A number and what it lacks to be exact, of smaller magnitude: about twice the type's digits.
struct Sum {
  Value* high;
  Value* low;
};

// Values belong to the builder's module. Nothing here folds into anything else: each operation is
// one IEEE operation of the type, which is what the error terms count on.
class MathEmitter {
 public:
  // `type` is (a vector of) float or double; all values given and returned are of it, or of
  // bits_type where they are called integers. `builder` must outlive this.
  MathEmitter(llvm::IRBuilderBase& builder, llvm::Type* type);

  llvm::IRBuilderBase& b;
  llvm::Type* const type;
  llvm::Type* const bits_type;  // integers of the same width and lanes
  const bool is_f32;
  const int fraction_bits;  // of the type's format: 23 or 52

  // The one of two constants that is meant for the type.
  double Pick(double f32, double f64) const { return is_f32 ? f32 : f64; }
  // Constants. REQUIRES of a number: the type has it exactly, or its nearest is meant.
  Value* Number(double value) const { return llvm::ConstantFP::get(type, value); }
  Value* Number(const Coefficients& split, int part) const;
  Value* Integer(int64_t value) const;
  Value* Infinity() const { return llvm::ConstantFP::getInfinity(type); }
  Value* Nan() const { return llvm::ConstantFP::getNaN(type); }

  // One operation each, rounded to nearest even.
  Value* Add(Value* x, Value* y) const { return b.CreateFAdd(x, y); }
  Value* Sub(Value* x, Value* y) const { return b.CreateFSub(x, y); }
  Value* Mul(Value* x, Value* y) const { return b.CreateFMul(x, y); }
  Value* Div(Value* x, Value* y) const { return b.CreateFDiv(x, y); }
  // x * y + z, rounded once.
  Value* Fma(Value* x, Value* y, Value* z) const;
  // On the sign alone, also of NaN.
  Value* Negate(Value* x) const { return b.CreateFNeg(x); }
  Value* Abs(Value* x) const { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* WithSignOf(Value* x, Value* sign) const;
  // The same of x that is positive or has that sign, in fewer operations.
  Value* PositiveWithSignOf(Value* x, Value* sign) const;
  // The smaller or greater of the two; NaN stays NaN.
  Value* AtMost(Value* x, double limit) const;
  Value* AtLeast(Value* x, double limit) const;
  // x where the condition (i1 a lane) holds, else y; both are computed.
  Value* Choose(Value* condition, Value* x, Value* y) const {
    return b.CreateSelect(condition, x, y);
  }
  // The same bits, as an integer and back.
  Value* ToBits(Value* x) const { return b.CreateBitCast(x, bits_type); }
  Value* FromBits(Value* x) const { return b.CreateBitCast(x, type); }

  // c[0] + x * (c[1] + x * ...).
  Value* Polynomial(Value* x, const Coefficients& coefficients) const;

  // The integer nearest to x * factor, as a number and as an integer. REQUIRES for a meaning: it
  // is below 2^(fraction_bits - 2) in magnitude, else both are anything.
  struct Whole {
    Value* number;
    Value* integer;
  };
  Whole Nearest(Value* x, Value* factor) const;
  // An integer of so small a magnitude as a number.
  Value* ToNumber(Value* integer) const;

  // 2^n; REQUIRES: it is a normal number.
  Value* PowerOfTwo(Value* n) const;
  // x * 2^n, rounded once, to infinity, to a subnormal or to zero where that is the result; n may
  // be twice as far out as the exponents go.
  Value* Scale(Value* x, const Whole& n) const;
  // The same; REQUIRES: 2^n is a normal number.
  Value* ScaleInTheMiddle(Value* x, const Whole& n) const;

  // x + y as a sum; of the quick one |x| >= |y| or x = 0 is asked.
  Sum QuickSum(Value* x, Value* y) const;
  // x * y.
  Sum Product(Value* x, Value* y) const;

 private:
  bool HasScalef() const;
  Value* Scalef(Value* x, Value* n) const;

  double MagicNumber() const { return Pick(0x1.8p23, 0x1.8p52); }
};

// x as 2^exponent * mantissa, mantissa between the roots of 1/2 and 2; of finite x > 0.
struct Decomposed {
  Value* mantissa;
  Value* exponent;  // a number
};
Decomposed Decompose(const MathEmitter& m, Value* x);

// The built-ins over the whole range, edges included: math_exp.cc.
Value* EmitExp(const MathEmitter& m, Value* x);
Value* EmitExp2(const MathEmitter& m, Value* x);
Value* EmitExpm1(const MathEmitter& m, Value* x);
Value* EmitSigmoid(const MathEmitter& m, Value* x);
Value* EmitTanh(const MathEmitter& m, Value* x);
Value* EmitErf(const MathEmitter& m, Value* x);
// math_log.cc.
Value* EmitLog(const MathEmitter& m, Value* x);
Value* EmitLog2(const MathEmitter& m, Value* x);
Value* EmitLog1p(const MathEmitter& m, Value* x);
Value* EmitPow(const MathEmitter& m, Value* x, Value* y);
// math_trig.cc; accurate up to 1e5 in magnitude.
Value* EmitSin(const MathEmitter& m, Value* x);
Value* EmitCos(const MathEmitter& m, Value* x);

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_MATH_EMITTER_H_
