// SPDX-License-Identifier: Apache-2.0
//
// Compiles a function for a host chip, loads it and launches it on tensors that lie against pages
// that nobody may touch. For tests; one thread.
#ifndef PHOBOS_TESTS_COMPILER_CODEGEN_COMPILED_COMPILED_H_
#define PHOBOS_TESTS_COMPILER_CODEGEN_COMPILED_COMPILED_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/host/host.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/interpreter/number.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::testing {

using interpreter::Argument;
using interpreter::Bits;
using interpreter::ExtentsOf;
using interpreter::FromInteger;
using interpreter::FromReal;
using interpreter::Interpret;
using interpreter::IsNan;
using interpreter::Launch;
using interpreter::ToReal;

// The chip of this machine's level; with $PHOBOS_TEST_EVERY_CHIP, as in the long tier, every level
// that it can run.
std::vector<host::Chip> ChipsUnderTest();

// Where a tensor lies, at a multiple of what its parameter promises: a write of one byte before it
// or so far behind it ends the process on one side, and is found on the other.
enum class Against { kPageAfter, kPageBefore };

// REQUIRES: no promise is more than a page. The arguments after `run`, which is given the slots of
// the ABI, its error if it fails. Internal: bytes beside a tensor have changed.
absl::StatusOr<std::vector<Argument>> RunGuarded(
    const ir::Function& function, const Launch& launch, Against against,
    const std::function<absl::Status(const uint64_t* slots)>& run);

class Compiled {
 public:
  // Verifies, compiles and loads.
  static absl::StatusOr<std::unique_ptr<Compiled>> Make(const ir::Function& function,
                                                        const host::Chip& chip);
  ~Compiled();
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  const host::Artifact& artifact() const { return artifact_; }

  // The arguments after the launch, its blocks run in several calls of the entry. Internal: bytes
  // beside a tensor or behind the scratch memory have changed.
  absl::StatusOr<std::vector<Argument>> Run(const Launch& launch, Against against) const;

  // Blocks 0..blocks-1 of a one-dimensional grid on the calling thread, nothing guarded. Any
  // thread.
  void RunRaw(const uint64_t* slots, int64_t blocks) const;

 private:
  using Entry = void (*)(const uint64_t*, const int64_t*, int64_t, int64_t, void*);
  Compiled(const ir::Function& function, host::Artifact artifact, void* library, Entry entry)
      : function_(function), artifact_(std::move(artifact)), library_(library), entry_(entry) {}

  const ir::Function function_;
  const host::Artifact artifact_;
  void* const library_;
  const Entry entry_;
};

// Runs `function` compiled for each of the host's chips, both placements, as a GPU's threads would
// run it (emulated.h) unless it is too large for that, and interpreted, and checks that it comes
// back from its text; an empty text where all agree (a NaN agrees with any NaN), else where they do
// not. `ulps`, by parameter: how far from the exact result floats of it may be, in units in the
// last place; none are 0.
std::string Differences(const ir::Function& function, const Launch& launch,
                        const std::vector<double>& ulps = {},
                        const std::vector<host::Chip>& chips = ChipsUnderTest());

// The same against `want`, with what is interpreted.
std::string DifferencesFrom(const std::vector<Argument>& want, const ir::Function& function,
                            const Launch& launch, const std::vector<double>& ulps = {},
                            const std::vector<host::Chip>& chips = ChipsUnderTest());

}  // namespace phobos::compiler::testing

#endif  // PHOBOS_TESTS_COMPILER_CODEGEN_COMPILED_COMPILED_H_
