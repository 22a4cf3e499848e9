// SPDX-License-Identifier: Apache-2.0
//
// The middle and the back end for many variants at once: Lower, Verify, the race check, the passes,
// code. Starts and ends the only threads of the compiler.
#ifndef PHOBOS_COMPILER_MAIN_COMPILE_H_
#define PHOBOS_COMPILER_MAIN_COMPILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/main/backend.h"
#include "compiler/sema/kernel.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/source.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos::compiler {

// What is compiled, and how. All that it refers to must outlive it.
struct Compilation {
  const Source& source;
  const ast::Module& module;
  const sema::Kernel& kernel;
  Chip chip;
  bool check_races = false;
  std::string out;  // folder that exists; empty: artifacts are thrown away
  int jobs = 1;
  // The clock that a variant's compile_ns is read from: the calling thread's CPU time. No outcome
  // depends on it, and nothing below main/ reads a clock.
  std::function<int64_t()> thread_cpu_ns;
};

// Told on the calling thread, ten times a second and at the end, how many variants are done.
using Watch = std::function<void(size_t done)>;

// The outcome of each variant of `indexes`, in that order. A variant that fails says so in its
// outcome. Errors, of no single variant: Unavailable where the machine lacks something, such as
// room on a disk; Aborted where the back end broke off, and this process can compile no more. Then
// the rest is not compiled.
absl::StatusOr<std::vector<v1::Variant>> CompileVariants(const Compilation& compilation,
                                                         const std::vector<int64_t>& indexes,
                                                         const Watch& watch);

// The tile IR of one variant as text, as it is for the chip after a stage of passes/pipeline.h. It
// is checked for races after the first one, and the back end gets it after the last of the
// pipeline. Errors: as Lower, PassesUpTo and Run.
absl::StatusOr<std::string> PrintIr(const Compilation& compilation, int64_t index,
                                    std::string_view stage);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_MAIN_COMPILE_H_
