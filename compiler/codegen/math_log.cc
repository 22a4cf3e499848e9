// SPDX-License-Identifier: Apache-2.0
//
// Logarithms and powers. The exponent is taken off the bits, and a polynomial (f32) or the series
// of atanh (f64, and the powers, which need twice the digits) does the rest.
#include "compiler/codegen/math_emitter.h"

namespace phobos::compiler::codegen {
namespace {

// log(1 + t) for 1 + t between the roots of 1/2 and 2, the high part dominating.
Sum LogOfMantissa(const MathEmitter& m, Value* t) {
  if (m.is_f32) {
    // t + t^2 * (t * p(t) - 1/2).
    Value* rest = m.Fma(t, m.Polynomial(t, kLog), m.Number(-0.5));
    return m.QuickSum(t, m.Mul(m.Mul(t, t), rest));
  }
  // With s = t / (2 + t), log(1 + t) = 2 atanh(s) = t - (h - s * (h + r)), where h = t^2 / 2 and
  // s * r is 2 atanh(s) - 2 s: the large terms are exact, the quotient only corrects.
  Value* s = m.Div(t, m.Add(m.Number(2.0), t));
  Value* z = m.Mul(s, s);
  Value* third = m.Number(kThird, 0);
  Value* r = m.Mul(m.Add(z, z), m.Fma(z, m.Polynomial(z, kAtanh), third));
  Value* h = m.Mul(m.Mul(t, t), m.Number(0.5));
  const Sum sum = m.QuickSum(t, m.Negate(h));
  return {sum.high, m.Add(sum.low, m.Mul(s, m.Add(h, r)))};
}

// What a logarithm is at infinity, zero, below zero and at NaN; elsewhere `result`.
Value* AtTheEdges(const MathEmitter& m, Value* x, Value* result) {
  Value* zero = m.Number(0.0);
  Value* is_plain = m.b.CreateAnd(m.b.CreateFCmpOGT(x, zero), m.b.CreateFCmpOLT(x, m.Infinity()));
  Value* edge = m.Choose(m.b.CreateFCmpOLT(x, zero), m.Nan(), x);
  edge = m.Choose(m.b.CreateFCmpOEQ(x, zero), m.Negate(m.Infinity()), edge);
  return m.Choose(is_plain, result, edge);
}

Value* LogOf(const MathEmitter& m, Value* t, Value* exponent) {
  const Sum log = LogOfMantissa(m, t);
  Value* low = m.Fma(exponent, m.Number(kLn2, 1), log.low);
  const Sum high = m.QuickSum(m.Mul(exponent, m.Number(kLn2, 0)), log.high);
  Value* rounded_off =
      m.Fma(exponent, m.Number(kLn2, 0), m.Negate(m.Mul(exponent, m.Number(kLn2, 0))));
  return m.Add(high.high, m.Add(high.low, m.Add(low, rounded_off)));
}

// log2 of a positive number with about twice the digits.
Sum AccurateLog2(const MathEmitter& m, Value* x) {
  const Decomposed parts = Decompose(m, x);
  Value* one = m.Number(1.0);
  // s = (mantissa - 1) / (mantissa + 1) as a sum; the numerator is exact, the denominator a sum.
  Value* numerator = m.Sub(parts.mantissa, one);
  Value* denominator = m.Add(parts.mantissa, one);
  Value* denominator_low = m.Sub(parts.mantissa, m.Sub(denominator, one));
  Value* inverse = m.Div(one, denominator);
  Value* s = m.Mul(numerator, inverse);
  Value* residue = m.Fma(m.Negate(s), denominator, numerator);
  residue = m.Fma(m.Negate(s), denominator_low, residue);
  Value* s_low = m.Mul(residue, inverse);
  // w = z / 3 + z^2 * p(z), z = s^2; the first term as a sum.
  Sum z = m.Product(s, s);
  z.low = m.Fma(m.Add(s, s), s_low, z.low);
  Sum w = m.Product(z.high, m.Number(kThird, 0));
  w.low = m.Add(w.low, m.Fma(z.high, m.Number(kThird, 1), m.Mul(z.low, m.Number(kThird, 0))));
  Value* tail = m.Mul(m.Mul(z.high, z.high), m.Polynomial(z.high, kAtanh));
  const Sum joined = m.QuickSum(w.high, tail);
  w = {joined.high, m.Add(joined.low, w.low)};
  // atanh(s) = s + s * w.
  Sum product = m.Product(s, w.high);
  product.low = m.Add(product.low, m.Fma(s, w.low, m.Mul(s_low, w.high)));
  Sum atanh = m.QuickSum(s, product.high);
  atanh.low = m.Add(atanh.low, m.Add(product.low, s_low));
  // Times 2 / ln(2), plus the exponent.
  Sum log = m.Product(atanh.high, m.Number(kTwoOverLn2, 0));
  log.low = m.Add(log.low, m.Fma(atanh.high, m.Number(kTwoOverLn2, 1),
                                 m.Mul(atanh.low, m.Number(kTwoOverLn2, 0))));
  const Sum whole = m.QuickSum(parts.exponent, log.high);
  return {whole.high, m.Add(whole.low, log.low)};
}

// 2^(product of |x|'s log2 and y), for finite |x| > 0.
Value* PowerOfMagnitude(const MathEmitter& m, Value* size, Value* y) {
  const Sum log = AccurateLog2(m, size);
  Sum product = m.Product(log.high, y);
  product.low = m.Fma(log.low, y, product.low);
  // Far out the result is infinity or zero, and the low part no number.
  const double most = m.Pick(200, 2000);
  Value* is_near = m.b.CreateFCmpOLT(m.Abs(product.high), m.Number(most));
  Value* high = m.AtLeast(m.AtMost(product.high, most), -most);
  Value* low = m.Choose(is_near, product.low, m.Number(0.0));
  const MathEmitter::Whole n = m.Nearest(high, m.Number(1.0));
  Value* rest = m.Add(m.Sub(high, n.number), low);
  return m.Scale(m.Fma(rest, m.Polynomial(rest, kExp2), m.Number(1.0)), n);
}

}  // namespace

Decomposed Decompose(const MathEmitter& m, Value* x) {
  const int bits = m.fraction_bits;
  Value* is_small = m.b.CreateFCmpOLT(x, m.Number(m.Pick(0x1p-126, 0x1p-1022)));
  Value* scaled = m.Choose(is_small, m.Mul(x, m.Number(m.Pick(0x1p23, 0x1p52))), x);
  Value* pattern = m.ToBits(scaled);
  // Counted from the root of 1/2, the exponent's bits change where the mantissa should start anew.
  Value* root = m.ToBits(m.Number(m.Pick(0x1.6a09e6p-1, 0x1.6a09e667f3bcdp-1)));
  Value* exponent = m.b.CreateAShr(m.b.CreateSub(pattern, root), bits);
  Value* mantissa = m.FromBits(m.b.CreateSub(pattern, m.b.CreateShl(exponent, bits)));
  Value* offset = m.Choose(is_small, m.Integer(bits), m.Integer(0));
  return {mantissa, m.ToNumber(m.b.CreateSub(exponent, offset))};
}

Value* EmitLog(const MathEmitter& m, Value* x) {
  const Decomposed parts = Decompose(m, x);
  return AtTheEdges(m, x, LogOf(m, m.Sub(parts.mantissa, m.Number(1.0)), parts.exponent));
}

Value* EmitLog2(const MathEmitter& m, Value* x) {
  const Decomposed parts = Decompose(m, x);
  const Sum log = LogOfMantissa(m, m.Sub(parts.mantissa, m.Number(1.0)));
  Sum scaled = m.Product(log.high, m.Number(kLog2E, 0));
  scaled.low =
      m.Add(scaled.low, m.Fma(log.high, m.Number(kLog2E, 1), m.Mul(log.low, m.Number(kLog2E, 0))));
  const Sum sum = m.QuickSum(parts.exponent, scaled.high);
  return AtTheEdges(m, x, m.Add(sum.high, m.Add(sum.low, scaled.low)));
}

// log(1 + x). Near zero x itself is the polynomial's argument, so nothing is lost in the sum.
Value* EmitLog1p(const MathEmitter& m, Value* x) {
  Value* one = m.Number(1.0);
  Value* sum = m.Add(one, x);
  const Decomposed parts = Decompose(m, sum);
  Value* is_near = m.b.CreateFCmpOEQ(parts.exponent, m.Number(0.0));
  Value* t = m.Choose(is_near, x, m.Sub(parts.mantissa, one));
  return m.WithSignOf(AtTheEdges(m, sum, LogOf(m, t, parts.exponent)), x);
}

// As C's pow has it.
Value* EmitPow(const MathEmitter& m, Value* x, Value* y) {
  llvm::IRBuilderBase& b = m.b;
  Value* zero = m.Number(0.0);
  Value* one = m.Number(1.0);
  Value* size = m.Abs(x);
  Value* is_zero = b.CreateFCmpOEQ(size, zero);
  Value* is_infinite = b.CreateFCmpOEQ(size, m.Infinity());
  Value* is_edge = b.CreateOr(is_zero, is_infinite);
  Value* result = PowerOfMagnitude(m, m.Choose(is_edge, one, size), y);
  // 1 to an infinite power is 1, whatever its sign.
  result = m.Choose(b.CreateFCmpOEQ(size, one), one, result);
  // Zero and infinity to a power are one of the two.
  Value* grows = b.CreateXor(is_zero, b.CreateFCmpOGT(y, zero));
  result = m.Choose(is_edge, m.Choose(grows, m.Infinity(), zero), result);
  // A negative base: the sign of odd powers, and nothing for powers that are no integers.
  Value* is_negative = b.CreateICmpSLT(m.ToBits(x), m.Integer(0));
  auto is_whole = [&](Value* v) {
    return b.CreateFCmpOEQ(b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, v), v);
  };
  Value* is_integer = is_whole(y);
  Value* is_odd = b.CreateAnd(is_integer, b.CreateNot(is_whole(m.Mul(y, m.Number(0.5)))));
  result = m.Choose(b.CreateAnd(is_negative, is_odd), m.Negate(result), result);
  Value* is_undefined = b.CreateAnd(b.CreateFCmpOLT(x, zero), b.CreateNot(is_integer));
  is_undefined = b.CreateAnd(is_undefined, b.CreateNot(is_infinite));
  is_undefined = b.CreateOr(is_undefined, b.CreateFCmpUNO(x, y));
  result = m.Choose(is_undefined, m.Nan(), result);
  Value* is_one = b.CreateOr(b.CreateFCmpOEQ(y, zero), b.CreateFCmpOEQ(x, one));
  return m.Choose(is_one, one, result);
}

}  // namespace phobos::compiler::codegen
