// SPDX-License-Identifier: Apache-2.0
#include "daemon/main/assemble.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "cache/sqlite_store.h"
#include "daemon/compile/runner.h"
#include "daemon/process/self.h"
#include "daemon/process/timing_lock.h"
#include "daemon/worker/supervisor.h"

namespace phobos {
namespace {

std::unique_ptr<worker::Supervisor> MakeWorker(const options::Options& options,
                                               const std::string& device) {
  worker::SupervisorOptions worker;
  worker.command = {options.program, absl::StrCat("--worker=", device)};
  worker.idle_limit = options.worker_idle;
  return worker::Supervisor::Create(std::move(worker));
}

// A worker's device by the name that device::Open takes.
std::string DeviceName(const options::Options& options, const std::string& device) {
  return device == "cpu" && options.llc_bytes > 0 ? absl::StrCat("cpu:", options.llc_bytes)
                                                  : device;
}

// Quiet: of all threads of the machine only the one that asks wants to run.
bool IsMachineQuiet(const tuner::v1::Device&) { return process::RunnableThreads() <= 1; }

}  // namespace

absl::StatusOr<std::unique_ptr<engine::Engine>> AssembleEngine(const options::Options& options,
                                                               const std::string& cache_dir,
                                                               process::SegmentPool& segments) {
  compile::Options compiler;
  compiler.compiler = options.compiler;
  compiler.work_folder = absl::StrCat(cache_dir, "/work");
  compiler.limit = options.compile_limit;
  compiler.jobs = options.compile_jobs;
  engine::Engine::Parts parts;
  ASSIGN_OR_RETURN(parts.runner, compile::Runner::Start(compiler));
  parts.cache_dir = cache_dir;
  for (const std::string& device : options.devices) {
    parts.workers.push_back(MakeWorker(options, DeviceName(options, device)));
  }
  parts.open_results = cache::OpenSqliteStore;
  parts.segments = &segments;
  parts.copy_bytes = options.copy_bytes;
  engine::TuneSettings& settings = parts.settings;
  settings.daemon_version = kVersion;
  settings.tie_break = options.tie_break;
  settings.measuring.rounds = options.rounds;
  settings.measuring.warm_up = options.warm_up;
  settings.lock_folder = process::kLockFolder;
  settings.artifact_bytes = options.artifact_bytes;
  settings.jobs_per_uid = options.jobs_per_uid;
  settings.is_quiet = IsMachineQuiet;
  settings.now = absl::Now;
  return engine::Engine::Start(std::move(parts));
}

}  // namespace phobos
