// SPDX-License-Identifier: Apache-2.0
//
// Field: the variants of one tune, those still in the running and those that are out with their
// reasons, and the worker that runs them. It takes what a worker's death costs: the guilty variant
// after the second one, and a new process with the job begun again and the variants loaded again.
// One thread, for the length of one Tune.
#ifndef PHOBOS_DAEMON_TUNER_FIELD_H_
#define PHOBOS_DAEMON_TUNER_FIELD_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/compile/runner.h"
#include "daemon/tuner/arguments.h"
#include "daemon/tuner/spec.h"
#include "daemon/worker/worker.h"

namespace phobos::tuner {

// min(longest, max(shortest, 100 x the fastest launch seen)); the longest while none was seen (0).
absl::Duration LaunchLimit(int64_t fastest_ns, const Measuring& measuring);

class Field {
 public:
  // Enters every variant of the space; those that the space, the compiler, the race check, the
  // grid, Admit or an earlier tune leave out are out already. All references must outlive this.
  Field(const Spec& spec, const compile::CompiledSpace& space, const Arguments& arguments,
        worker::Worker& worker, const Measuring& measuring, const std::atomic<bool>& stop);

  worker::Worker& worker() { return worker_; }
  // Indices of those that can still win, in order.
  std::vector<int> Running() const;
  // REQUIRES: an index of the space.
  bool IsRunning(int variant) const;
  // One a point of the space, in order of index.
  std::vector<v1::VariantResult>& results() { return results_; }

  // Begins the job and loads the variants that are running, as far as the worker has not done it.
  // True: it did something, so that what was warm is not. Errors: those of Tune; Cancelled at once
  // when `stop` is set, so that no worker that was killed for it launches anything again.
  absl::StatusOr<bool> Prepare();

  // Takes an error of a call to the worker. `variant`: the one that the call was about, -1:
  // several. OK: a death, or what concerns one variant alone: Prepare, and go on with those that
  // are Running. Else the tune cannot go on.
  absl::Status Absorb(const absl::Status& error, int variant);

  // The variant cannot win any more. What it has of samples stays in its result.
  void PutOut(int variant, v1::VariantStatus status, std::string reason);

  // Whether the variant was neither proved free of races nor recorded yet.
  bool NeedsRecording(int variant) const;
  // Runs its race-recording form, for as long as any launch may take. TIMED: it found no race, and
  // the variant no longer NeedsRecording. nullopt: a death, or a recording that cannot be had;
  // otherwise as Absorb.
  absl::StatusOr<std::optional<worker::CheckOutcome>> Record(int variant, uint64_t seed);

  // A launch took so long: the limit of the next ones follows the fastest.
  void SawLaunch(int64_t launch_ns);

 private:
  // What is known of a variant beside its result.
  struct Entry {
    worker::VariantSetup setup;
    bool is_running = false;
    bool is_loaded = false;
    bool needs_recording = false;
    int deaths = 0;
    int recording_deaths = 0;
  };

  void Enter(const compiler::v1::VariantSettings& settings);
  // Gives the worker the job, and says what will be loaded.
  absl::Status Begin();
  absl::Status Load(int variant);
  absl::Status AbsorbDeath(int variant);
  // As Absorb, of a call to the worker that ran the variant's race-recording form.
  absl::Status AbsorbRecording(const absl::Status& error, int variant);
  // Nothing of the job is left in the worker.
  void ForgetJob();
  // Of a death that no variant can be charged with.
  absl::Status CountStray(const worker::Death& death);

  const Spec& spec_;
  const compile::CompiledSpace& space_;
  const Arguments& arguments_;
  worker::Worker& worker_;
  const Measuring& measuring_;
  const std::atomic<bool>& stop_;
  std::vector<Entry> entries_;
  std::vector<v1::VariantResult> results_;
  bool is_begun_ = false;   // the worker has the job
  int strays_ = 0;          // deaths that no variant can be charged with
  int64_t fastest_ns_ = 0;  // launch of any variant; 0: none was seen
};

}  // namespace phobos::tuner

#endif  // PHOBOS_DAEMON_TUNER_FIELD_H_
