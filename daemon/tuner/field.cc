// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/field.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "daemon/tuner/admission.h"
#include "daemon/tuner/setup.h"
#include "daemon/worker/shadows.h"

namespace phobos::tuner {
namespace {

constexpr int kMostDeaths = 2;  // of the worker on one variant
constexpr int kMostStrays = 3;

const v1::VariantGrid* FindGrid(const Spec& spec, int variant) {
  const auto found = std::find_if(spec.grids.begin(), spec.grids.end(),
                                  [&](const v1::VariantGrid& g) { return g.variant() == variant; });
  return found == spec.grids.end() ? nullptr : &*found;
}

// Why the variant cannot start; UNSPECIFIED: it can.
Admission JudgeEntry(const Spec& spec, const compile::CompiledVariant* compiled, int variant) {
  // What the space itself leaves out is neither compiled nor given a grid.
  Admission admission =
      Admit(spec.description, variant, spec.extents, spec.scalars, /*grid=*/nullptr);
  if (admission.status != v1::VARIANT_STATUS_UNSPECIFIED) return admission;
  if (compiled == nullptr) {
    return {v1::VARIANT_STATUS_COMPILE_ERROR, "the compiler said nothing of this variant"};
  }
  admission = JudgeCompiled(compiled->variant);
  if (admission.status != v1::VARIANT_STATUS_UNSPECIFIED) return admission;
  const v1::VariantGrid* grid = FindGrid(spec, variant);
  if (grid == nullptr) return {v1::VARIANT_STATUS_GRID_ERROR, "no grid was given"};
  if (!grid->error().empty()) return {v1::VARIANT_STATUS_GRID_ERROR, grid->error()};
  for (const v1::VariantResult& guilty : spec.guilty) {
    if (guilty.index() == variant) return {guilty.status(), guilty.reason()};
  }
  return Admit(spec.description, variant, spec.extents, spec.scalars, &grid->grid());
}

// What the device found in the loaded code; the compiler's own numbers stay where it says nothing.
void KeepUsage(const worker::LoadOutcome& usage, v1::VariantResult& result) {
  if (usage.registers() == 0) return;
  result.set_registers(usage.registers());
  result.set_shared_memory_bytes(usage.shared_memory_bytes());
  result.set_spill_bytes(usage.spill_bytes());
}

std::string NotRecorded(const std::string& why) {
  return absl::StrCat(
      "could not be proved free of races, and its race-recording form gave no answer: ", why);
}

}  // namespace

absl::Duration LaunchLimit(int64_t fastest_ns, const Measuring& measuring) {
  if (fastest_ns <= 0) return measuring.longest_launch_limit;
  return std::min(measuring.longest_launch_limit,
                  std::max(measuring.shortest_launch_limit, 100 * absl::Nanoseconds(fastest_ns)));
}

Field::Field(const Spec& spec, const compile::CompiledSpace& space, const Arguments& arguments,
             worker::Worker& worker, const Measuring& measuring, const std::atomic<bool>& stop)
    : spec_(spec),
      space_(space),
      arguments_(arguments),
      worker_(worker),
      measuring_(measuring),
      stop_(stop) {
  for (const auto& settings : spec.description.variants()) Enter(settings);
}

void Field::Enter(const compiler::v1::VariantSettings& settings) {
  const int index = static_cast<int>(results_.size());
  v1::VariantResult& result = results_.emplace_back();
  Entry& entry = entries_.emplace_back();
  result.set_index(index);
  *result.mutable_settings() = settings.settings();

  const auto found = std::find_if(
      space_.variants.begin(), space_.variants.end(),
      [index](const compile::CompiledVariant& v) { return v.variant.index() == index; });
  const compile::CompiledVariant* compiled = found == space_.variants.end() ? nullptr : &*found;
  if (compiled != nullptr) {
    const compiler::v1::Artifact& artifact = compiled->variant.artifact();
    result.set_registers(artifact.registers());
    result.set_shared_memory_bytes(artifact.shared_memory_bytes());
    result.set_spill_bytes(artifact.spill_bytes());
    result.set_artifact_digest(artifact.digest());
    result.set_race_detail(compiled->variant.race_detail());
  }
  const Admission admission = JudgeEntry(spec_, compiled, index);
  if (admission.status != v1::VARIANT_STATUS_UNSPECIFIED) {
    PutOut(index, admission.status, admission.reason);
    return;
  }
  *result.mutable_grid() = FindGrid(spec_, index)->grid();
  entry.is_running = true;
  entry.setup.set_variant(index);
  entry.setup.set_artifact_path(compiled->artifact_path);
  *entry.setup.mutable_artifact() = compiled->variant.artifact();
  *entry.setup.mutable_grid() = result.grid();
  if (!tuner::NeedsRecording(compiled->variant)) return;
  entry.needs_recording = true;
  worker::RecordingSetup& recording = *entry.setup.mutable_recording();
  recording.set_artifact_path(compiled->recording_path);
  *recording.mutable_recording() = compiled->variant.recording();
  recording.set_first_slot(ParameterSlots(space_));
}

std::vector<int> Field::Running() const {
  std::vector<int> running;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].is_running) running.push_back(static_cast<int>(i));
  }
  return running;
}

