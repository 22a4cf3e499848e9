// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/tune/unchanged.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "client/cpp/plan/number.h"
#include "daemon/worker/check/compare.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

bool Accepts(const std::vector<float>& got, const std::vector<float>& want,
             const TuneOptions& options = {}) {
  const auto count = static_cast<int64_t>(want.size());
  return IsAccepted(DType::kF32, got.data(), want.data(), count, ToleranceFor(DType::kF32, options),
                    {0, count});
}

// What the client takes for unchanged and what the daemon accepts must be judged alike.
TEST(ToleranceFor, IsTheDaemons) {
  for (int number = 0; number <= compiler::v1::DType_MAX; ++number) {
    const worker::Tolerance theirs =
        worker::DefaultTolerance(static_cast<compiler::v1::DType>(number));
    const Tolerance ours = ToleranceFor(static_cast<DType>(number), {});
    EXPECT_EQ(ours.rtol, theirs.rtol) << number;
    EXPECT_EQ(ours.atol, theirs.atol) << number;
  }
}

TEST(IsAccepted, FloatsWithinTheirTolerance) {
  EXPECT_TRUE(Accepts({1, 2}, {1, 2}));
  EXPECT_TRUE(Accepts({1.000001f}, {1}));
  EXPECT_FALSE(Accepts({1.0001f}, {1}));
  EXPECT_FALSE(Accepts({1, 2, 3.1f}, {1, 2, 3}));
  EXPECT_TRUE(Accepts({kNaN, kInf, -kInf}, {kNaN, kInf, -kInf}));
  EXPECT_FALSE(Accepts({kInf}, {1}));
  EXPECT_FALSE(Accepts({1}, {kInf}));
  EXPECT_FALSE(Accepts({-kInf}, {kInf}));
  EXPECT_FALSE(Accepts({kNaN}, {0}));
  EXPECT_FALSE(Accepts({0}, {kNaN}));
}

TEST(IsAccepted, SmallElementsAreJudgedByTheRootMeanSquare) {
  // 1e6 * 1.3e-6 is 1.3: an element that cancelled to 0 may be off by that.
  EXPECT_TRUE(Accepts({1e6f, 0.5f}, {1e6f, 0}));
  EXPECT_FALSE(Accepts({1e6f, 2.0f}, {1e6f, 0}));
  // The mean is the whole tensor's, whichever part is looked at.
  const std::vector<float> want = {1e6f, 0}, got = {0.5f};
  EXPECT_TRUE(
      IsAccepted(DType::kF32, got.data(), want.data(), 2, ToleranceFor(DType::kF32, {}), {1, 1}));
}

TEST(IsAccepted, TheMeanIsOfAllPieces) {
  // The one large element is in the last of several pieces.
  constexpr int64_t kCount = int64_t{2} << 20;
  std::vector<float> want(kCount, 0);
  want.back() = 1e6f;
  const double mean = 1e6 / std::sqrt(static_cast<double>(kCount));
  for (const double share : {0.99, 1.01}) {
    const auto got = static_cast<float>(1e-3 * mean * share);
    EXPECT_EQ(IsAccepted(DType::kF32, &got, want.data(), kCount, {1e-3, 0}, {0, 1}), share < 1);
  }
}

// The mean is of the finite elements, as in the daemon's check.
TEST(IsAccepted, JudgesAsTheDaemonDoes) {
  constexpr double kHuge = 1e300, kNone = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> wants = {
      {0, kHuge, kNone}, {0, 1, -kNone, kNone}, {0, kNone}, {0, 3, 4, std::nan("")}};
  const auto bytes = [](const std::vector<double>& values) {
    return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()),
                               values.size() * sizeof(double));
  };
  for (const std::vector<double>& want : wants) {
    const double rms = worker::RootMeanSquare(compiler::v1::DTYPE_F64, bytes(want));
    for (const double share : {0.99, 1.01}) {
      std::vector<double> got = want;
      got[0] = rms * 1e-7 * share;
      const bool theirs =
          !worker::Compare(compiler::v1::DTYPE_F64, bytes(got), bytes(want), {1e-7, 0}, rms)
               .has_value();
      EXPECT_EQ(theirs, share < 1 || rms == 0);
      EXPECT_EQ(IsAccepted(DType::kF64, got.data(), want.data(), std::ssize(want), {1e-7, 0},
                           {0, std::ssize(want)}),
                theirs)
          << want[1] << " " << share;
    }
  }
}

TEST(IsAccepted, OptionsOnlyWiden) {
  TuneOptions wide;
  wide.rtol = 0.1;
  EXPECT_TRUE(Accepts({1.05f}, {1}, wide));
  TuneOptions narrow;
  narrow.rtol = 0;
  narrow.atol = 0;
  EXPECT_TRUE(Accepts({1.000001f}, {1}, narrow));
}

