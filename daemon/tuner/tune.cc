// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/tune.h"

#include <algorithm>
#include <deque>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "daemon/tuner/decision/choice.h"
#include "daemon/tuner/decision/rounds.h"
#include "daemon/tuner/decision/statistics.h"
#include "daemon/tuner/field.h"

namespace phobos::tuner {
namespace {

// One tune under way. Its parts run in the order of Run, each once.
class Tuning {
 public:
  Tuning(const Spec& spec, const compile::CompiledSpace& space, const Arguments& arguments,
         worker::Worker& worker, const Measuring& measuring, const ProgressSink& progress,
         StopToken stop)
      : spec_(spec),
        space_(space),
        measuring_(measuring),
        progress_(progress),
        stop_(stop),
        field_(spec, space, arguments, worker, measuring, stop) {}

  absl::StatusOr<v1::Result> Run() {
    RETURN_IF_ERROR(CheckAll());
    RETURN_IF_ERROR(TakeRounds());
    KeepSamples();
    ASSIGN_OR_RETURN(const Choice choice, ChooseChecked());
    return MakeResult(choice);
  }

  const std::vector<v1::VariantResult>& variants() { return field_.results(); }

 private:
  absl::Status CheckAll();
  // nullopt: a death came between; the variant may be out.
  absl::StatusOr<std::optional<worker::CheckOutcome>> CheckOnce(int variant);
  // The check before timing: of one that is not proved free of races its recording is a part.
  absl::StatusOr<std::optional<worker::CheckOutcome>> CheckFully(int variant);
  absl::Status TakeRounds();
  absl::Status WarmUp(const std::vector<int>& variants);
  absl::Status TakeRound(const std::vector<int>& order);
  absl::StatusOr<worker::RoundOutcome> Launch(const std::vector<int>& order);
  void KeepSamples();
  absl::StatusOr<Choice> ChooseChecked();
  Choice ChooseNow();
  v1::Result MakeResult(const Choice& choice);

  absl::Status Continue() const;  // Cancelled, or FailedPrecondition when no variant is left
  void Report(v1::Phase phase, int64_t done, int64_t total, absl::Duration estimate);
  uint64_t NextSeed() { return measuring_.seed + ++seeds_ * 0x9e3779b97f4a7c15; }
  absl::Time Now() const { return measuring_.clock(); }

  const Spec& spec_;
  const compile::CompiledSpace& space_;
  const Measuring& measuring_;
  const ProgressSink& progress_;
  StopToken stop_;
  Field field_;

