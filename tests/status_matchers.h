// SPDX-License-Identifier: Apache-2.0
//
// GoogleTest matchers for Status and StatusOr, both Abseil's and the client's own
// (client/launch/status.h): IsOk(), IsOkAndHolds(value), StatusIs(code[, message]), and the
// assertions EXPECT_OK, ASSERT_OK, ASSERT_OK_AND_ASSIGN. A failure shows code and message. For
// tests only; any thread.
#ifndef PHOBOS_TESTS_STATUS_MATCHERS_H_
#define PHOBOS_TESTS_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <utility>

namespace phobos::testing {

// The status in a StatusOr, or a Status itself.
template <typename T>
const auto& StatusOf(const T& value) {
  if constexpr (requires { value.status(); }) {
    return value.status();
  } else {
    return value;
  }
}

template <typename T>
std::string Described(const T& value) {
  const auto& status = StatusOf(value);
  if (status.ok()) return "which is OK";
  return "which has code " + std::to_string(static_cast<int>(status.code())) + ": " +
         std::string(status.message());
}

MATCHER(IsOk, negation ? "is an error" : "is OK") {
  *result_listener << Described(arg);
  return arg.ok();
}

MATCHER_P(IsOkAndHolds, inner, "is OK and holds the value") {
  if (!arg.ok()) {
    *result_listener << Described(arg);
    return false;
  }
  return ::testing::ExplainMatchResult(inner, *arg, result_listener);
}

// StatusIs(absl::StatusCode::kNotFound), StatusIs(Code::kNotFound).
MATCHER_P(StatusIs, code, "has code " + std::to_string(static_cast<int>(code))) {
  *result_listener << Described(arg);
  return StatusOf(arg).code() == code;
}

// The same with a matcher for the message: StatusIs(code, HasSubstr("disk full")).
MATCHER_P2(StatusIs, code, message,
           "has code " + std::to_string(static_cast<int>(code)) + " and a fitting message") {
  *result_listener << Described(arg);
  return StatusOf(arg).code() == code &&
         ::testing::Matches(message)(std::string(StatusOf(arg).message()));
}

}  // namespace phobos::testing

#define EXPECT_OK(expression) EXPECT_THAT(expression, ::phobos::testing::IsOk())
#define ASSERT_OK(expression) ASSERT_THAT(expression, ::phobos::testing::IsOk())

// ASSERT_OK_AND_ASSIGN(auto value, MakeIt());
#define ASSERT_OK_AND_ASSIGN(declaration, expression) \
  PHOBOS_ASSERT_OK_AND_ASSIGN_(PHOBOS_TEST_CONCAT_(status_or_, __LINE__), declaration, expression)

#define PHOBOS_ASSERT_OK_AND_ASSIGN_(temporary, declaration, expression) \
  auto temporary = (expression);                                         \
  ASSERT_OK(temporary);                                                  \
  declaration = *std::move(temporary)

#define PHOBOS_TEST_CONCAT_(a, b) PHOBOS_TEST_CONCAT_EXPANDED_(a, b)
#define PHOBOS_TEST_CONCAT_EXPANDED_(a, b) a##b

#endif  // PHOBOS_TESTS_STATUS_MATCHERS_H_
