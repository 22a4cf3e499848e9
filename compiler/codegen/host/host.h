// SPDX-License-Identifier: Apache-2.0
//
// Tile IR to a shared object for the host chip, by LLVM and lld, both behind this door: no other
// room sees their types. Any thread; compilations run in parallel (each with its own LLVM context),
// linking is serialized inside.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_HOST_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_HOST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::host {

// A resolved host chip.
struct Chip {
  std::string name;                   // "x86-64-v3", "x86-64-v4", or a CPU name such as "znver5"
  std::vector<std::string> features;  // LLVM names that the artifact needs, sorted
  int vector_bytes = 32;              // width of one vector: 32 or 64
};

// `name` as given to --chip; "native" is this machine's x86-64 level ("x86-64-v4" where it has
// AVX-512 F, BW, CD, DQ, VL). InvalidArgument lists the names there are, and says when the machine
// is below x86-64-v3.
absl::StatusOr<Chip> ResolveChip(std::string_view name);

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
