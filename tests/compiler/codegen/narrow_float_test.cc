// SPDX-License-Identifier: Apache-2.0
//
// Products and quotients of f16 and bf16 around and below the least normal number, where computing
// in f32 and rounding again could round twice, against exact integers. That it never does wrong:
//
// - A product of two bf16 has 16 digits. f32 cuts it only below 2^-149, and two roundings differ
//   from one only if the product lies within 2^-150 of an odd multiple of 2^-134 and is none:
//   then it spans more than 16 digits, or it is (2^16 - 1) * 2^-150, which two numbers of 8 digits
//   do not make (255 * 255 is less). A product of two f16 is exact in f32.
// - A quotient a / b differs from a tie by a fraction whose denominator is b's significand: by at
//   least 2^-143 in bf16, 2^-37 in f16, where f32 rounds by 2^-150 and 2^-38 at most.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"
#include "tests/compiler/sema/lower/lowered.h"

namespace phobos::compiler::testing {
namespace {

struct Format {
  std::string name;
  int digits;
  int least;  // the exponent of the least subnormal
  uint16_t infinity;
};

// number * 2^exponent, not negative.
struct Scaled {
  int64_t number;
  int exponent;
};

Scaled ValueOf(const Format& format, uint16_t bits) {
  const int field = bits >> (format.digits - 1);
  const int64_t fraction = bits & ((1 << (format.digits - 1)) - 1);
  if (field == 0) return {fraction, format.least};
  return {fraction | 1 << (format.digits - 1), format.least + field - 1};
}

// The float of this significand, of format.digits digits, times 2^exponent.
uint16_t BitsOf(const Format& format, int64_t significand, int exponent) {
  return static_cast<uint16_t>(((exponent - format.least) << (format.digits - 1)) + significand);
}

// over / under * 2^exponent, rounded once, ties to even.
uint16_t Round(const Format& format, int64_t over, int64_t under, int exponent) {
  if (over == 0) return 0;
  // Enough digits in front of the point that the quotient has those of the format.
  __int128 top = static_cast<__int128>(over) << 40;
  exponent -= 40;
  const int length = std::bit_width(static_cast<uint64_t>(top / under));
  const int unit = std::max(format.least, exponent + length - format.digits);
  const __int128 bottom = static_cast<__int128>(under) << (unit - exponent);
  const __int128 twice_rest = 2 * (top % bottom);
  __int128 result = top / bottom;
  const bool is_odd = (result & 1) != 0;
  if (twice_rest > bottom || (twice_rest == bottom && is_odd)) ++result;
  // A carry out of the digits lands in the exponent's field, where it belongs.
  const int64_t bits =
      (int64_t{unit - format.least} << (format.digits - 1)) + static_cast<int64_t>(result);
  return static_cast<uint16_t>(std::min<int64_t>(bits, format.infinity));
}

struct Pairs {
  std::vector<uint16_t> a;
  std::vector<uint16_t> b;
};

// Every significand of a at 2^exponent_of_a, with numbers b of these exponents; and each number up
// to twice the least normal one, where a subnormal is divided or multiplied.
Pairs PairsOf(const Format& format, int exponent_of_a, int first, int last, int step) {
  Pairs pairs;
  const int64_t least = int64_t{1} << (format.digits - 1);
  for (int exponent = first; exponent <= last; ++exponent) {
    for (int64_t b = least; b < 2 * least; b += step) {
      for (int64_t a = 0; a < least; ++a) {
        pairs.a.push_back(BitsOf(format, least + a, exponent_of_a));
        pairs.b.push_back(BitsOf(format, b, exponent));
        pairs.a.push_back(static_cast<uint16_t>(2 * a + 1));
        pairs.b.push_back(BitsOf(format, b, (exponent - first) / 2 - format.digits - 2));
      }
    }
  }
  const size_t block = 64;
  while (pairs.a.size() % block != 0) {
    pairs.a.push_back(0);
    pairs.b.push_back(BitsOf(format, least, first));
  }
  return pairs;
}

// How many results of `operation` are not the exact ones, rounded once.
int64_t WrongResults(const Format& format, const std::string& operation, const Pairs& pairs) {
  const std::string tensor = "ph.tensor[ph." + format.name + "][N]";
  const absl::StatusOr<ir::Function> function =
      sema::LowerKernel({.parameters = "x: " + tensor + ", y: " + tensor + ", out: " + tensor,
                         .body = "b: ph.let = ph.ctx.block.x * 64\nout[b:+64] = x[b:+64] " +
                                 operation + " y[b:+64]"});
  if (!function.ok()) return -1;
  int64_t wrong = 0;
  for (const host::Chip& chip : ChipsUnderTest()) {
    const absl::StatusOr<std::unique_ptr<Compiled>> compiled = Compiled::Make(*function, chip);
    if (!compiled.ok()) return -1;
    std::vector<uint16_t> out(pairs.a.size());
    const uint64_t slots[] = {reinterpret_cast<uint64_t>(pairs.a.data()),
                              reinterpret_cast<uint64_t>(pairs.b.data()),
                              reinterpret_cast<uint64_t>(out.data()), pairs.a.size()};
    (*compiled)->RunRaw(slots, static_cast<int64_t>(out.size() / 64));
    for (size_t i = 0; i < out.size(); ++i) {
      const Scaled a = ValueOf(format, pairs.a[i]);
      const Scaled b = ValueOf(format, pairs.b[i]);
      const uint16_t want = operation == "*"
                                ? Round(format, a.number * b.number, 1, a.exponent + b.exponent)
                                : Round(format, a.number, b.number, a.exponent - b.exponent);
      if (out[i] == want) continue;
      if (++wrong > 3) continue;
      ADD_FAILURE() << format.name << " " << chip.name << ": " << pairs.a[i] << operation
                    << pairs.b[i] << " is " << out[i] << ", not " << want;
    }
  }
  return wrong;
}

TEST(NarrowFloat, ProductsAndQuotientsRoundOnce) {
  const Format bf16 = {"bf16", 8, -133, 0x7f80};
  const Format f16 = {"f16", 11, -24, 0x7c00};
  // Exponents are those of the last digit: the results' are just below the least to above the
  // least normal number's.
  EXPECT_EQ(WrongResults(bf16, "*", PairsOf(bf16, -64, -85, -65, 1)), 0);
  EXPECT_EQ(WrongResults(bf16, "/", PairsOf(bf16, -100, 25, 45, 1)), 0);
  EXPECT_EQ(WrongResults(f16, "*", PairsOf(f16, -22, -24, -9, 37)), 0);
  EXPECT_EQ(WrongResults(f16, "/", PairsOf(f16, -22, -10, 4, 37)), 0);
}

}  // namespace
}  // namespace phobos::compiler::testing
