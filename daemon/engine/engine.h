// SPDX-License-Identifier: Apache-2.0
//
// Engine is the daemon without its wire and its process: it finds Results, joins and queues tunes,
// compiles single variants and stores what tunes decide. Values and callbacks in, values out; it
// knows no gRPC. Any thread; a method either does not block or says where its callback runs.
#ifndef PHOBOS_DAEMON_ENGINE_ENGINE_H_
#define PHOBOS_DAEMON_ENGINE_ENGINE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/compile/runner.h"
#include "daemon/engine/chips.h"
#include "daemon/engine/find.h"
#include "daemon/engine/join/tunes.h"
#include "daemon/engine/kernels.h"
#include "daemon/engine/task_pool.h"
#include "daemon/process/segment_pool.h"
#include "daemon/tuner/arguments.h"
#include "daemon/worker/supervisor.h"
#include "proto/phobos/tuner/v1/admin.pb.h"
#include "proto/phobos/tuner/v1/cache.pb.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"

namespace phobos::engine {

class Engine {
 public:
  // What it is made of; all of it becomes the engine's but the segments, which must outlive it.
  struct Parts {
    std::string cache_dir;
    std::vector<std::unique_ptr<worker::Supervisor>> workers;  // one a device
    std::vector<std::string> unavailable;  // why a kind of device has no worker, a sentence each
    std::unique_ptr<compile::Runner> runner;
    Chips::OpenResults open_results;
    process::SegmentPool* segments = nullptr;
    int64_t copy_bytes = int64_t{1} << 30;  // of all jobs' arguments and answers together
    TuneSettings settings;                  // its copy_bytes is set from the one above
  };

  // Asks every worker for its device and opens the stores of their chips. FailedPrecondition: no
  // device can be used, with each reason. Blocks while workers start.
  static absl::StatusOr<std::unique_ptr<Engine>> Start(Parts parts);
  // Stops all jobs and waits for what runs.
  ~Engine();

  // Ends tunes and running compilers and lets none start, so that nothing that is under way takes
  // long any more. Before whoever waits for its answers goes: they are told why.
  void Stop() {
    tunes_->Stop();
    runner_->Stop();
  }

  // The devices it tunes on, the host chip last. Constant.
  const std::vector<tuner::v1::Device>& devices() const { return devices_; }
  // Why a kind of device is not used, a sentence each. Constant.
  const std::vector<std::string>& unavailable() const { return unavailable_; }
  // Of the compiler in use. Constant.
  const std::string& compiler_fingerprint() const { return runner_->fingerprint(); }

  // Fills what the engine knows: workers, jobs, caches, counters, problems. Reads the disk.
  void FillStatus(tuner::v1::GetStatusResponse& status);

  // Lookup in two steps: what is ready in memory (null: nothing), else with the disk and perhaps
  // the compiler, `done` on a thread of the engine.
  Finder::AnswerPtr RecentLookup(const tuner::v1::LookupRequest& request) {
    return finder_->Recent(request);
  }
  void Lookup(const tuner::v1::LookupRequest& request,
              std::function<void(absl::StatusOr<Finder::AnswerPtr>)> done);

  // One variant's artifact. FailedPrecondition with reason RACE, or with why the variant is not to
  // be had. `done` as above.
  void Compile(const tuner::v1::CompileRequest& request,
               std::function<void(absl::StatusOr<tuner::v1::CompileResponse>)> done);

  // Path of an artifact; NotFound when it is not here.
  absl::StatusOr<std::string> FindArtifact(const tuner::v1::GetArtifactRequest& request);

  // As in list.h. `done` as above.
  void ListResults(const tuner::v1::ListResultsRequest& request,
                   std::function<void(absl::StatusOr<tuner::v1::ListResultsResponse>)> done);
  void GetResult(const tuner::v1::GetResultRequest& request,
                 std::function<void(absl::StatusOr<tuner::v1::Result>)> done);

  Tunes& tunes() { return *tunes_; }

 private:
  Engine() = default;
  absl::StatusOr<tuner::v1::CompileResponse> CompileNow(const tuner::v1::CompileRequest& request);

  std::vector<std::unique_ptr<worker::Supervisor>> workers_;
  std::unique_ptr<compile::Runner> runner_;
  std::vector<tuner::v1::Device> devices_;
  std::vector<std::string> unavailable_;
  std::unique_ptr<Chips> chips_;
  std::unique_ptr<Kernels> kernels_;
  std::unique_ptr<Finder> finder_;
  std::unique_ptr<tuner::CopyPool> copies_;
  std::unique_ptr<Tunes> tunes_;
  // Apart, so that neither slow compilers nor kernels not seen before keep those waiting who only
  // read: of single variants, of lookups, of lists.
  std::unique_ptr<TaskPool> compiling_;
  std::unique_ptr<TaskPool> looking_up_;
  std::unique_ptr<TaskPool> reading_;
  process::SegmentPool* segments_ = nullptr;
};

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_ENGINE_H_
