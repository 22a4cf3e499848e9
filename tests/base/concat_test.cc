// SPDX-License-Identifier: Apache-2.0
#include "base/concat.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "absl/strings/string_view.h"

namespace phobos {
namespace {

TEST(Concat, TakesEveryKindOfText) {
  const std::string_view standard = std::string_view("standard text").substr(0, 8);
  const absl::string_view abseil = "abseil";
  EXPECT_EQ(Concat("literal ", std::string("string "), standard, " ", abseil, " ", 7, " ", -1.5),
            "literal string standard abseil 7 -1.5");
  EXPECT_EQ(Concat(std::string_view(), ""), "");
}

TEST(Append, AddsAtTheEnd) {
  std::string text = "a";
  Append(&text, std::string_view("b"), 3);
  EXPECT_EQ(text, "ab3");
}

}  // namespace
}  // namespace phobos
