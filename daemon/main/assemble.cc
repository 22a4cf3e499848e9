// SPDX-License-Identifier: Apache-2.0
#include "daemon/main/assemble.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "cache/sqlite_store.h"
#include "daemon/compile/command.h"
#include "daemon/compile/runner.h"
#include "daemon/main/card_looks.h"
#include "daemon/process/self.h"
#include "daemon/process/timing_lock.h"
#include "daemon/worker/messages.pb.h"
#include "daemon/worker/supervisor.h"

namespace phobos {
namespace {

std::unique_ptr<worker::Supervisor> MakeWorker(
    const options::Options& options, const std::string& device,
    std::optional<tuner::v1::Device> described = std::nullopt) {
  worker::SupervisorOptions worker;
  worker.command = {options.program, absl::StrCat("--worker=", device)};
  worker.idle_limit = options.worker_idle;
  worker.device = std::move(described);
  return worker::Supervisor::Create(std::move(worker));
}

// A worker's device by the name that device::Open takes.
std::string DeviceName(const options::Options& options, const std::string& device) {
  return device == "cpu" && options.llc_bytes > 0 ? absl::StrCat("cpu:", options.llc_bytes)
                                                  : device;
}

// The GPUs, as a child process finds them. A driver that hangs must not keep the daemon from its
// host chip: shorter than clients wait for a daemon to start (client/stub/endpoint.cc) and other
// daemons for the cache (serve.cc).
worker::Cards AskForCards(const options::Options& options, compile::CommandRunner& runner) {
  constexpr absl::Duration kLimit = absl::Seconds(15);
  worker::Cards cards;
  const absl::StatusOr<compile::Ended> ended =
      runner.Run({.argv = {options.program, "--cards"}, .keep_output = true, .limit = kLimit});
  const bool is_said =
      ended.ok() && ended->exit_status == 0 && cards.ParseFromString(ended->output);
  if (is_said) return cards;
  cards.Clear();
  cards.add_unavailable(absl::StrCat("CUDA: the process that looks for GPUs failed: ",
                                     ended.ok() ? ended->how : ended.status().message()));
  return cards;
}

// One worker for each GPU that `device` means: "cuda" all, "cuda:UUID" one.
void AddGpus(const options::Options& options, const std::string& device, const worker::Cards& cards,
             engine::Engine::Parts& parts) {
  bool is_found = false;
  for (const tuner::v1::Device& card : cards.devices()) {
    const std::string name = absl::StrCat("cuda:", card.uuid());
    if (device != "cuda" && device != name) continue;
    is_found = true;
    parts.workers.push_back(MakeWorker(options, name, card));
  }
  if (!is_found && device != "cuda") {
    parts.unavailable.push_back(absl::StrCat("CUDA: there is no GPU ", device.substr(5)));
  }
}

// A GPU: as a child process sees its card. Where that cannot tell, and on the host chip: whether of
// all threads of the machine only the one that asks wants to run.
bool IsQuiet(CardLooks& looks, const tuner::v1::Device& device) {
  std::optional<bool> is_quiet;
  if (!device.card_uuid().empty()) is_quiet = looks.IsQuiet(device.card_uuid());
  return is_quiet.value_or(process::RunnableThreads() <= 1);
}

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
  // Of a child that asks the driver: one that hangs there is not waited for.
  compile::CommandRunner runner(absl::Seconds(1));
  std::optional<worker::Cards> cards;
  for (const std::string& device : options.devices) {
    if (!absl::StartsWith(device, "cuda")) {
      parts.workers.push_back(MakeWorker(options, DeviceName(options, device)));
      continue;
    }
    if (!cards.has_value()) {
      cards = AskForCards(options, runner);
      parts.unavailable.assign(cards->unavailable().begin(), cards->unavailable().end());
    }
    AddGpus(options, device, *cards, parts);
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
  const auto looks = std::make_shared<CardLooks>(options.program);
  settings.is_quiet = [looks](const tuner::v1::Device& device) { return IsQuiet(*looks, device); };
  settings.now = absl::Now;
  return engine::Engine::Start(std::move(parts));
}

}  // namespace phobos