TEST(IsAccepted, IntegersExactly) {
  const std::vector<int32_t> want = {1, 2, 3}, near = {1, 2, 4};
  EXPECT_TRUE(IsAccepted(DType::kI32, want.data(), want.data(), 3, {}, {0, 3}));
  EXPECT_FALSE(IsAccepted(DType::kI32, near.data(), want.data(), 3, {}, {0, 3}));
  EXPECT_TRUE(IsAccepted(DType::kI32, near.data(), want.data(), 3, {}, {0, 2}));
  EXPECT_TRUE(IsAccepted(DType::kI32, want.data() + 1, want.data(), 3, {}, {1, 2}));
  EXPECT_FALSE(IsAccepted(DType::kI32, near.data() + 2, want.data(), 3, {}, {2, 1}));
  EXPECT_TRUE(IsAccepted(DType::kI32, nullptr, nullptr, 0, {}, {0, 0}));
}

// Whatever the answer is, what FillWithWrong makes is accepted nowhere.
template <typename T>
void ExpectEachWrong(DType dtype, const std::vector<T>& want) {
  const auto count = static_cast<int64_t>(want.size());
  std::vector<T> wrong(want.size());
  FillWithWrong(dtype, want.data(), count, wrong.data());
  const Tolerance tolerance = ToleranceFor(dtype, {});
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_FALSE(IsAccepted(dtype, &wrong[i], &want[i], 1, tolerance, {0, 1})) << i;
  }
}

TEST(FillWithWrong, DiffersEverywhere) {
  ExpectEachWrong<float>(
      DType::kF32, {0.0f, -0.0f, 1, -1, 0.5f, -0.75f, 1e-30f, 3e38f, -3e38f, kInf, -kInf, kNaN});
  ExpectEachWrong<double>(DType::kF64, {0, -0.75, 1e300, std::numeric_limits<double>::infinity()});
  ExpectEachWrong<int32_t>(DType::kI32, {0, 1, -1, 12345});
  ExpectEachWrong<uint8_t>(DType::kU8, {0, 255, 7});
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  ExpectEachWrong<uint16_t>(DType::kF16, all);
  ExpectEachWrong<uint16_t>(DType::kBF16, all);
}

TEST(FillWithWrong, BoolsStayBools) {
  const std::vector<uint8_t> want = {0, 1, 1};
  std::vector<uint8_t> wrong(3);
  FillWithWrong(DType::kBool, want.data(), 3, wrong.data());
  EXPECT_EQ(wrong, (std::vector<uint8_t>{1, 0, 0}));
}

TEST(Number, HalfAndBFloat) {
  EXPECT_EQ(HalfToDouble(0x3c00), 1.0);
  EXPECT_EQ(HalfToDouble(0xc000), -2.0);
  EXPECT_EQ(HalfToDouble(0x0001), std::ldexp(1, -24));
  EXPECT_EQ(HalfToDouble(0x7bff), 65504.0);
  EXPECT_TRUE(std::isinf(HalfToDouble(0x7c00)));
  EXPECT_TRUE(std::isnan(HalfToDouble(0x7e00)));
  EXPECT_EQ(BFloatToDouble(0x3f80), 1.0);
  EXPECT_EQ(BFloatToDouble(0xc0a0), -5.0);
}

TEST(Number, ScalarsByTheirBits) {
  EXPECT_EQ(std::get<int64_t>(ScalarNumber(DType::kI8, 0xff)), -1);
  EXPECT_EQ(std::get<int64_t>(ScalarNumber(DType::kU8, 0xff)), 255);
  EXPECT_EQ(std::get<int64_t>(ScalarNumber(DType::kI32, 0xfffffffe)), -2);
  EXPECT_EQ(std::get<int64_t>(ScalarNumber(DType::kI64, ~uint64_t{0})), -1);
  EXPECT_EQ(std::get<int64_t>(ScalarNumber(DType::kBool, 1)), 1);
  EXPECT_EQ(std::get<double>(ScalarNumber(DType::kF32, 0x3fc00000)), 1.5);
  EXPECT_EQ(std::get<double>(ScalarNumber(DType::kF16, 0x3c00)), 1.0);
}

TEST(IsAccepted, ABeginningIsJudgedAsAPartOfTheWhole) {
  // The mean of the whole makes room for what is small beside it.
  const std::vector<float> want = {0, 0, 1e6f, 1e6f};
  const std::vector<float> near = {0.1f, 0}, far = {100, 0};
  const Tolerance tolerance = ToleranceFor(DType::kF32, {});
  EXPECT_TRUE(IsAccepted(DType::kF32, near.data(), want.data(), 4, tolerance, {0, 2}));
  EXPECT_FALSE(IsAccepted(DType::kF32, near.data(), want.data(), 2, tolerance, {0, 2}));
  EXPECT_FALSE(IsAccepted(DType::kF32, far.data(), want.data(), 4, tolerance, {0, 2}));
}

}  // namespace
}  // namespace phobos
