// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/ir/text/round_trip.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/equality.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/text/parser.h"

namespace phobos::compiler::ir {

absl::Status CheckRoundTrip(const Function& function) {
  const std::string text = Print(function);
  const absl::StatusOr<Function> again = Parse(text);
  if (!again.ok()) {
    return absl::InternalError(
        absl::StrCat("printed IR does not parse: ", again.status().message(), "\n", text));
  }
  const std::string text_again = Print(*again);
  if (text == text_again && AreSame(function, *again)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("printed IR parses to another function:\n", text, "\nis read as\n", text_again));
}

}  // namespace phobos::compiler::ir
