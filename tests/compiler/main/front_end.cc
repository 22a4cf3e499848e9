// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/main/front_end.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/verifier.h"
#include "compiler/sema/kernel.h"
#include "compiler/sema/lower.h"
#include "compiler/syntax/lexer/utf8.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler {

absl::Status RunFrontEnd(const std::string& text) {
  const Source source("k.py", text);
  const absl::StatusOr<ast::Module> module = Parse(source);
  if (!module.ok()) return module.status();
  const absl::StatusOr<sema::Analysis> analysis = sema::AnalyzeModule(source, *module);
  if (!analysis.ok()) return analysis.status();
  if (!analysis->wrong.empty()) return analysis->wrong[0].error;
  for (const sema::Kernel& kernel : analysis->kernels) {
    const absl::StatusOr<ir::Function> function =
        sema::Lower(source, *module, kernel, kernel.VariantSettings(0));
    if (!function.ok()) return function.status();
    if (const absl::Status status = ir::Verify(*function); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::string FlawOf(const absl::Status& error, const std::string& text) {
  if (error.code() != absl::StatusCode::kInvalidArgument) return "its code is another";
  const std::string message(error.message());
  if (FirstInvalidUtf8(message) != std::string::npos) return "it is not valid UTF-8";
  for (const char c : message) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
      return "it holds a control character";
  }
  const std::vector<std::string> lines = absl::StrSplit(message, '\n');
  if (lines.size() < 3) return "it has less than three lines";
  const std::vector<std::string> head = absl::StrSplit(lines[0], absl::MaxSplits(':', 4));
  int line = 0;
  int column = 0;
  if (head.size() < 5 || head[0] != "k.py" || !absl::SimpleAtoi(head[1], &line) ||
      !absl::SimpleAtoi(head[2], &column)) {
    return "it does not begin with file:line:column";
  }
  if (head[3] != " error" || head[4].size() < 3) return "it does not say what is wrong";
  const int line_count = 1 + static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
                           return c == '\n' || c == '\r';
                         }));
  if (line < 1 || line > line_count || column < 1) return "its place does not exist";
  if (lines[1].substr(0, 4) != "    " || lines[2].substr(0, 4) != "    ")
    return "it does not show the line";
  if (lines[2].find('^') == std::string::npos) return "it has no caret";
  if (lines[2].find_first_not_of(" \t^~") != std::string::npos) return "its marks are not marks";
  const bool has_help =
      lines.size() > 3 && lines[3].substr(0, 6) == "help: " && lines[3].size() > 8;
  return has_help ? "" : "it has no help";
}

}  // namespace phobos::compiler
