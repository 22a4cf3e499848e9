// SPDX-License-Identifier: Apache-2.0
//
// Puts an Engine together from the options: the compiler's runner, a worker for each device, SQLite
// stores. Wiring only.
#ifndef PHOBOS_DAEMON_MAIN_ASSEMBLE_H_
#define PHOBOS_DAEMON_MAIN_ASSEMBLE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/engine/engine.h"
#include "daemon/options/options.h"
#include "daemon/process/segment_pool.h"

namespace phobos {

// Starts the workers and asks the compiler for its fingerprint. `segments` must outlive the engine.
absl::StatusOr<std::unique_ptr<engine::Engine>> AssembleEngine(const options::Options& options,
                                                               const std::string& cache_dir,
                                                               process::SegmentPool& segments);

}  // namespace phobos

#endif  // PHOBOS_DAEMON_MAIN_ASSEMBLE_H_
