// SPDX-License-Identifier: Apache-2.0
#include "tests/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"

namespace phobos::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<std::unique_ptr<int>> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return std::make_unique<int>(value / 2);
}

absl::StatusOr<int> Quarter(int value) {
  ASSIGN_OR_RETURN(std::unique_ptr<int> half, Half(value));
  ASSIGN_OR_RETURN(std::unique_ptr<int> quarter, Half(*half));
  return *quarter;
}

absl::Status DividesByFour(int value) {
  RETURN_IF_ERROR(Quarter(value).status());
  return absl::OkStatus();
}

TEST(StatusMatchers, Statuses) {
  EXPECT_OK(DividesByFour(8));
  EXPECT_THAT(DividesByFour(6), Not(IsOk()));
  EXPECT_THAT(DividesByFour(6), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(DividesByFour(6), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("odd")));
  EXPECT_THAT(DividesByFour(6),
              Not(StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("even"))));
  EXPECT_THAT(DividesByFour(8), Not(StatusIs(absl::StatusCode::kNotFound)));
}

TEST(StatusMatchers, Values) {
  EXPECT_THAT(Quarter(8), IsOkAndHolds(2));
  EXPECT_THAT(Quarter(8), Not(IsOkAndHolds(3)));
  EXPECT_THAT(Quarter(6), Not(IsOkAndHolds(2)));
  EXPECT_THAT(Quarter(7), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<int> half, Half(4));  // moves, never copies
  EXPECT_EQ(*half, 2);
}

}  // namespace
}  // namespace phobos::testing
