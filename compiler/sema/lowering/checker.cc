// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/lowering/checker.h"

#include <utility>

#include "absl/strings/str_replace.h"
#include "base/concat.h"
#include "base/status_macros.h"

namespace phobos::compiler::sema {
namespace {

// A kernel larger than this after inlining is refused: ph.fn that call each other twice grow
// exponentially.
constexpr int64_t kMaxSteps = 200000;
// Expressions, statements and calls inside one another: bounds the stack.
constexpr int kMaxDepth = 600;

ir::Function Start(const Source& source, const Kernel& kernel, const Settings& settings) {
  ir::Function function;
  function.name = kernel.name;
  function.file_name = source.file_name();
  function.params = kernel.params;
  function.extents = kernel.extents;
  for (const auto& [name, value] : settings) {
    function.settings.emplace_back(name, ToString(value));
  }
  function.index_bits = static_cast<int32_t>(IndexBitsFor(kernel, settings));
  function.threads = static_cast<int32_t>(ThreadsFor(kernel, settings));
  function.min_blocks = static_cast<int32_t>(kernel.min_blocks);
  function.grid_dims_used = kernel.grid_dims_used;
  function.fast_math = kernel.fast_math;
  return function;
}

}  // namespace

Checker::Checker(const Source& source, const ast::Module& module, const Kernel& kernel,
                 const Settings& settings)
    : source_(source),
      module_(module),
      kernel_(kernel),
      settings_(settings),
      emitter_(Start(source, kernel, settings)) {}

absl::StatusOr<ir::Function> Checker::Run() {
  EmitConstraints();
  RETURN_IF_ERROR(CheckBlock(kernel_.function->body));
  return emitter_.Finish();
}

// A constraint over extents holds wherever this variant is launched, so that later stages may use
// it. One that cannot be expressed is left out: that loses knowledge, never truth. AnalyzeModule
// has reported what is wrong with it.
void Checker::EmitConstraints() {
  quiet_ = true;
  for (const Condition& condition : kernel_.conditions) {
    if (condition.is_assumption || condition.only_constants) continue;
    emitter_.SetPlace(condition.line, 1);
    emitter_.BeginRegion();
    absl::StatusOr<Operand> operand = EvalNumber(*condition.expr);
    absl::StatusOr<Value> truth = absl::UnknownError("");
    if (operand.ok()) truth = EmitTruth(*operand);
    if (truth.ok() && truth->id == ir::kNoValue) truth = absl::UnknownError("");
    const bool usable = truth.ok() && emitter_.IsLaunchUniform(*truth);
    ir::Block block = emitter_.EndRegion();
    if (!usable) continue;
    emitter_.Splice(std::move(block));
    emitter_.Assume(*truth);
  }
  quiet_ = false;
}

absl::Status Checker::Error(Span span, std::string what, std::string remedy) const {
  if (quiet_) return absl::InvalidArgumentError(what);
  if (in_function()) {
    const CallSite& site = calls_.back();
    Append(&what, " (in ", site.function->name, ", called from line ",
           source_.Line(site.span.begin), ")");
  }
  const std::string alias = module_.aliases.empty() ? "ph" : module_.aliases.front();
  if (alias != "ph") {
    // Messages are written for the usual alias.
    what = absl::StrReplaceAll(what, {{"ph.", alias + "."}});
    remedy = absl::StrReplaceAll(remedy, {{"ph.", alias + "."}});
  }
  return source_.Error(span, what, remedy);
}

absl::Status Checker::Error(Span span, const Problem& problem) const {
  return Error(span, problem.what, problem.remedy);
}

void Checker::SetPlace(Span span) {
  if (quiet_) return;
  emitter_.SetPlace(source_.Line(span.begin), source_.Column(span.begin));
}

absl::Status Checker::Enter(Span span) {
  if (++steps_ > kMaxSteps) {
    return Error(span, "the kernel is too large once its functions are inlined",
                 Concat("a ph.fn is copied at every call; keep the kernel below ", kMaxSteps,
                        " expressions, or split it"));
  }
  if (++depth_ > kMaxDepth) {
    return Error(span, "expressions, blocks and calls are nested too deeply",
                 "bind parts of it to names with ph.let");
  }
  return absl::OkStatus();
}

}  // namespace phobos::compiler::sema
