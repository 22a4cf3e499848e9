// SPDX-License-Identifier: Apache-2.0
//
// Two macros that hand an error up: they return the Status of the enclosing function (or lambda),
// unchanged. For our own .cc files only; a public header must not include this. Any thread.
#ifndef PHOBOS_BASE_STATUS_MACROS_H_
#define PHOBOS_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// RETURN_IF_ERROR(DoIt());  returns when the Status is not OK.
#define RETURN_IF_ERROR(expression)                           \
  do {                                                        \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

// ASSIGN_OR_RETURN(auto value, MakeIt());  returns the StatusOr's error, else moves its value out.
#define ASSIGN_OR_RETURN(declaration, expression) \
  PHOBOS_ASSIGN_OR_RETURN_(PHOBOS_CONCAT_(status_or_, __LINE__), declaration, expression)

#define PHOBOS_ASSIGN_OR_RETURN_(temporary, declaration, expression) \
  auto temporary = (expression);                                     \
  if (!temporary.ok()) return std::move(temporary).status();         \
  declaration = *std::move(temporary)

#define PHOBOS_CONCAT_(a, b) PHOBOS_CONCAT_EXPANDED_(a, b)
#define PHOBOS_CONCAT_EXPANDED_(a, b) a##b

#endif  // PHOBOS_BASE_STATUS_MACROS_H_
