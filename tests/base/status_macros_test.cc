// SPDX-License-Identifier: Apache-2.0
#include "base/status_macros.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/status_matchers.h"

namespace phobos {
namespace {

using ::phobos::testing::IsOkAndHolds;
using ::phobos::testing::StatusIs;

absl::StatusOr<std::unique_ptr<int>> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return std::make_unique<int>(value / 2);
}

absl::StatusOr<int> Quarter(int value) {
  ASSIGN_OR_RETURN(std::unique_ptr<int> half, Half(value));
  ASSIGN_OR_RETURN(half, Half(*half));  // also into what is there already
  return *half;
}

absl::Status Count(int value, int& steps) {
  RETURN_IF_ERROR(Quarter(value).status());
  ++steps;
  return absl::OkStatus();
}

TEST(StatusMacros, HandValuesOutAndErrorsUp) {
  EXPECT_THAT(Quarter(8), IsOkAndHolds(2));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  int steps = 0;
  EXPECT_OK(Count(8, steps));
  EXPECT_THAT(Count(7, steps), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  EXPECT_EQ(steps, 1);
}

TEST(StatusMacros, AreOneStatementEach) {
  const auto f = [](bool wanted) -> absl::Status {
    if (wanted)
      RETURN_IF_ERROR(absl::NotFoundError("wanted"));
    else
      RETURN_IF_ERROR(absl::OkStatus());
    return absl::OkStatus();
  };
  EXPECT_THAT(f(true), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_OK(f(false));
}

}  // namespace
}  // namespace phobos
