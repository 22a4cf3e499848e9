// SPDX-License-Identifier: Apache-2.0
//
// One job's turn on its device: the tuner is given the job's inputs, compilers pause while the host
// chip is timed, and the Result is completed with what the tuner does not know. Called on the
// device's thread, with the card's lock held.
#ifndef PHOBOS_DAEMON_ENGINE_JOIN_RUN_H_
#define PHOBOS_DAEMON_ENGINE_JOIN_RUN_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/compile/runner.h"
#include "daemon/engine/join/job.h"
#include "daemon/tuner/tune.h"
#include "daemon/worker/worker.h"

namespace phobos::engine {

// What one tune is; tuner::Tune but in tests.
using TuneFunction = std::function<absl::StatusOr<tuner::v1::Result>(
    const tuner::Spec&, const compile::CompiledSpace&, const tuner::Arguments&, worker::Worker&,
    const tuner::Measuring&, const tuner::ProgressSink&, tuner::StopToken,
    std::vector<tuner::v1::VariantResult>*)>;

// Everything of the Result but generation, lock, daemon_version and finished_unix_ms is set. Errors
// as tuner::Tune, with the failed variants in the ErrorDetail.
absl::StatusOr<tuner::v1::Result> MeasureOn(worker::Worker& worker, compile::Runner& runner,
                                            const TuneFunction& tune,
                                            const tuner::Measuring& measuring,
                                            const Subject& subject, const Job::Inputs& inputs,
                                            const tuner::ProgressSink& progress,
                                            tuner::StopToken stop);

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_JOIN_RUN_H_
