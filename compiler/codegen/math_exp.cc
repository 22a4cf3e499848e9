// SPDX-License-Identifier: Apache-2.0
//
// exp and what is made of it. Its argument is reduced by multiples of ln(2), two numbers long, and
// a polynomial does the rest; see coefficients.py for the forms.
#include "compiler/codegen/math_emitter.h"

namespace phobos::compiler::codegen {
namespace {

struct Reduced {
  MathEmitter::Whole n;
  Value* rest;  // x - n * ln(2)
};

Reduced ReduceByLn2(const MathEmitter& m, Value* x) {
  const MathEmitter::Whole n = m.Nearest(x, m.Number(kLog2E, 0));
  Value* minus_n = m.Negate(n.number);
  Value* rest = m.Fma(minus_n, m.Number(kLn2, 0), x);
  return {n, m.Fma(minus_n, m.Number(kLn2, 1), rest)};
}

// exp(rest).
Value* ExpOfRest(const MathEmitter& m, Value* rest) {
  Value* square = m.Mul(rest, rest);
  return m.Add(m.Number(1.0), m.Fma(square, m.Polynomial(rest, kExp), rest));
}

// exp where 2^n is a normal number: x within about +-87 (f32), +-708 (f64).
Value* ExpInTheMiddle(const MathEmitter& m, Value* x) {
  const Reduced reduced = ReduceByLn2(m, x);
  return m.ScaleInTheMiddle(ExpOfRest(m, reduced.rest), reduced.n);
}

}  // namespace

Value* EmitExp(const MathEmitter& m, Value* x) {
  // Beyond these the result is infinity or zero, and Scale makes it so.
  Value* bounded = m.AtLeast(m.AtMost(x, m.Pick(89, 710)), m.Pick(-104, -746));
  const Reduced reduced = ReduceByLn2(m, bounded);
  return m.Scale(ExpOfRest(m, reduced.rest), reduced.n);
}

Value* EmitExp2(const MathEmitter& m, Value* x) {
  Value* bounded = m.AtLeast(m.AtMost(x, m.Pick(129, 1025)), m.Pick(-151, -1076));
  const MathEmitter::Whole n = m.Nearest(bounded, m.Number(1.0));
  Value* rest = m.Sub(bounded, n.number);
  return m.Scale(m.Fma(rest, m.Polynomial(rest, kExp2), m.Number(1.0)), n);
}

// 2^n * expm1(rest) + (2^n - 1), at half the size lest 2^n overflow.
Value* EmitExpm1(const MathEmitter& m, Value* x) {
  Value* bounded = m.AtLeast(m.AtMost(x, m.Pick(89, 710)), m.Pick(-60, -60));
  const Reduced reduced = ReduceByLn2(m, bounded);
  Value* rest = reduced.rest;
  Value* small = m.Fma(m.Mul(rest, rest), m.Polynomial(rest, kExpm1), rest);
  Value* n = reduced.n.integer;
  Value* half_power = m.PowerOfTwo(m.b.CreateSub(n, m.Integer(1)));
  Value* half = m.Fma(half_power, small, m.Sub(half_power, m.Number(0.5)));
  Value* result = m.Choose(m.b.CreateICmpEQ(n, m.Integer(0)), small, m.Add(half, half));
  return m.WithSignOf(result, x);
}

// Of -|x|, whose exp cannot overflow: 1 / (1 + e) on the right, e / (1 + e) on the left.
Value* EmitSigmoid(const MathEmitter& m, Value* x) {
  Value* e = EmitExp(m, m.Negate(m.Abs(x)));
  Value* one = m.Number(1.0);
  Value* is_negative = m.b.CreateFCmpOLT(x, m.Number(0.0));
  return m.Div(m.Choose(is_negative, e, one), m.Add(one, e));
}

// A polynomial near zero, else 1 - 2 / (exp(2 |x|) + 1).
Value* EmitTanh(const MathEmitter& m, Value* x) {
  Value* size = m.Abs(x);
  Value* square = m.Mul(size, size);
  Value* near = m.Fma(m.Mul(size, square), m.Polynomial(square, kTanh), size);
  Value* bounded = m.AtMost(size, m.Pick(10, 20));  // 1 from there on
  Value* e = ExpInTheMiddle(m, m.Add(bounded, bounded));
  Value* one = m.Number(1.0);
  Value* far = m.Sub(one, m.Div(m.Number(2.0), m.Add(e, one)));
  Value* is_near = m.b.CreateFCmpOLT(size, m.Number(0.625));
  return m.PositiveWithSignOf(m.Choose(is_near, near, far), x);
}

// A polynomial up to 1, else 1 - erfc(|x|), whose fourth root is a polynomial: its rounding errors
// count little beside 1. The first one has its sign already. Both get it after the choice: so a GPU
// chooses by whether it does the second one's last step, which costs nothing.
Value* EmitErf(const MathEmitter& m, Value* x) {
  Value* one = m.Number(1.0);
  Value* size = m.Abs(x);
  Value* near = m.Fma(x, m.Polynomial(m.Mul(x, x), kErf), x);
  Value* bounded = m.AtMost(size, m.Pick(4, 6));  // 1 from there on
  Value* root = m.Polynomial(bounded, kErfc);
  Value* square = m.Mul(root, root);
  Value* far = m.Fma(m.Negate(square), square, one);
  Value* is_near = m.b.CreateFCmpOLT(size, one);
  return m.PositiveWithSignOf(m.Choose(is_near, near, far), x);
}

}  // namespace phobos::compiler::codegen
