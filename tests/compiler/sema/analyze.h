// SPDX-License-Identifier: Apache-2.0
//
// A file's kernels together with what they point into. For tests only.
#ifndef PHOBOS_TESTS_COMPILER_SEMA_ANALYZE_H_
#define PHOBOS_TESTS_COMPILER_SEMA_ANALYZE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/sema/kernel.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler::sema {

struct Analyzed {
  std::unique_ptr<Source> source;
  std::unique_ptr<ast::Module> module;
  std::vector<Kernel> kernels;
};

// Parses and analyzes a file called k.py.
inline absl::StatusOr<Analyzed> Analyze(std::string text) {
  Analyzed analyzed;
  analyzed.source = std::make_unique<Source>("k.py", std::move(text));
  absl::StatusOr<ast::Module> module = Parse(*analyzed.source);
  if (!module.ok()) return module.status();
  analyzed.module = std::make_unique<ast::Module>(*std::move(module));
  absl::StatusOr<Analysis> analysis = AnalyzeModule(*analyzed.source, *analyzed.module);
  if (!analysis.ok()) return analysis.status();
  if (!analysis->wrong.empty()) return analysis->wrong[0].error;
  analyzed.kernels = std::move(analysis->kernels);
  return analyzed;
}

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_TESTS_COMPILER_SEMA_ANALYZE_H_
