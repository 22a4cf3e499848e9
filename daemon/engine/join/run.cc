// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/join/run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/engine/chips.h"
#include "daemon/engine/join/guilty.h"
#include "daemon/error/error.h"

namespace phobos::engine {
namespace {

// Compilers of other jobs pause from Begin until this goes.
class Paused {
 public:
  explicit Paused(compile::Runner& runner) : runner_(runner) {}
  ~Paused() {
    if (has_begun_) runner_.Resume();
  }
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;

  void Begin() {
    if (!std::exchange(has_begun_, true)) runner_.Pause();
  }

 private:
  compile::Runner& runner_;
  bool has_begun_ = false;
};

tuner::Spec SpecOf(const Subject& subject, const Job::Inputs& inputs) {
  tuner::Spec spec;
  spec.description = subject.kernel->description;
  spec.extents.assign(inputs.open.extents().begin(), inputs.open.extents().end());
  spec.scalars.assign(inputs.open.scalars().begin(), inputs.open.scalars().end());
  spec.grids = inputs.grids;
  spec.options = subject.options;
  return spec;
}

void Identify(const Subject& subject, const Job::Inputs& inputs, tuner::v1::Result& result) {
  result.set_kernel(subject.key.kernel);
  result.set_source_digest(subject.key.source_digest);
  for (const auto& [name, value] : subject.key.values) {
    tuner::v1::Extent& extent = *result.add_key();
    extent.set_name(name);
    extent.set_value(value);
  }
  *result.mutable_extents() = inputs.open.extents();
  *result.mutable_device() = subject.device;
  *result.mutable_options() = subject.options;
  result.set_compiler_fingerprint(inputs.space->compiler_fingerprint);
  result.set_asked_by(absl::StrCat("uid ", inputs.asked_by.uid, " pid ", inputs.asked_by.pid));
  result.set_key_digest(subject.key.digest);
  result.set_key_text(subject.key.text);
}

// One sentence for whoever reads why no variant passed.
std::string RemedyFor(const std::vector<tuner::v1::VariantResult>& failed) {
  const auto has = [&failed](tuner::v1::VariantStatus status) {
    return std::any_of(failed.begin(), failed.end(),
                       [status](const auto& variant) { return variant.status() == status; });
  };
  if (has(tuner::v1::VARIANT_STATUS_RACE)) return error::kRaceRemedy;
  if (has(tuner::v1::VARIANT_STATUS_WRONG_RESULT)) {
    return "mend what the reasons name, or, where they differ from the reference by rounding "
           "alone, allow it with rtol= and atol=; then tune again with force";
  }
  return "mend what the reasons name, and tune again with force";
}

absl::Status WithVariants(const absl::Status& status,
                          const std::vector<tuner::v1::VariantResult>& failed) {
  if (failed.empty()) return status;
  tuner::v1::ErrorDetail detail = error::DetailOf(status);
  detail.set_reason(tuner::v1::ERROR_REASON_NO_WINNER);
  if (detail.remedy().empty()) detail.set_remedy(RemedyFor(failed));
  detail.clear_variants();
  for (const tuner::v1::VariantResult& variant : failed) *detail.add_variants() = variant;
  return error::Attach(status, detail);
}

}  // namespace

absl::StatusOr<tuner::v1::Result> MeasureOn(worker::Worker& worker, compile::Runner& runner,
                                            const TuneFunction& tune,
                                            const tuner::Measuring& measuring,
                                            const Subject& subject, const Job::Inputs& inputs,
                                            const tuner::ProgressSink& progress,
                                            tuner::StopToken stop) {
  Paused paused(runner);
  const auto watch = [&](const tuner::v1::Progress& news) {
    const bool is_timed =
        news.phase() == tuner::v1::PHASE_WARM_UP || news.phase() == tuner::v1::PHASE_TIMING;
    if (is_timed && IsHost(subject.device)) paused.Begin();
    progress(news);
  };
  cache::ResultStore& store = *subject.chip->results;
  const std::string name =
      GuiltyName(subject.key.source_digest, inputs.space->compiler_fingerprint, subject.device);
  const std::string recordings = RecordingsName(name, inputs.open.extents());
  tuner::Spec spec = SpecOf(subject, inputs);
  const bool is_forced = inputs.open.newer_than_generation() != 0;
  std::vector<tuner::v1::VariantResult> guilty, died;
  if (!is_forced) {
    guilty = RecallGuilty(store, name);
    died = RecallGuilty(store, recordings);
  }
  spec.guilty = guilty;
  spec.guilty.insert(spec.guilty.end(), died.begin(), died.end());
  std::vector<tuner::v1::VariantResult> variants;
  absl::StatusOr<tuner::v1::Result> result =
      tune(spec, *inputs.space, *inputs.arguments, worker, measuring, watch, stop, &variants);
  if (result.ok()) variants.assign(result->variants().begin(), result->variants().end());
  // Where the disk refuses, the next tune finds the guilty again; the status names the trouble.
  RememberGuilty(store, name, guilty, variants).IgnoreError();
  RememberRecordings(store, recordings, died, variants).IgnoreError();
  if (!result.ok()) return WithVariants(result.status(), variants);
  result->clear_key();
  Identify(subject, inputs, *result);
  return result;
}

}  // namespace phobos::engine
