// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "daemon/compile/manifest.h"
#include "daemon/engine/list.h"
#include "daemon/error/error.h"

namespace phobos::engine {
namespace {

constexpr int kCompileThreads = 4;
constexpr int kLookupThreads = 8;
constexpr int kReadThreads = 2;

absl::Status WhyNotCompiled(const compiler::v1::Variant& variant, const std::string& kernel) {
  constexpr absl::StatusCode kCode = absl::StatusCode::kFailedPrecondition;
  const auto about = [&kernel](const absl::Status& status) {
    return error::About(status, tuner::v1::ERROR_REASON_UNSPECIFIED, kernel, "");
  };
  if (variant.status() == compiler::v1::VARIANT_STATUS_RACE) {
    const std::string& why = variant.reason().empty() ? variant.race_detail() : variant.reason();
    return about(error::Make(kCode, tuner::v1::ERROR_REASON_RACE,
                             absl::StrCat("its blocks race for an element: ", why),
                             error::kRaceRemedy));
  }
  const bool is_error = variant.status() == compiler::v1::VARIANT_STATUS_COMPILE_ERROR;
  return about(error::Make(
      kCode, is_error ? tuner::v1::ERROR_REASON_BAD_SOURCE : tuner::v1::ERROR_REASON_BAD_ARGUMENT,
      variant.reason()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Start(Parts parts) {
  std::unique_ptr<Engine> engine(new Engine);
  engine->runner_ = std::move(parts.runner);
  engine->unavailable_ = std::move(parts.unavailable);
  std::vector<std::string> chips;
  for (std::unique_ptr<worker::Supervisor>& worker : parts.workers) {
    absl::StatusOr<tuner::v1::Device> device = worker->Describe();
    if (!device.ok()) {
      engine->unavailable_.emplace_back(device.status().message());
      continue;
    }
    chips.push_back(device->chip());
    engine->devices_.push_back(*std::move(device));
    engine->workers_.push_back(std::move(worker));
  }
  if (engine->devices_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no device can be used: ", absl::StrJoin(engine->unavailable_, "; ")));
  }
  ASSIGN_OR_RETURN(engine->chips_, Chips::Open(parts.cache_dir, chips, parts.open_results,
                                               engine->compiler_fingerprint()));
  engine->kernels_ = std::make_unique<Kernels>(*engine->runner_);
  engine->finder_ = std::make_unique<Finder>(engine->devices_, *engine->kernels_, *engine->chips_,
                                             *engine->runner_);
  engine->copies_ = std::make_unique<tuner::CopyPool>(parts.copy_bytes);
  engine->segments_ = parts.segments;
  std::vector<Tunes::Bench> benches;
  for (size_t i = 0; i < engine->devices_.size(); ++i) {
    benches.push_back({&engine->devices_[i], engine->workers_[i].get()});
  }
  parts.settings.copy_bytes = parts.copy_bytes;
  engine->tunes_ = std::make_unique<Tunes>(std::move(parts.settings), std::move(benches),
                                           *engine->kernels_, *engine->chips_, *engine->finder_,
                                           *engine->runner_, *parts.segments, *engine->copies_);
  engine->compiling_ = std::make_unique<TaskPool>(kCompileThreads);
  engine->looking_up_ = std::make_unique<TaskPool>(kLookupThreads);
  engine->reading_ = std::make_unique<TaskPool>(kReadThreads);
  return engine;
}

Engine::~Engine() {
  compiling_.reset();
  looking_up_.reset();
  reading_.reset();
  tunes_.reset();
}

void Engine::FillStatus(tuner::v1::GetStatusResponse& status) {
  status.set_compiler_fingerprint(compiler_fingerprint());
  status.set_segment_bytes(segments_->bytes());
  status.set_lookups(finder_->lookups());
  status.set_hits(finder_->hits());
  status.set_tunes(tunes_->finished());
  for (const std::string& reason : unavailable_) status.add_unavailable(reason);
  tunes_->FillStatus(status);
  chips_->FillStatus(status);
}

void Engine::Lookup(const tuner::v1::LookupRequest& request,
                    std::function<void(absl::StatusOr<Finder::AnswerPtr>)> done) {
  looking_up_->Add([this, request, done = std::move(done)] { done(finder_->Lookup(request)); });
}

void Engine::Compile(const tuner::v1::CompileRequest& request,
                     std::function<void(absl::StatusOr<tuner::v1::CompileResponse>)> done) {
  compiling_->Add([this, request, done = std::move(done)] { done(CompileNow(request)); });
}

absl::StatusOr<tuner::v1::CompileResponse> Engine::CompileNow(
    const tuner::v1::CompileRequest& request) {
  ASSIGN_OR_RETURN(const tuner::v1::Device* device, finder_->DeviceOf(request.device_uuid()));
  Chip& chip = *chips_->Find(device->chip());
  ASSIGN_OR_RETURN(const KernelPtr kernel, kernels_->Resolve(request.kernel(), *chip.results));
  tuner::v1::CompileResponse response;
  if (kernel == nullptr) {
    response.mutable_need_source();
    return response;
  }
  const compiler::v1::KernelDescription& description = kernel->description;
  const int index = request.variant();
  if (index < 0 || index >= description.variants_size()) {
    return error::Make(absl::StatusCode::kInvalidArgument, tuner::v1::ERROR_REASON_BAD_ARGUMENT,
                       absl::StrCat("kernel ", description.kernel(), " has the variants 0..",
                                    description.variants_size() - 1, ", not ", index));
  }
  ASSIGN_OR_RETURN(const compile::CompiledVariant compiled,
                   runner_->CompileOne(kernel->source, description, index, chip.name, *chip.results,
                                       chip.artifacts));
  if (compiled.variant.status() != compiler::v1::VARIANT_STATUS_COMPILED) {
    return WhyNotCompiled(compiled.variant, description.kernel());
  }
  tuner::v1::Compiled& answer = *response.mutable_compiled();
  *answer.mutable_plan() = MakePlan(description, index, compiled, chip.name);
  answer.set_race_verdict(compiled.variant.race_verdict());
  answer.set_race_detail(compiled.variant.race_detail());
  if (request.want_description()) *answer.mutable_description() = description;
  return response;
}

absl::StatusOr<std::string> Engine::FindArtifact(const tuner::v1::GetArtifactRequest& request) {
  Chip* chip = chips_->Find(request.chip());
  if (chip == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("no artifacts of chip '", request.chip(), "' are here"));
  }
  return chip->artifacts.Find(request.digest(), compile::ArtifactExtension(request.file()));
}

void Engine::ListResults(const tuner::v1::ListResultsRequest& request,
                         std::function<void(absl::StatusOr<tuner::v1::ListResultsResponse>)> done) {
  reading_->Add(
      [this, request, done = std::move(done)] { done(engine::ListResults(*chips_, request)); });
}

void Engine::GetResult(const tuner::v1::GetResultRequest& request,
                       std::function<void(absl::StatusOr<tuner::v1::Result>)> done) {
  reading_->Add(
      [this, request, done = std::move(done)] { done(engine::GetResult(*chips_, request)); });
}

}  // namespace phobos::engine
