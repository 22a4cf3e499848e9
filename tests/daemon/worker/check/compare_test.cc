// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/check/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace phobos::worker {
namespace {

using compiler::v1::DType;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
absl::Span<const std::byte> Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::optional<Mismatch> CompareValues(DType dtype, const std::vector<T>& got,
                                      const std::vector<T>& want, Tolerance tolerance) {
  return Compare(dtype, Bytes(got), Bytes(want), tolerance, RootMeanSquare(dtype, Bytes(want)));
}

struct Pair {
  double got;
  double want;
  bool matches;
};

// rms of {want, 0 ...} is made small by the zeros, so that |want| counts.
TEST(Compare, ToleranceTable) {
  const Tolerance tolerance = {1e-3, 1e-6};
  const Pair pairs[] = {
      {1.0, 1.0, true},     {1.001, 1.0, true}, {0.999, 1.0, true},   {1.0011, 1.0, false},
      {0.9989, 1.0, false}, {-1.0, 1.0, false}, {kNan, kNan, true},   {kNan, 1.0, false},
      {1.0, kNan, false},   {kInf, kInf, true}, {-kInf, -kInf, true}, {kInf, -kInf, false},
      {kInf, 1.0, false},   {1.0, kInf, false}, {1e38, kInf, false},  {kNan, kInf, false},
      {kInf, kNan, false},  {0.0, -0.0, true},
  };
  for (const Pair& pair : pairs) {
    std::vector<double> got(1000, 0.0), want(1000, 0.0);
    got[500] = pair.got, want[500] = pair.want;
    EXPECT_EQ(!CompareValues(DType::DTYPE_F64, got, want, tolerance).has_value(), pair.matches)
        << pair.got << " for " << pair.want;
    const std::vector<float> got32(got.begin(), got.end()), want32(want.begin(), want.end());
    EXPECT_EQ(!CompareValues(DType::DTYPE_F32, got32, want32, tolerance).has_value(), pair.matches)
        << pair.got << " for " << pair.want << " as f32";
  }
}

// A sum that cancels to nearly 0 among large neighbours is judged by their size, not by its own.
TEST(Compare, RmsWidensSmallResults) {
  std::vector<float> want(100, 1000.0f), got = want;
  want[3] = 1e-4f, got[3] = 5e-4f;
  EXPECT_FALSE(CompareValues(DType::DTYPE_F32, got, want, {1.3e-6, 1e-5}).has_value());
  const std::vector<float> alone_want = {1e-4f}, alone_got = {5e-4f};
  EXPECT_TRUE(CompareValues(DType::DTYPE_F32, alone_got, alone_want, {1.3e-6, 1e-5}).has_value());
}

TEST(Compare, RmsIgnoresWhatIsNotFiniteAndDoesNotOverflow) {
  const std::vector<float> f32 = {3.0f, static_cast<float>(kInf), static_cast<float>(kNan), -4.0f};
  EXPECT_DOUBLE_EQ(RootMeanSquare(DType::DTYPE_F32, Bytes(f32)), std::sqrt(12.5));
  const std::vector<double> huge = {1e308, -1e308};
  EXPECT_NEAR(RootMeanSquare(DType::DTYPE_F64, Bytes(huge)) / 1e308, 1.0, 1e-12);
  EXPECT_EQ(RootMeanSquare(DType::DTYPE_F64, Bytes(std::vector<double>{kNan})), 0.0);
  EXPECT_EQ(RootMeanSquare(DType::DTYPE_F32, {}), 0.0);
  EXPECT_EQ(RootMeanSquare(DType::DTYPE_I32, Bytes(std::vector<int32_t>{5})), 0.0);
  // An infinity among the expected values must not make every tolerance infinite.
  const std::vector<double> want = {kInf, 1.0}, got = {kInf, 2.0};
  EXPECT_TRUE(CompareValues(DType::DTYPE_F64, got, want, {1e-3, 0}).has_value());
}

TEST(Compare, IntegersAndBoolsAreExact) {
  const Tolerance wide = {1.0, 1000.0};
  EXPECT_TRUE(
      CompareValues<int64_t>(DType::DTYPE_I64, {(int64_t{1} << 53) + 1}, {int64_t{1} << 53}, wide)
          .has_value());
  EXPECT_FALSE(CompareValues<int64_t>(DType::DTYPE_I64, {-5}, {-5}, wide).has_value());
  EXPECT_TRUE(CompareValues<uint8_t>(DType::DTYPE_BOOL, {1}, {0}, wide).has_value());
  const auto mismatch =
      CompareValues<uint64_t>(DType::DTYPE_U64, {18446744073709551615u}, {0}, wide);
  ASSERT_TRUE(mismatch.has_value());
  EXPECT_EQ(mismatch->got_text, "18446744073709551615");
}

// Against the definition of the formats, for all 65536 patterns: decoded values compared with
// themselves as f32 text.
TEST(Compare, HalfPrecisionIsDecoded) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const std::vector<uint16_t> values = {static_cast<uint16_t>(bits)};
    const int exponent = static_cast<int>(bits >> 10 & 31),
              fraction = static_cast<int>(bits & 1023);
    const double sign = bits >> 15 ? -1 : 1;
    const double f16 = exponent == 31  ? (fraction != 0 ? kNan : sign * kInf)
                       : exponent == 0 ? sign * std::ldexp(fraction, -24)
                                       : sign * std::ldexp(1024 + fraction, exponent - 25);
    const double rms = RootMeanSquare(DType::DTYPE_F16, Bytes(values));
    EXPECT_EQ(rms, std::isfinite(f16) ? std::abs(f16) : 0.0) << bits;
    const bool same = !CompareValues<uint16_t>(DType::DTYPE_F16, values, {0x3c00}, {0, 0});
    EXPECT_EQ(same, f16 == 1.0) << bits;
  }
  const auto f16 = CompareValues<uint16_t>(DType::DTYPE_F16, {0xc001}, {0x7c00}, {0, 0});
  ASSERT_TRUE(f16.has_value());
  EXPECT_EQ(f16->got_text, "-2.0019531");
  EXPECT_EQ(f16->want_text, "inf");
  const auto bf16 = CompareValues<uint16_t>(DType::DTYPE_BF16, {0x3fc0}, {0x4000}, {0, 0});
  ASSERT_TRUE(bf16.has_value());
  EXPECT_EQ(bf16->got, 1.5);
  EXPECT_EQ(bf16->want, 2.0);
}

