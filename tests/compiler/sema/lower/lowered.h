// SPDX-License-Identifier: Apache-2.0
//
// From a kernel's text to its IR, for tests. Pure, any thread.
#ifndef PHOBOS_TESTS_COMPILER_SEMA_LOWER_LOWERED_H_
#define PHOBOS_TESTS_COMPILER_SEMA_LOWER_LOWERED_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::sema {

// A kernel `k` with BLOCK = 4 and these parameters and body (one statement a line, as it is
// indented in the kernel); `prelude` stands at module level before it, `decorators` under
// @ph.kernel.
struct KernelText {
  std::string parameters = "x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]";
  std::string body;
  std::string prelude;
  std::string decorators;
};

std::string FileText(const KernelText& text);

// The last kernel of the file at variant 0, or the error of whichever stage refused it. What is
// returned has passed ir::Verify and comes back from its text.
absl::StatusOr<ir::Function> LowerFile(const std::string& file_text);
absl::StatusOr<ir::Function> LowerKernel(const KernelText& text);

// The printed IR without the header line, or the error's text.
std::string Lowered(const KernelText& text);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_TESTS_COMPILER_SEMA_LOWER_LOWERED_H_