bool Field::IsRunning(int variant) const {
  return entries_[static_cast<size_t>(variant)].is_running;
}

void Field::PutOut(int variant, v1::VariantStatus status, std::string reason) {
  const auto index = static_cast<size_t>(variant);
  entries_[index].is_running = false;
  results_[index].set_status(status);
  results_[index].set_reason(std::move(reason));
}

void Field::SawLaunch(int64_t launch_ns) {
  if (launch_ns <= 0 || (fastest_ns_ > 0 && fastest_ns_ <= launch_ns)) return;
  fastest_ns_ = launch_ns;
  worker_.SetLaunchLimit(LaunchLimit(fastest_ns_, measuring_));
}

absl::Status Field::Begin() {
  worker_.SetLaunchLimit(LaunchLimit(fastest_ns_, measuring_));
  ASSIGN_OR_RETURN(worker::JobSetup setup,
                   MakeJobSetup(spec_, space_, arguments_, measuring_.seed));
  std::vector<worker::VariantSetup> expected;
  int64_t shadow_bytes = 0;
  for (const Entry& entry : entries_) {
    if (!entry.is_running) continue;
    expected.push_back(entry.setup);
    shadow_bytes =
        std::max(shadow_bytes, worker::ShadowBytes(entry.setup.recording().recording(), setup));
  }
  setup.set_shadow_bytes(shadow_bytes);
  RETURN_IF_ERROR(worker_.Expect(expected));
  // Whoever stops a tune kills its worker, and a Begin would start another one.
  if (stop_.load()) return absl::CancelledError("the tune was cancelled");
  return worker_.Begin(setup, arguments_.memory());
}

absl::StatusOr<bool> Field::Prepare() {
  bool did_something = false;
  while (true) {
    if (stop_.load()) return absl::CancelledError("the tune was cancelled");
    if (!is_begun_) {
      did_something = true;
      const absl::Status begun = Begin();
      if (!begun.ok()) {
        RETURN_IF_ERROR(Absorb(begun, -1));
        continue;
      }
      is_begun_ = true;
    }
    const auto next = std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) {
      return entry.is_running && !entry.is_loaded;
    });
    if (next == entries_.end()) return did_something;
    did_something = true;
    RETURN_IF_ERROR(Load(next->setup.variant()));
  }
}

absl::Status Field::Load(int variant) {
  Entry& entry = entries_[static_cast<size_t>(variant)];
  const absl::StatusOr<worker::LoadOutcome> outcome = worker_.Load(entry.setup);
  const absl::Status& loaded = outcome.status();
  entry.is_loaded = loaded.ok();
  const std::string reason =
      absl::StrCat("its artifact cannot be loaded: ", std::string(loaded.message()));
  switch (loaded.code()) {
    case absl::StatusCode::kOk:
      KeepUsage(*outcome, results_[static_cast<size_t>(variant)]);
      return absl::OkStatus();
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnavailable:
      return Absorb(loaded, variant);
    case absl::StatusCode::kResourceExhausted:
      PutOut(variant, v1::VARIANT_STATUS_OUT_OF_MEMORY, std::string(loaded.message()));
      return absl::OkStatus();
    case absl::StatusCode::kFailedPrecondition:
      PutOut(variant, v1::VARIANT_STATUS_UNSUPPORTED, reason);
      return absl::OkStatus();
    default:
      PutOut(variant, v1::VARIANT_STATUS_COMPILE_ERROR, reason);
      return absl::OkStatus();
  }
}

