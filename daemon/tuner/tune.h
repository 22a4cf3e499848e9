// SPDX-License-Identifier: Apache-2.0
//
// One tune, from compiled variants and owned arguments to a Result: check every variant, warm up,
// time in rotating rounds, choose. Knows no request, queue or store: values go in, a Result comes
// out. What it does step by step is in docs/measuring.md.
#ifndef PHOBOS_DAEMON_TUNER_TUNE_H_
#define PHOBOS_DAEMON_TUNER_TUNE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/compile/runner.h"
#include "daemon/tuner/arguments.h"
#include "daemon/worker/worker.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::tuner {

// What is tuned. All of it validated by the caller: extents and scalars complete and of the right
// type.
struct Spec {
  compiler::v1::KernelDescription description;
  std::vector<v1::Extent> extents;     // all
  std::vector<v1::Scalar> scalars;     // all
  std::vector<v1::VariantGrid> grids;  // of the variants that are not excluded by the space
  v1::TuneOptions options;  // resolved: rtol/atol only when given, flush_l2 and tie_break set
  // Variants known to be guilty (crashed or hung in an earlier tune with this compiler and driver):
  // index, status and reason. They are left out without another try.
  std::vector<v1::VariantResult> guilty;
};

// How it is tuned. The defaults are the requirements'; tests shrink them.
struct Measuring {
  int rounds = 20;
  int most_rounds = 60;
  absl::Duration warm_up = absl::Milliseconds(300);
  absl::Duration longest_gap = absl::Milliseconds(100);  // a longer one warms up again
  absl::Duration shortest_launch_limit = absl::Seconds(1);
  absl::Duration longest_launch_limit = absl::Seconds(10);
  uint64_t seed = 0;                               // of canaries; 0: a random one
  std::function<absl::Time()> clock = &absl::Now;  // by which gaps and phases are measured
};

using ProgressSink = std::function<void(const v1::Progress&)>;  // called often, must not block
using StopToken = const std::atomic<bool>&;  // true: give up with Cancelled at the next step

// Runs the tune on `worker`, which the caller has locked for it. Fills every field of the Result
// but generation, asked_by, key*, daemon_version, lock, the device and the parts of the split that
// happened before. Worker deaths cost the guilty variant (after two) and are resumed from. Errors:
// FailedPrecondition "no variant passed" (then `failed_variants` has all of them with their
// reasons), Cancelled, ResourceExhausted, Unavailable (the worker cannot be started).
absl::StatusOr<v1::Result> Tune(const Spec& spec, const compile::CompiledSpace& space,
                                const Arguments& arguments, worker::Worker& worker,
                                const Measuring& measuring, const ProgressSink& progress,
                                StopToken stop, std::vector<v1::VariantResult>* failed_variants);

// Why a variant that compiled cannot be launched with these extents, scalars and grid: a false
// condition, 32-bit offsets and a large tensor, an impossible grid. OK when it can. Shared by the
// tuner and by the engine's choice of an admissible one.
struct Admission {
  v1::VariantStatus status = v1::VARIANT_STATUS_UNSPECIFIED;  // UNSPECIFIED: admissible
  std::string reason;
};
Admission Admit(const compiler::v1::KernelDescription& description, int variant,
                absl::Span<const v1::Extent> extents, absl::Span<const v1::Scalar> scalars,
                const v1::Grid* grid);

}  // namespace phobos::tuner

#endif  // PHOBOS_DAEMON_TUNER_TUNE_H_
