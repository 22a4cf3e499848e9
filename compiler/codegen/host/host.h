// SPDX-License-Identifier: Apache-2.0
//
// Tile IR to a shared object for the host chip, by LLVM and lld, both behind this door: no other
// room sees their types. Any thread; compilations run in parallel (each with its own LLVM context),
// linking is serialized inside.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_HOST_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_HOST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/codegen/host/chip.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::host {

struct Artifact {
  std::string shared_object;  // the file's bytes
  std::string entry;  // symbol; the ABI is at Artifact in proto/phobos/compiler/v1/manifest.proto
  int64_t scratch_bytes = 0;
};

// Runs the passes that it needs itself; that they ran before does no harm. Errors: Unimplemented
// for an op that this back end does not lower; Internal for a fault of the compiler, LLVM or lld.
// REQUIRES: function passes ir::Verify.
absl::StatusOr<Artifact> Compile(const ir::Function& function, const Chip& chip);

// What of this back end changes the code it makes: LLVM's version and a number of ours.
std::string Fingerprint();

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_HOST_H_
