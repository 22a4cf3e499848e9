// SPDX-License-Identifier: Apache-2.0
//
// Tile IR to PTX for NVIDIA chips, by LLVM, behind this door: no other room sees its types. Any
// thread; compilations run in parallel, each with its own LLVM context.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_NVPTX_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_NVPTX_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

// A resolved chip, and what a block may use on it.
struct Chip {
  std::string name;  // "sm_75", "sm_80", "sm_86", "sm_89" or "sm_90"
  std::string ptx;   // LLVM's name of the PTX version that is written
  int64_t threads_a_multiprocessor = 0;
  int64_t blocks_a_multiprocessor = 0;
  int number = 0;
  int64_t shared_bytes_a_block = 0;  // at most, given at the launch
};

// `name` as given to --chip. A card without code of its own runs that of the last chip before it:
// "sm_87" gives sm_86, "sm_100" sm_90. InvalidArgument lists the names there are.
absl::StatusOr<Chip> ResolveChip(std::string_view name);

struct Artifact {
  std::string ptx;    // text
  std::string entry;  // symbol; the ABI is at Artifact in proto/phobos/compiler/v1/manifest.proto
  int32_t threads = 0;
  int64_t shared_memory_bytes = 0;          // of a block, in all
  int64_t dynamic_shared_memory_bytes = 0;  // of these, what the launch gives
};

// Runs the passes that it needs itself; that they ran before does no harm. Errors:
// ResourceExhausted where the chip cannot run it, with numbers; Internal for a fault of the
// compiler or LLVM. REQUIRES: function passes ir::Verify.
absl::StatusOr<Artifact> Compile(const ir::Function& function, const Chip& chip);

// What of this back end changes the code it makes: a number of ours (LLVM's version is the host
// back end's).
std::string Fingerprint();

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_NVPTX_H_
