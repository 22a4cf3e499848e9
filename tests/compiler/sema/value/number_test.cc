// SPDX-License-Identifier: Apache-2.0
//
// How literals fit the element types: rounding is compared with the bits of the formats.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/sema/value/literal.h"

namespace phobos::compiler::sema {
namespace {

using ir::DType;

// The number that 16 bits stand for, with `exponent_bits` of them for the exponent.
double Decode(uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const double fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits >> 15 != 0 ? -1 : 1;
  const double scale = std::ldexp(1.0, -fraction_bits);
  if (exponent == 0) return sign * std::ldexp(fraction * scale, 1 - bias);
  return sign * std::ldexp(1 + fraction * scale, exponent - bias);
}

// Every finite value stays, what lies between two goes to the nearer one, the middle to the even
// one.
void CheckFormat(DType dtype, int exponent_bits, uint16_t largest) {
  for (uint16_t bits = 0; bits < largest; ++bits) {
    const double low = Decode(bits, exponent_bits);
    const double high = Decode(bits + 1, exponent_bits);
    const double middle = (low + high) / 2;
    ASSERT_EQ(RoundTo(dtype, low), low) << bits;
    ASSERT_EQ(RoundTo(dtype, -low), -low) << bits;
    ASSERT_EQ(RoundTo(dtype, middle), bits % 2 == 0 ? low : high) << bits;
    ASSERT_EQ(RoundTo(dtype, std::nextafter(middle, high)), high) << bits;
    ASSERT_EQ(RoundTo(dtype, std::nextafter(middle, low)), low) << bits;
  }
  const double last = Decode(largest, exponent_bits);
  const double step = last - Decode(largest - 1, exponent_bits);
  EXPECT_EQ(LargestFinite(dtype), last);
  EXPECT_EQ(RoundTo(dtype, last + step / 2), INFINITY);
  EXPECT_EQ(RoundTo(dtype, std::nextafter(last + step / 2, 0)), last);
  EXPECT_EQ(RoundTo(dtype, -INFINITY), -INFINITY);
  EXPECT_TRUE(std::isnan(RoundTo(dtype, NAN)));
}

TEST(RoundTo, F16) { CheckFormat(DType::kF16, 5, 0x7bff); }
TEST(RoundTo, BF16) { CheckFormat(DType::kBF16, 8, 0x7f7f); }

// Expected values are CPython's, but for the division by zero.
TEST(Fold, FloatsFloorExactly) {
  struct Case {
    double a, b, quotient, remainder;
  };
  const Case cases[] = {
      {1.0, 0.1, 9.0, 0.09999999999999995},
      {-1.0, 0.1, -10.0, 5.551115123125783e-17},
      {7.5, -2.0, -4.0, -0.5},
      {-1.0, INFINITY, -1.0, INFINITY},
      {1e300, 3.0, 3.3333333333333335e+299, 0.0},
      {7.5, 0.0, 0.0, 0.0},
      {-7.5, -0.0, 0.0, 0.0},
  };
  for (const Case& c : cases) {
    Problem problem;
    const auto quotient = Fold(ast::BinaryOp::kFloorDiv, Literal(c.a), Literal(c.b), &problem);
    const auto remainder = Fold(ast::BinaryOp::kMod, Literal(c.a), Literal(c.b), &problem);
    ASSERT_TRUE(quotient.has_value() && remainder.has_value());
    EXPECT_EQ(AsDouble(*quotient), c.quotient) << c.a << " // " << c.b;
    EXPECT_EQ(AsDouble(*remainder), c.remainder) << c.a << " % " << c.b;
  }
}

TEST(CastTo, IntsToFloatsRoundOnce) {
  struct Case {
    WideInt value;
    DType dtype;
    double expected;
  };
  const Case cases[] = {
      {(WideInt{1} << 24) + 1, DType::kF32, 16777216.0},
      {(WideInt{1} << 24) + 3, DType::kF32, 16777220.0},
      // Rounded to double first, this would end at the even neighbour below.
      {(WideInt{1} << 60) + (WideInt{1} << 36) + 1, DType::kF32,
       std::ldexp(1.0, 60) + std::ldexp(1.0, 37)},
      {-((WideInt{1} << 53) + 1), DType::kF64, -9007199254740992.0},
      {WideInt{1} << 100, DType::kF32, std::ldexp(1.0, 100)},
      {65519, DType::kF16, 65504.0},
      {65520, DType::kF16, INFINITY},
      {257, DType::kBF16, 256.0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(std::get<double>(CastTo(Literal(c.value), c.dtype)), c.expected) << ToString(c.value);
  }
}

TEST(CastTo, FloatsToIntsTruncateAndSaturate) {
  struct Case {
    double value;
    DType dtype;
    int64_t expected;
  };
  const Case cases[] = {
      {2.9, DType::kI8, 2},
      {-2.9, DType::kI8, -2},
      {127.9, DType::kI8, 127},
      {128, DType::kI8, 127},
      {-1e30, DType::kI8, -128},
      {-0.5, DType::kU8, 0},
      {-5, DType::kU8, 0},
      {1e30, DType::kU16, 65535},
      {NAN, DType::kI32, 0},
      {INFINITY, DType::kI64, std::numeric_limits<int64_t>::max()},
      {9223372036854775807.0, DType::kI64, std::numeric_limits<int64_t>::max()},
      {-9223372036854775808.0, DType::kI64, std::numeric_limits<int64_t>::min()},
      {1e30, DType::kU64, -1},
      {0.1, DType::kBool, 1},
      {-0.0, DType::kBool, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(std::get<int64_t>(CastTo(Literal(c.value), c.dtype)), c.expected) << c.value;
  }
}

TEST(Convert, IntsMustFit) {
  struct Case {
    WideInt value;
    DType dtype;
    bool fits;
  };
  const Case cases[] = {
      {127, DType::kI8, true},
      {128, DType::kI8, false},
      {-128, DType::kI8, true},
      {-129, DType::kI8, false},
      {-1, DType::kU64, false},
      {(WideInt{1} << 64) - 1, DType::kU64, true},
      {WideInt{1} << 64, DType::kU64, false},
      {WideInt{1} << 63, DType::kI64, false},
      {2, DType::kBool, true},
      {65519, DType::kF16, true},
      {65520, DType::kF16, false},
      {WideInt{1} << 120, DType::kF32, true},
  };
  for (const Case& c : cases) {
    Problem problem;
    EXPECT_EQ(Convert(Literal(c.value), c.dtype, &problem).has_value(), c.fits)
        << ToString(c.value) << " " << ir::Name(c.dtype);
    EXPECT_EQ(problem.what.empty(), c.fits);
  }
  Problem problem;
  EXPECT_TRUE(Convert(Literal(double{INFINITY}), DType::kF16, &problem).has_value());
  EXPECT_FALSE(Convert(Literal(1e39), DType::kF32, &problem).has_value());
  EXPECT_FALSE(Convert(Literal(std::string("a")), DType::kF32, &problem).has_value());
}

TEST(Fold, StopsAtTheLimitInsteadOfWrapping) {
  const Literal large = kWideLimit;
  for (const ast::BinaryOp op :
       {ast::BinaryOp::kAdd, ast::BinaryOp::kMul, ast::BinaryOp::kPow, ast::BinaryOp::kShiftLeft}) {
    Problem problem;
    EXPECT_FALSE(Fold(op, large, Literal(WideInt{2}), &problem).has_value());
    EXPECT_FALSE(Fold(op, large, large, &problem).has_value());
    EXPECT_EQ(problem.what, "this constant is too large");
  }
  Problem problem;
  EXPECT_EQ(Fold(ast::BinaryOp::kPow, Literal(WideInt{-1}), large, &problem), Literal(WideInt{1}));
  EXPECT_EQ(Fold(ast::BinaryOp::kPow, Literal(WideInt{0}), Literal(WideInt{0}), &problem),
            Literal(WideInt{1}));
  EXPECT_EQ(Fold(ast::BinaryOp::kShiftRight, Literal(WideInt{-1}), large, &problem),
            Literal(WideInt{-1}));
}

}  // namespace
}  // namespace phobos::compiler::sema
