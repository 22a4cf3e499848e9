// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/fake/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/status_matchers.h"

namespace phobos::device {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Script, EveryStatement) {
  ASSERT_OK_AND_ASSIGN(const FakeScript script, ParseFakeScript(R"(
      # a comment
      resolution_ns 10
      memory_bytes 5000   # and another
      warm_ns 40
      ramp_ms 500
      disturbed 3 -1
      variant 2 op accumulate
      variant 2 times 100 90
      variant 2 poke 1 -4
      variant 2 poke 0 256
      variant 2 crash 15 once /tmp/mark
      variant 3 hang 1
      variant 3 slow 2 1500
      variant 4 no_memory
  )"));
  EXPECT_EQ(script.resolution_ns, 10);
  EXPECT_EQ(script.memory_bytes, 5000);
  EXPECT_EQ(script.warm_ns, 40);
  EXPECT_EQ(script.ramp_ms, 500);
  EXPECT_EQ(script.disturbed_from, 3);
  EXPECT_EQ(script.disturbed_to, -1);
  const FakeVariant& two = script.variants.at(2);
  EXPECT_EQ(two.operation, FakeOperation::kAccumulate);
  EXPECT_THAT(two.times_ns, ElementsAre(100, 90));
  ASSERT_EQ(two.pokes.size(), 2u);
  EXPECT_EQ(two.pokes[0].slot, 1);
  EXPECT_EQ(two.pokes[0].offset, -4);
  EXPECT_EQ(two.crash.launch, 15);
  EXPECT_EQ(two.crash.once_file, "/tmp/mark");
  EXPECT_EQ(script.variants.at(3).hang.launch, 1);
  EXPECT_EQ(script.variants.at(3).slow_launch, 2);
  EXPECT_EQ(script.variants.at(3).slow_ms, 1500);
  EXPECT_TRUE(script.variants.at(4).no_memory);
}

TEST(Script, WrongLinesAreShown) {
  for (const char* line : {"variant", "variant x op add", "variant 1 op fly", "variant 1 times",
                           "variant 1 times a", "disturbed 1", "resolution_ns", "speed 3",
                           "variant 1 crash 1 twice f", "variant 1 poke 1", "warm_ns 1 2"}) {
    EXPECT_THAT(ParseFakeScript(line),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(line)));
  }
}

}  // namespace
}  // namespace phobos::device
