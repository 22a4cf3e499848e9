// SPDX-License-Identifier: Apache-2.0
//
// Which kernel of a file and which variants of it the command line means. Pure, any thread.
#ifndef PHOBOS_COMPILER_MAIN_SELECTION_H_
#define PHOBOS_COMPILER_MAIN_SELECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/main/options.h"
#include "compiler/sema/kernel.h"

namespace phobos::compiler {

// What is wrong with the kernel called options.kernel; without that name, all that is wrong in the
// file, one message after the other, with their number below when there are several.
absl::Status ErrorsOf(const sema::Analysis& analysis, const Options& options);

// The kernel called options.kernel, or the only one. REQUIRES: ErrorsOf found nothing. Errors:
// InvalidArgument that names those there are.
absl::StatusOr<const sema::Kernel*> SelectKernel(const sema::Analysis& analysis,
                                                 const Options& options);

// Indexes of variants in increasing order, at least one. Errors: InvalidArgument that says what
// there is.
absl::StatusOr<std::vector<int64_t>> SelectVariants(const sema::Kernel& kernel,
                                                    const Options& options);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_MAIN_SELECTION_H_