  uint64_t seeds_ = 0;
  RoundLog log_;
  RoundLog::Selection selection_;
  bool one_by_one_ = false;  // a canary changed in a round of several: find out in whose launch
  bool is_warm_ = false;
  absl::Time last_launch_;  // end of the last call that launched something
  int64_t warm_up_launches_ = 0;
  int64_t timer_resolution_ns_ = 0;
  int64_t timer_floor_ns_ = 0;
  v1::CardState state_before_;  // at the first round
  v1::CardState state_after_;   // at the last check
  int64_t best_ns_ = 0;         // fastest sample so far, for progress
  int best_variant_ = 0;
  absl::Duration check_time_;
  absl::Duration warm_up_time_;
  absl::Duration timing_time_;
};

absl::Status Tuning::Continue() const {
  if (stop_.load()) return absl::CancelledError("the tune was cancelled");
  if (!field_.Running().empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("no variant of ", spec_.description.kernel(), " passed; each has its reason"));
}

void Tuning::Report(v1::Phase phase, int64_t done, int64_t total, absl::Duration estimate) {
  if (!progress_) return;
  v1::Progress progress;
  progress.set_phase(phase);
  progress.set_done(static_cast<int32_t>(done));
  progress.set_total(static_cast<int32_t>(total));
  progress.set_best_ns(best_ns_);
  progress.set_best_variant(best_variant_);
  progress.set_estimate_ms(absl::ToInt64Milliseconds(estimate));
  progress_(progress);
}

absl::Status Tuning::CheckAll() {
  const absl::Time start = Now();
  const std::vector<int> entered = field_.Running();
  const auto total = static_cast<int64_t>(entered.size());
  std::deque<int> open(entered.begin(), entered.end());
  while (!open.empty()) {
    const int variant = open.front();
    open.pop_front();
    if (!field_.IsRunning(variant)) continue;
    Report(v1::PHASE_CHECK, total - static_cast<int64_t>(open.size()) - 1, total,
           absl::ZeroDuration());
    RETURN_IF_ERROR(Continue());
    ASSIGN_OR_RETURN(const auto outcome, CheckFully(variant));
    if (!outcome.has_value()) {
      // Its second chance comes after all others: by then the limit follows the fastest launch, and
      // one that hangs does not hold the card for the longest limit twice.
      open.push_back(variant);
    } else if (outcome->status() != v1::VARIANT_STATUS_TIMED) {
      field_.PutOut(variant, outcome->status(), outcome->reason());
    }
  }
  check_time_ += Now() - start;
  return Continue();
}

absl::StatusOr<std::optional<worker::CheckOutcome>> Tuning::CheckOnce(int variant) {
  ASSIGN_OR_RETURN(const bool anew, field_.Prepare());
  is_warm_ &= !anew;
  if (!field_.IsRunning(variant)) return std::nullopt;
  absl::StatusOr<worker::CheckOutcome> outcome = field_.worker().Check(variant, NextSeed());
  if (!outcome.ok()) {
    RETURN_IF_ERROR(field_.Absorb(outcome.status(), variant));
    return std::nullopt;
  }
  field_.SawLaunch(outcome->launch_ns());
  return *std::move(outcome);
}

absl::StatusOr<std::optional<worker::CheckOutcome>> Tuning::CheckFully(int variant) {
  ASSIGN_OR_RETURN(auto outcome, CheckOnce(variant));
  if (!outcome.has_value() || !field_.NeedsRecording(variant)) return outcome;
  // A race explains a wrong result; nothing else that a variant does wrong.
  const bool is_wrong = outcome->status() == v1::VARIANT_STATUS_WRONG_RESULT;
  if (!is_wrong && outcome->status() != v1::VARIANT_STATUS_TIMED) return outcome;
  ASSIGN_OR_RETURN(auto recorded, field_.Record(variant, NextSeed()));
  if (!recorded.has_value()) return recorded;
  const bool is_race = recorded->status() == v1::VARIANT_STATUS_RACE;
  return is_wrong && !is_race ? outcome : recorded;
}

absl::Status Tuning::TakeRounds() {
  const absl::Time start = Now();
  while (log_.clean() < measuring_.rounds && log_.taken() < measuring_.most_rounds) {
    RETURN_IF_ERROR(Continue());
    ASSIGN_OR_RETURN(const bool anew, field_.Prepare());
    const std::vector<int> running = field_.Running();
    if (running.empty()) continue;
    if (anew || !is_warm_ || Now() - last_launch_ > measuring_.longest_gap) {
      is_warm_ = false;
      RETURN_IF_ERROR(WarmUp(running));
      if (!is_warm_) continue;
    }
    RETURN_IF_ERROR(TakeRound(RotatedOrder(running, log_.clean())));
    const absl::Duration a_round = (Now() - start - warm_up_time_) / log_.taken();
    Report(v1::PHASE_TIMING, log_.clean(), measuring_.rounds,
           a_round * (measuring_.rounds - log_.clean()));
  }
  timing_time_ = Now() - start - warm_up_time_;
  return Continue();
}

absl::Status Tuning::WarmUp(const std::vector<int>& variants) {
  const absl::Time start = Now();
  const int64_t total = absl::ToInt64Milliseconds(measuring_.warm_up);
  Report(v1::PHASE_WARM_UP, 0, total, measuring_.warm_up);
  const absl::StatusOr<int64_t> launches = field_.worker().WarmUp(variants, measuring_.warm_up);
  last_launch_ = Now();
  warm_up_time_ += last_launch_ - start;
  if (!launches.ok()) return field_.Absorb(launches.status(), -1);
  if (*launches <= 0) return absl::InternalError("a warm-up launched nothing");
  warm_up_launches_ += *launches;
  is_warm_ = true;
  return absl::OkStatus();
}

absl::StatusOr<worker::RoundOutcome> Tuning::Launch(const std::vector<int>& order) {
  ASSIGN_OR_RETURN(worker::RoundOutcome outcome,
                   field_.worker().Round(order, spec_.options.flush_l2()));
  if (static_cast<size_t>(outcome.samples_ns_size()) != order.size()) {
    return absl::InternalError(absl::StrCat("a round of ", order.size(), " launches gave ",
                                            outcome.samples_ns_size(), " samples"));
  }
  if (log_.taken() == 0) state_before_ = outcome.state();
  timer_resolution_ns_ = outcome.timer_resolution_ns();
  timer_floor_ns_ = outcome.timer_floor_ns();
  return outcome;
}

// One round; a broken one leaves no samples.
absl::Status Tuning::TakeRound(const std::vector<int>& order) {
  std::vector<std::vector<int>> parts;
  if (one_by_one_) {
    for (const int variant : order) parts.push_back({variant});
  } else {
    parts.push_back(order);
  }
  std::vector<int64_t> samples;
  bool disturbed = false;
  for (const std::vector<int>& part : parts) {
    const absl::StatusOr<worker::RoundOutcome> outcome = Launch(part);
    last_launch_ = Now();
    if (!outcome.ok() || !outcome->out_of_bounds().empty()) {
      log_.AddBroken();
      if (!outcome.ok()) return field_.Absorb(outcome.status(), part.size() == 1 ? part[0] : -1);
      if (part.size() == 1) {
        field_.PutOut(part[0], v1::VARIANT_STATUS_OUT_OF_BOUNDS,
                      absl::StrCat(outcome->out_of_bounds(), " (in a timed launch)"));
      }
      one_by_one_ = true;
      return absl::OkStatus();
    }
    samples.insert(samples.end(), outcome->samples_ns().begin(), outcome->samples_ns().end());
    disturbed |= outcome->disturbed();
  }
  log_.Add(order, samples, disturbed);
  for (size_t i = 0; i < order.size(); ++i) {
    field_.SawLaunch(samples[i]);
    if (samples[i] <= 0 || (best_ns_ > 0 && best_ns_ <= samples[i])) continue;
    best_ns_ = samples[i];
    best_variant_ = order[i];
  }
  return absl::OkStatus();
}

void Tuning::KeepSamples() {
  selection_ = log_.Select(measuring_.rounds);
  for (const int variant : field_.Running()) {
    v1::VariantResult& result = field_.results()[static_cast<size_t>(variant)];
    const std::vector<int64_t>& samples = selection_.samples_ns[variant];
    if (samples.empty()) {
      field_.PutOut(variant, v1::VARIANT_STATUS_UNSUPPORTED,
                    absl::StrCat("none of ", log_.taken(), " rounds gave a usable time"));
      continue;
    }
    const Statistics statistics = Summarize(samples);
    result.mutable_samples_ns()->Add(samples.begin(), samples.end());
    result.set_best_ns(statistics.best_ns);
    result.set_median_ns(statistics.median_ns);
    result.set_spread(statistics.spread);
    result.set_interquartile_ns(statistics.interquartile_ns);
  }
}

Choice Tuning::ChooseNow() {
  std::vector<Candidate> candidates;
  for (const int variant : field_.Running()) {
    const v1::VariantResult& result = field_.results()[static_cast<size_t>(variant)];
    candidates.push_back({variant, Statistics{result.best_ns(), result.median_ns(), result.spread(),
                                              result.interquartile_ns()}});
  }
  return Choose(candidates, timer_resolution_ns_, spec_.options.tie_break());
}

// The winner, checked once more with new canaries; one that fails now is out and the next is
// chosen.
absl::StatusOr<Choice> Tuning::ChooseChecked() {
  const absl::Time start = Now();
  while (true) {
    RETURN_IF_ERROR(Continue());
    const Choice choice = ChooseNow();
    ASSIGN_OR_RETURN(const auto outcome, CheckOnce(choice.winner));
    if (!outcome.has_value()) continue;
    if (outcome->status() == v1::VARIANT_STATUS_TIMED) {
      state_after_ = outcome->state();
      check_time_ += Now() - start;
      return choice;
    }
    field_.PutOut(choice.winner, outcome->status(),
                  absl::StrCat(outcome->reason(), " (in the check after timing)"));
  }
}

v1::Result Tuning::MakeResult(const Choice& choice) {
  for (const int variant : field_.Running()) {
    field_.results()[static_cast<size_t>(variant)].set_status(v1::VARIANT_STATUS_TIMED);
  }
  v1::Result result;
  result.set_kernel(spec_.description.kernel());
  result.set_source_digest(spec_.description.source_digest());
  result.mutable_extents()->Add(spec_.extents.begin(), spec_.extents.end());
  const v1::VariantResult& winner = field_.results()[static_cast<size_t>(choice.winner)];
  result.set_winner(choice.winner);
  *result.mutable_winner_settings() = winner.settings();
  result.set_best_ns(winner.best_ns());
  result.mutable_ties()->Add(choice.ties.begin(), choice.ties.end());
  result.mutable_variants()->Add(field_.results().begin(), field_.results().end());
  result.set_compiler_fingerprint(space_.compiler_fingerprint);
  *result.mutable_options() = spec_.options;
  result.mutable_split()->set_check_ns(absl::ToInt64Nanoseconds(check_time_));
  result.mutable_split()->set_warm_up_ns(absl::ToInt64Nanoseconds(warm_up_time_));
  result.mutable_split()->set_timing_ns(absl::ToInt64Nanoseconds(timing_time_));
  result.set_contended(selection_.has_disturbed);
  result.set_rounds(selection_.rounds);
  result.set_repeated_rounds(log_.taken() - selection_.rounds);
  result.set_warm_up_launches(static_cast<int32_t>(warm_up_launches_));
  result.set_timer_resolution_ns(timer_resolution_ns_);
  result.set_timer_floor_ns(timer_floor_ns_);
  *result.mutable_state_before() = state_before_;
  *result.mutable_state_after() = state_after_;
  result.set_finished_unix_ms(absl::ToUnixMillis(absl::Now()));
  return result;
}

uint64_t RandomSeed() {
  std::random_device source;
  return uint64_t{source()} << 32 | source();
}

}  // namespace

absl::StatusOr<v1::Result> Tune(const Spec& spec, const compile::CompiledSpace& space,
                                const Arguments& arguments, worker::Worker& worker,
                                const Measuring& measuring, const ProgressSink& progress,
                                StopToken stop, std::vector<v1::VariantResult>* failed_variants) {
  Measuring seeded = measuring;
  if (seeded.seed == 0) seeded.seed = RandomSeed();
  Tuning tuning(spec, space, arguments, worker, seeded, progress, stop);
  absl::StatusOr<v1::Result> result = tuning.Run();
  // The worker keeps its memory, not the job. It may be gone, then so is the job.
  worker.End().IgnoreError();
  if (absl::IsFailedPrecondition(result.status()) && failed_variants != nullptr) {
    *failed_variants = tuning.variants();
  }
  return result;
}

}  // namespace phobos::tuner
