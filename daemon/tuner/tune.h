// SPDX-License-Identifier: Apache-2.0
//
// One tune, from compiled variants and owned arguments to a Result: check every variant, warm up,
// time in rotating rounds, choose. Knows no request, queue or store: values go in, a Result comes
// out. What it does step by step is in docs/measuring.md.
#ifndef PHOBOS_DAEMON_TUNER_TUNE_H_
#define PHOBOS_DAEMON_TUNER_TUNE_H_

#include <atomic>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/compile/runner.h"
#include "daemon/tuner/admission.h"
#include "daemon/tuner/arguments.h"
#include "daemon/tuner/spec.h"
#include "daemon/worker/worker.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::tuner {

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

}  // namespace phobos::tuner

#endif  // PHOBOS_DAEMON_TUNER_TUNE_H_
