// SPDX-License-Identifier: Apache-2.0
//
// A kind of host processor: what code for it may use, and what it is best made for. A value; any
// thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_CHIP_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_CHIP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace phobos::compiler::host {

// A resolved host chip.
struct Chip {
  std::string name;                   // "x86-64-v3", "x86-64-v4", or a CPU name such as "znver5"
  std::vector<std::string> features;  // LLVM names that the artifact needs, sorted
  int64_t vector_bytes = 32;          // width of one vector: 32 or 64

  // Tensors that are only written, of at least so many bytes, are stored past the caches: the
  // caches would not keep them beside what is read, and a plain store reads each line before it is
  // overwritten. A smaller one stays in the caches for whoever reads it next.
  int64_t streamed_bytes = int64_t{8} << 20;
  // Of those, rows of at least so many bytes wherever they begin; a shorter one has too few whole
  // lines, unless it begins with one.
  int64_t streamed_row_bytes = 1024;
};

// `name` as given to --chip; "native" is this machine's x86-64 level ("x86-64-v4" where it has
// AVX-512 F, BW, CD, DQ, VL). InvalidArgument lists the names there are, and says when the machine
// is below x86-64-v3.
absl::StatusOr<Chip> ResolveChip(std::string_view name);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_CHIP_H_
