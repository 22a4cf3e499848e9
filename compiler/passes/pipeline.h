// SPDX-License-Identifier: Apache-2.0
//
// The passes over the tile IR, in their order: what stands between Lower and every back end. Pure,
// any thread.
#ifndef PHOBOS_COMPILER_PASSES_PIPELINE_H_
#define PHOBOS_COMPILER_PASSES_PIPELINE_H_

#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::passes {

struct Pass {
  std::string_view name;  // also the name of the stage behind it
  ir::Function (*run)(ir::Function function);
};

// All of them, in the order in which they run.
std::span<const Pass> Passes();
// The same for chips whose threads hold tiles in registers, under the same names.
std::span<const Pass> PassesForThreads();

// The stage before the first pass: what Lower made.
inline constexpr std::string_view kLowered = "lower";

// The stage that branches off kLowered: the race-recording form (record.h).
inline constexpr std::string_view kRecorded = "record";

// Those of `passes` up to `stage`: none for kLowered, the one that makes it for kRecorded, else
// those up to that pass, it included.
// InvalidArgument: no such stage; the message lists them.
absl::StatusOr<std::span<const Pass>> PassesUpTo(std::string_view stage,
                                                 std::span<const Pass> passes = Passes());

// ir::Verify of what `stage` made. Internal names the stage.
absl::Status VerifyAfter(std::string_view stage, const ir::Function& function);

// What a back end compiles; what it may assume is said at each pass. The function is verified after
// each pass. REQUIRES: it passes ir::Verify. Internal: as VerifyAfter.
absl::StatusOr<ir::Function> Run(ir::Function function, std::span<const Pass> passes = Passes());

}  // namespace phobos::compiler::passes

#endif  // PHOBOS_COMPILER_PASSES_PIPELINE_H_
