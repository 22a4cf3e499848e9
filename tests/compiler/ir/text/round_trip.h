// SPDX-License-Identifier: Apache-2.0
//
// Whether a function comes back from its text. For tests; pure, any thread.
#ifndef PHOBOS_TESTS_COMPILER_IR_TEXT_ROUND_TRIP_H_
#define PHOBOS_TESTS_COMPILER_IR_TEXT_ROUND_TRIP_H_

#include "absl/status/status.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::ir {

// OK where the printed function parses to the same one and prints to the same text; else Internal
// with both texts.
absl::Status CheckRoundTrip(const Function& function);

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_TESTS_COMPILER_IR_TEXT_ROUND_TRIP_H_
