// SPDX-License-Identifier: Apache-2.0
//
// What people read: a kernel's description as a page, a manifest as a table. Pure, any thread.
#ifndef PHOBOS_COMPILER_MAIN_REPORT_H_
#define PHOBOS_COMPILER_MAIN_REPORT_H_

#include <string>
#include <string_view>

#include "compiler/sema/kernel.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos::compiler {

// REQUIRES: `description` is of `kernel`.
std::string DescriptionPage(std::string_view file_name, const sema::Kernel& kernel,
                            const v1::KernelDescription& description);

// One line a variant, then each reason in full, once.
std::string ManifestTable(const v1::Manifest& manifest);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_MAIN_REPORT_H_
