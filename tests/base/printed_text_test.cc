// SPDX-License-Identifier: Apache-2.0
#include "base/printed_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace phobos {
namespace {

template <typename Number>
std::string Text(const char* format, const std::vector<Number>& elements) {
  const void* values[] = {elements.data()};
  return PrintedText(format, values);
}

TEST(PrintedText, TextAlone) {
  EXPECT_EQ(PrintedText("", nullptr), "");
  EXPECT_EQ(PrintedText("a {{b} %s\n", nullptr), "a {b} %s\n");
}

TEST(PrintedText, SeveralValues) {
  const float x = 1.5F;
  const int64_t i = -7;
  const uint8_t flag = 1;
  const void* values[] = {&x, &i, &flag};
  EXPECT_EQ(PrintedText("x = {f32}, i = {i64}{bool}", values), "x = 1.5, i = -7True");
}

TEST(PrintedText, FloatsHaveTheFewestDigits) {
  EXPECT_EQ(Text<float>("{f32[4]}", {0.1F, 100.0F, -0.0F, 3.0F}), "[  0.1 100.0  -0.0   3.0]");
  EXPECT_EQ(Text<float>("{f32[3]}", {1e-5F, 1e20F, 123456792.0F}),
            "[      1e-05       1e+20 123456792.0]");
  EXPECT_EQ(Text<double>("{f64[4]}", {0.1, INFINITY, -INFINITY, NAN}), "[ 0.1  inf -inf  nan]");
}

TEST(PrintedText, HalvesHaveTheFewestDigitsOfTheirType) {
  // 0.1, 65504, the smallest subnormal, minus infinity, 1, NaN.
  EXPECT_EQ(Text<uint16_t>("{f16[6]}", {0x2e66, 0x7bff, 1, 0xfc00, 0x3c00, 0x7e00}),
            "[    0.1 65500.0   6e-08    -inf     1.0     nan]");
  EXPECT_EQ(Text<uint16_t>("{bf16[3]}", {0x3dcd, 0xbf80, 0x42c8}), "[  0.1  -1.0 100.0]");
}

TEST(PrintedText, IntegersOfEveryWidth) {
  EXPECT_EQ(Text<int8_t>("{i8[2]}", {-128, 127}), "[-128  127]");
  EXPECT_EQ(Text<uint16_t>("{u16}", {65535}), "65535");
  EXPECT_EQ(Text<int32_t>("{i32}", {INT32_MIN}), "-2147483648");
  EXPECT_EQ(Text<uint64_t>("{u64}", {UINT64_MAX}), "18446744073709551615");
}

TEST(PrintedText, LaterLinesOfAnArrayAreIndented) {
  EXPECT_EQ(Text<int32_t>("first\nt: {i32[2, 2]}.", {1, 2, 30, 4}),
            "first\nt: [[ 1  2]\n    [30  4]].");
  EXPECT_EQ(Text<uint8_t>("{bool[2, 1, 2]}", {1, 0, 0, 0}),
            "[[[ True False]]\n\n [[False False]]]");
}

TEST(PrintedText, LongRowsAreFolded) {
  std::vector<int64_t> numbers(20);
  std::iota(numbers.begin(), numbers.end(), 1000000);
  const std::string text = Text("{i64[20]}", numbers);
  EXPECT_EQ(text.substr(0, 90),
            "[1000000 1000001 1000002 1000003 1000004 1000005 1000006 1000007 1000008\n"
            " 1000009 1000010 ");
}

TEST(PrintedText, OfManyElementsTheEdgesAreShown) {
  std::vector<int32_t> numbers(40 * 30);
  std::iota(numbers.begin(), numbers.end(), 0);
  EXPECT_EQ(Text("{i32[1200]}", numbers), "[   0    1    2 ... 1197 1198 1199]");
  EXPECT_EQ(Text("{i32[40, 30]}", numbers),
            "[[   0    1    2 ...   27   28   29]\n"
            " [  30   31   32 ...   57   58   59]\n"
            " [  60   61   62 ...   87   88   89]\n"
            " ...\n"
            " [1110 1111 1112 ... 1137 1138 1139]\n"
            " [1140 1141 1142 ... 1167 1168 1169]\n"
            " [1170 1171 1172 ... 1197 1198 1199]]");
}

}  // namespace
}  // namespace phobos
