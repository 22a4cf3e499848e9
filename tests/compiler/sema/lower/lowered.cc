// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/sema/lower/lowered.h"

#include "absl/strings/str_split.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "compiler/sema/kernel.h"
#include "compiler/sema/lower.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/source.h"
#include "tests/compiler/ir/text/round_trip.h"

namespace phobos::compiler::sema {

std::string FileText(const KernelText& text) {
  std::string file = "import phobos.lang as ph\n";
  if (!text.prelude.empty()) Append(&file, text.prelude, "\n");
  Append(&file, "@ph.kernel\n@ph.autotune(BLOCK=[4])\n");
  if (!text.decorators.empty()) Append(&file, text.decorators, "\n");
  Append(&file, "def k(", text.parameters, "):\n");
  for (absl::string_view line : absl::StrSplit(text.body, '\n')) {
    Append(&file, "    ", std::string(line), "\n");
  }
  return file;
}

absl::StatusOr<ir::Function> LowerFile(const std::string& file_text) {
  const Source source("k.py", file_text);
  ASSIGN_OR_RETURN(const ast::Module module, Parse(source));
  ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeModule(source, module));
  if (!analysis.wrong.empty()) return analysis.wrong[0].error;
  const Kernel& kernel = analysis.kernels.back();
  ASSIGN_OR_RETURN(ir::Function function, Lower(source, module, kernel, kernel.VariantSettings(0)));
  RETURN_IF_ERROR(ir::Verify(function));
  RETURN_IF_ERROR(ir::CheckRoundTrip(function));
  return function;
}

absl::StatusOr<ir::Function> LowerKernel(const KernelText& text) {
  return LowerFile(FileText(text));
}

std::string Lowered(const KernelText& text) {
  absl::StatusOr<ir::Function> function = LowerKernel(text);
  if (!function.ok()) return std::string(function.status().message());
  const std::string printed = ir::Print(*function);
  return printed.substr(printed.find('\n') + 1);
}

}  // namespace phobos::compiler::sema
