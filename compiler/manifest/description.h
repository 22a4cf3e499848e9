// SPDX-License-Identifier: Apache-2.0
//
// A kernel's declaration in the form of the contract (proto/phobos/compiler/v1/manifest.proto).
// Pure, any thread.
#ifndef PHOBOS_COMPILER_MANIFEST_DESCRIPTION_H_
#define PHOBOS_COMPILER_MANIFEST_DESCRIPTION_H_

#include <string>
#include <vector>

#include "compiler/sema/kernel.h"
#include "compiler/syntax/source.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos::compiler {

// All that is known of `kernel` without compiling it. REQUIRES: kernel came from AnalyzeModule of
// `source`.
v1::KernelDescription Describe(const Source& source, const sema::Kernel& kernel);

// One point of the space in the contract's form, without an index.
std::vector<v1::Constant> ToProto(const sema::Settings& settings);

// The slots of the host ABI: each parameter by its name, then each extent as "extent:NAME".
std::vector<std::string> Slots(const sema::Kernel& kernel);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_MANIFEST_DESCRIPTION_H_
