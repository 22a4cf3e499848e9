// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>

namespace phobos {
namespace {

TEST(FloatText, ReadsBackAsTheSameNumber) {
  EXPECT_EQ(FloatText(1), "1.0");
  EXPECT_EQ(FloatText(0.1), "0.1");
  EXPECT_EQ(FloatText(-2.5), "-2.5");
  EXPECT_EQ(FloatText(1e300), "1e+300");
  EXPECT_EQ(FloatText(0), "0.0");
  for (const double value : {1.0 / 3, 2.0 / 3, 1e-310, 123456789.123456789, 5e-324}) {
    EXPECT_EQ(std::strtod(FloatText(value).c_str(), nullptr), value);
  }
  EXPECT_EQ(FloatText(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(FloatText(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(FloatText(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(SettingsText, ListsNamesAndValues) {
  EXPECT_EQ(SettingsText({}), "no constants");
  EXPECT_EQ(
      SettingsText({{"BLOCK", int64_t{256}}, {"P", std::string("tf32")}, {"F", true}, {"S", 0.5}}),
      "BLOCK=256, P=\"tf32\", F=True, S=0.5");
}

TEST(IsUtf8, AcceptsTextAndNothingElse) {
  for (const char* text : {"", "plain", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x99\x82"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  for (const char* text : {"\xff", "\xc3", "\xc3(", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                           "\xe2\x82", "\x80"}) {
    EXPECT_FALSE(IsUtf8(text));
    EXPECT_TRUE(IsUtf8(Utf8Of(text)));
  }
}

TEST(Utf8Of, EscapesWhatIsNone) {
  EXPECT_EQ(Utf8Of("pl\xc3\xbc"), "pl\xc3\xbc");
  EXPECT_EQ(Utf8Of("a\xff\xc3(\xe2\x82"), "a\\xff\\xc3(\\xe2\\x82");
}

}  // namespace
}  // namespace phobos