absl::Status Field::Absorb(const absl::Status& error, int variant) {
  if (absl::IsAborted(error)) return AbsorbDeath(variant);
  if (absl::IsResourceExhausted(error) && variant >= 0) {
    PutOut(variant, v1::VARIANT_STATUS_OUT_OF_MEMORY, std::string(error.message()));
    return absl::OkStatus();
  }
  if (absl::IsFailedPrecondition(error) && variant >= 0) {
    PutOut(variant, v1::VARIANT_STATUS_UNSUPPORTED, std::string(error.message()));
    return absl::OkStatus();
  }
  return error;
}

void Field::ForgetJob() {
  is_begun_ = false;
  for (Entry& entry : entries_) entry.is_loaded = false;
}

absl::Status Field::CountStray(const worker::Death& death) {
  if (++strays_ < kMostStrays) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the worker died ", strays_,
                                             " times by no variant's fault, last by ", death.how,
                                             "; see the daemon's log"));
}

absl::Status Field::AbsorbDeath(int variant) {
  ForgetJob();
  const worker::Death death = worker_.LastDeath();
  const bool is_known = death.variant >= 0 &&
                        static_cast<size_t>(death.variant) < entries_.size() &&
                        IsRunning(death.variant);
  // The mark is in memory that the variants' code can write: it is asked only when the call was
  // about several.
  const int suspect = variant >= 0 ? variant : (is_known ? death.variant : -1);
  const int guilty = death.killed ? -1 : suspect;
  if (guilty < 0) return CountStray(death);
  Entry& entry = entries_[static_cast<size_t>(guilty)];
  if (++entry.deaths < kMostDeaths) return absl::OkStatus();
  if (death.timed_out) {
    PutOut(guilty, v1::VARIANT_STATUS_TIMED_OUT, absl::StrCat(death.how, ", twice"));
  } else {
    PutOut(guilty, v1::VARIANT_STATUS_CRASHED,
           absl::StrCat("ended the worker process twice, last by ", death.how));
  }
  return absl::OkStatus();
}

bool Field::NeedsRecording(int variant) const {
  return entries_[static_cast<size_t>(variant)].needs_recording;
}

absl::StatusOr<std::optional<worker::CheckOutcome>> Field::Record(int variant, uint64_t seed) {
  Entry& entry = entries_[static_cast<size_t>(variant)];
  worker_.SetLaunchLimit(measuring_.longest_launch_limit);
  absl::StatusOr<worker::CheckOutcome> outcome = worker_.Record(variant, seed);
  worker_.SetLaunchLimit(LaunchLimit(fastest_ns_, measuring_));
  if (!outcome.ok()) {
    RETURN_IF_ERROR(AbsorbRecording(outcome.status(), variant));
    return std::nullopt;
  }
  if (outcome->status() == v1::VARIANT_STATUS_TIMED) {
    entry.needs_recording = false;
    results_[static_cast<size_t>(variant)].set_race_recorded(true);
  } else if (outcome->status() == v1::VARIANT_STATUS_RACE) {
    outcome->set_reason(
        absl::StrCat(outcome->reason(), ", found by its race-recording form on these arguments"));
  } else {
    outcome->set_reason(NotRecorded(outcome->reason()));
  }
  return *std::move(outcome);
}

absl::Status Field::AbsorbRecording(const absl::Status& error, int variant) {
  Entry& entry = entries_[static_cast<size_t>(variant)];
  std::string why(error.message());
  if (absl::IsAborted(error)) {
    ForgetJob();
    const worker::Death death = worker_.LastDeath();
    if (death.killed) return CountStray(death);
    // Another try of what is too slow costs as much again.
    if (++entry.recording_deaths < kMostDeaths && !death.timed_out) return absl::OkStatus();
    why = death.timed_out ? absl::StrCat("it ", death.how)
                          : absl::StrCat("it ended the worker process twice, last by ", death.how);
    results_[static_cast<size_t>(variant)].set_recording_died(true);
  } else if (!absl::IsResourceExhausted(error) && !absl::IsFailedPrecondition(error)) {
    return error;
  }
  PutOut(variant, v1::VARIANT_STATUS_RACE_CHECK_FAILED, NotRecorded(why));
  return absl::OkStatus();
}

}  // namespace phobos::tuner
