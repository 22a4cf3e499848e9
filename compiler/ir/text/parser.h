// SPDX-License-Identifier: Apache-2.0
//
// Reads the text that printer.h writes: for tests, and for kernels that somebody wrote down.
// Nothing that compiles a user's file reads this form. Pure, any thread.
#ifndef PHOBOS_COMPILER_IR_TEXT_PARSER_H_
#define PHOBOS_COMPILER_IR_TEXT_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::ir {

// The function that `text` shows, for which AreSame holds with the one that was printed. Lines that
// begin with # are skipped. The place of an op is its place in `text`. The function need not pass
// Verify. InvalidArgument: not such a text, with line and column; or one that is over a limit on
// the numbers of values, the size of tiles or the nesting.
absl::StatusOr<Function> Parse(std::string_view text);

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_TEXT_PARSER_H_