// First index, number and largest error over ranges that several threads share.
TEST(Compare, LargeTensorsAreCountedWhole) {
  std::vector<float> want(6'000'000, 1.0f), got = want;
  got[5'999'999] = 4.0f;
  got[2'000'001] = 2.0f;
  got[2'000'000] = 1.5f;
  const auto mismatch = CompareValues(DType::DTYPE_F32, got, want, {1e-6, 1e-6});
  ASSERT_TRUE(mismatch.has_value());
  EXPECT_EQ(mismatch->first, 2'000'000);
  EXPECT_EQ(mismatch->differing, 3);
  EXPECT_EQ(mismatch->largest_error, 3.0);
  EXPECT_EQ(mismatch->elements, 6'000'000);
}

TEST(Compare, MessageTellsAll) {
  std::vector<float> want(12, 2.5f), got = want;
  got[7] = 1.5f, got[11] = static_cast<float>(kNan);
  const Tolerance tolerance = DefaultTolerance(DType::DTYPE_F32);
  const auto mismatch = CompareValues(DType::DTYPE_F32, got, want, tolerance);
  ASSERT_TRUE(mismatch.has_value());
  EXPECT_EQ(Describe(*mismatch, "out", {3, 4}, DType::DTYPE_F32, tolerance),
            "out[1, 3] is 1.5, the reference says 2.5; 2 of 12 elements differ, the largest error "
            "is inf (allowed: rtol 1.3e-06, atol 1e-05)");
}

TEST(Compare, IndexText) {
  EXPECT_EQ(IndexText(7, {3, 4}), "[1, 3]");
  EXPECT_EQ(IndexText(23, {2, 3, 4}), "[1, 2, 3]");
  EXPECT_EQ(IndexText(5, {}), "[5]");
  EXPECT_EQ(IndexText(12, {3, 4}), "[12]");  // outside the shape
}

TEST(Compare, FirstDifference) {
  std::vector<uint8_t> a(9'000'000, 1), b = a;
  EXPECT_EQ(FirstDifference(Bytes(a), Bytes(b)), std::nullopt);
  b[8'999'999] = 2;
  EXPECT_EQ(FirstDifference(Bytes(a), Bytes(b)), 8'999'999);
  b[1] = 2;
  EXPECT_EQ(FirstDifference(Bytes(a), Bytes(b)), 1);
}

TEST(Compare, DefaultTolerancesAreTheTypes) {
  EXPECT_EQ(DefaultTolerance(DType::DTYPE_F64).rtol, 1e-7);
  EXPECT_EQ(DefaultTolerance(DType::DTYPE_F64).atol, 1e-7);
  EXPECT_EQ(DefaultTolerance(DType::DTYPE_F32).rtol, 1.3e-6);
  EXPECT_EQ(DefaultTolerance(DType::DTYPE_F32).atol, 1e-5);
  EXPECT_EQ(DefaultTolerance(DType::DTYPE_F16).rtol, 4e-3);
  EXPECT_EQ(DefaultTolerance(DType::DTYPE_BF16).rtol, 1.6e-2);
  EXPECT_EQ(DefaultTolerance(DType::DTYPE_I32).atol, 0);
}

}  // namespace
}  // namespace phobos::worker
