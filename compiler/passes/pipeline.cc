// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/pipeline.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/record.h"
#include "compiler/passes/stage.h"

namespace phobos::compiler::passes {
namespace {

constexpr Pass kPasses[] = {
    // The last one: it decides which tiles the back end holds, from the ops as they finally are.
    {"stage", Stage},
};

constexpr Pass kPassesForThreads[] = {{"stage", StageInRegisters}};

// What comes of it is a function to be compiled as any other.
constexpr Pass kRecordingPass[] = {
    // NOLINTNEXTLINE(performance-unnecessary-value-param): what a pass is given is its own.
    {kRecorded, [](ir::Function function) { return Record(function).function; }}};

}  // namespace

std::span<const Pass> Passes() { return kPasses; }

std::span<const Pass> PassesForThreads() { return kPassesForThreads; }

absl::StatusOr<std::span<const Pass>> PassesUpTo(std::string_view stage,
                                                 std::span<const Pass> passes) {
  if (stage == kLowered) return passes.first(0);
  if (stage == kRecorded) return kRecordingPass;
  std::string names(kLowered);
  for (size_t i = 0; i < passes.size(); ++i) {
    if (passes[i].name == stage) return passes.first(i + 1);
    absl::StrAppend(&names, ", ", std::string(passes[i].name));
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no stage \"", std::string(stage),
                                                 "\"; the stages are, in their order: ", names,
                                                 "; beside them: ", std::string(kRecorded)));
}

absl::Status VerifyAfter(std::string_view stage, const ir::Function& function) {
  const absl::Status status = ir::Verify(function);
  if (status.ok()) return status;
  return absl::InternalError(absl::StrCat("after ", std::string(stage), ": ", status.message()));
}

absl::StatusOr<ir::Function> Run(ir::Function function, std::span<const Pass> passes) {
  for (const Pass& pass : passes) {
    function = pass.run(std::move(function));
    RETURN_IF_ERROR(VerifyAfter(pass.name, function));
  }
  return function;
}

}  // namespace phobos::compiler::passes
