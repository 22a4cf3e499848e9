// SPDX-License-Identifier: Apache-2.0
//
// Sine and cosine. The argument is reduced by multiples of pi / 2, which is three numbers long
// here: enough for the digits that cancel up to 1e5. Far beyond, results lose their accuracy but
// stay within [-1, 1].
#include "compiler/codegen/math_emitter.h"

namespace phobos::compiler::codegen {
namespace {

// sin(x + quarter_turns * pi / 2).
Value* SinAfter(const MathEmitter& m, Value* x, int quarter_turns) {
  const MathEmitter::Whole n = m.Nearest(x, m.Number(kTwoOverPi, 0));
  Value* minus_n = m.Negate(n.number);
  Value* rest = x;
  for (int part = 0; part < 3; ++part) rest = m.Fma(minus_n, m.Number(kHalfPi, part), rest);
  // Also keeps the sign of zero.
  rest = m.Choose(m.b.CreateICmpEQ(n.integer, m.Integer(0)), x, rest);
  rest = m.AtLeast(m.AtMost(rest, 0.79), -0.79);

  Value* one = m.Number(1.0);
  Value* square = m.Mul(rest, rest);
  Value* sine = m.Mul(rest, m.Fma(square, m.Polynomial(square, kSin), one));
  Value* tail = m.Mul(m.Mul(square, square), m.Polynomial(square, kCos));
  Value* cosine = m.Add(m.Fma(square, m.Number(-0.5), one), tail);

  Value* quadrant = m.b.CreateAdd(n.integer, m.Integer(quarter_turns));
  Value* is_cosine = m.b.CreateIsNotNull(m.b.CreateAnd(quadrant, m.Integer(1)));
  Value* is_flipped = m.b.CreateIsNotNull(m.b.CreateAnd(quadrant, m.Integer(2)));
  Value* result = m.Choose(is_cosine, cosine, sine);
  return m.Choose(is_flipped, m.Negate(result), result);
}

}  // namespace

Value* EmitSin(const MathEmitter& m, Value* x) { return SinAfter(m, x, 0); }

Value* EmitCos(const MathEmitter& m, Value* x) { return SinAfter(m, x, 1); }

}  // namespace phobos::compiler::codegen
