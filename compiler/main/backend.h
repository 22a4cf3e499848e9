// SPDX-License-Identifier: Apache-2.0
//
// The chips that there are, of either kind, and a variant's code for one of them. Any thread.
#ifndef PHOBOS_COMPILER_MAIN_BACKEND_H_
#define PHOBOS_COMPILER_MAIN_BACKEND_H_

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "compiler/codegen/host/host.h"
#include "compiler/codegen/nvptx/nvptx.h"
#include "compiler/ir/ir.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos::compiler {

using Chip = std::variant<host::Chip, nvptx::Chip>;

// `name` as given to --chip. InvalidArgument says which there are.
absl::StatusOr<Chip> ResolveChip(const std::string& name);

// The resolved name.
const std::string& NameOf(const Chip& chip);

struct Code {
  std::string bytes;
  v1::Artifact artifact;  // of the bytes; without a file name
};

// Errors: as Compile of the chip's back end. REQUIRES: function passes ir::Verify.
absl::StatusOr<Code> GenerateCode(const ir::Function& function, const Chip& chip);

// What of the back ends changes the code they make.
std::string BackendFingerprint();

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_MAIN_BACKEND_H_
