// SPDX-License-Identifier: Apache-2.0
//
// Tunes is the table of jobs: it takes callers' streams in, answers from the store or joins them to
// the job of their key (making it when there is none), does the work that jobs ask for (compile,
// copy, run on the device, store), and tells all waiters. Any thread; nothing blocks the caller.
#ifndef PHOBOS_DAEMON_ENGINE_JOIN_TUNES_H_
#define PHOBOS_DAEMON_ENGINE_JOIN_TUNES_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/compile/runner.h"
#include "daemon/engine/chips.h"
#include "daemon/engine/find.h"
#include "daemon/engine/join/device_queue.h"
#include "daemon/engine/join/job.h"
#include "daemon/engine/join/run.h"
#include "daemon/engine/kernels.h"
#include "daemon/engine/task_pool.h"
#include "daemon/process/segment_pool.h"
#include "daemon/process/timing_lock.h"
#include "daemon/tuner/tune.h"
#include "daemon/worker/supervisor.h"
#include "proto/phobos/tuner/v1/admin.pb.h"

namespace phobos::engine {

// What Tunes needs beside the rooms below it. Constant.
struct TuneSettings {
  std::string daemon_version;
  tuner::v1::TieBreak tie_break = tuner::v1::TIE_BREAK_FASTEST;
  tuner::Measuring measuring;
  std::string lock_folder;                    // process::kLockFolder but in tests
  int64_t artifact_bytes = int64_t{4} << 30;  // kept a chip
  int64_t copy_bytes = int64_t{1} << 30;      // of one job's arguments and answers
  int jobs_per_uid = 64;
  TuneFunction tune = tuner::Tune;
  // Whether nothing else runs on a device now. May take a second; any thread.
  std::function<bool(const tuner::v1::Device&)> is_quiet;
  std::function<absl::Time()> now;
};

class Tunes {
 public:
  // One device and its worker.
  struct Bench {
    const tuner::v1::Device* device = nullptr;
    worker::Supervisor* worker = nullptr;
  };

  // All of it must outlive it.
  Tunes(TuneSettings settings, std::vector<Bench> benches, Kernels& kernels, Chips& chips,
        Finder& finder, compile::Runner& runner, process::SegmentPool& segments,
        tuner::CopyPool& copies);
  // Stop, and waits for what runs.
  ~Tunes();

  // Ends all jobs, and workers in what they do; callers get Unavailable, and so does who comes
  // later. Does not wait.
  void Stop();

  // A caller's stream, from Begin to Leave. `sink` gets its events and its end.
  uint64_t Begin(const Caller& caller, std::shared_ptr<Sink> sink);
  void Step(uint64_t stream, const tuner::v1::TuneRequest& request);
  // Ends a stream that sent what it may not: it is told `status`, and a job that it led elects
  // another.
  void Refuse(uint64_t stream, const absl::Status& status);
  // The stream is over; `departure` says why where it was the caller who ended it. Later calls for
  // it do nothing.
  void Leave(uint64_t stream, Job::Departure departure);

  // Withdraws one waiter of `caller`. NotFound: no such job, or none of its waiters is the
  // caller's.
  absl::Status Cancel(const std::string& job_id, const Caller& caller);

  // Timeouts, progress, idle memory. Called a few times a second; returns whether any job is there.
  bool Tick();

  void FillStatus(tuner::v1::GetStatusResponse& status) const;
  int64_t finished() const { return finished_.load(std::memory_order_relaxed); }

 private:
  struct Stream {
    enum class State { kNew, kOpening, kJoined, kOver };
    Caller caller;
    std::shared_ptr<Sink> sink;
    State state = State::kNew;
    JobPtr job;  // kJoined
  };

  // What Open resolved, off the lock.
  struct Opened {
    Subject subject;
    tuner::v1::Open open;
  };

  using ResultPtr = std::shared_ptr<const tuner::v1::Result>;

  // Open: on a thread of opening_, off the lock but for the last step.
  void DoOpen(uint64_t stream, tuner::v1::Open open);
  absl::StatusOr<Opened> Resolve(tuner::v1::Open open, bool* needs_source);
  absl::StatusOr<ResultPtr> Stored(const Opened& opened);
  absl::StatusOr<bool> IsOftenContended(const Opened& opened, const tuner::v1::Result& result);
  void AskForSource(uint64_t stream);
  void AnswerStored(uint64_t stream, const Opened& opened, const tuner::v1::Result& result);
  // False: something was kept since the store's `changes` were read and no job is there: look
  // again.
  bool JoinOrMake(uint64_t stream, const Opened& opened, int64_t changes);
  absl::StatusOr<JobPtr> MakeJob(const Opened& opened, uid_t uid)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(uint64_t stream, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndLocked(uint64_t stream, const absl::Status& status);

  void StepOfJob(uint64_t stream, const JobPtr& job, const tuner::v1::TuneRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(const JobPtr& job, Job::Work work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Also ends what the worker does for it, if it was stopped.
  void Forget(const JobPtr& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Compile(const JobPtr& job);
  void Copy(const JobPtr& job, const Job::Copy& copy);

  // What came of a copy. Of the arguments: from now on they are copied to the device, too, and
  // memory for the answers is made ready.
  void EndCopy(const JobPtr& job, const Job::Copy& copy,
               absl::StatusOr<std::shared_ptr<tuner::Arguments>> arguments);

  // Has a GPU's worker do something for a job that does not have the device yet. An error is the
  // job's own affair: it asks for the same when it runs.
  void DoAhead(const JobPtr& job, uid_t uid, std::function<void(worker::Supervisor&)> work);
  // Starts the process. What follows does nothing where none runs.
  void StartAhead(const JobPtr& job);
  void LinkAhead(const JobPtr& job, const compile::CompiledSpace& space);

  // On the device's thread.
  // A worker runs what its users send, and has their tensors: no other user's job gets that
  // process.
  void ServeOnly(const Bench& bench, uid_t uid);
  void Fetch(const JobPtr& job, const Job::Copy& copy, std::shared_ptr<tuner::Arguments> arguments);
  void Run(const Bench& bench, const JobPtr& job);
  absl::StatusOr<tuner::v1::Result> Measure(const Bench& bench, const JobPtr& job);
  void Complete(const JobPtr& job, tuner::v1::Result result);
  void AnswerDone(const Waiter& waiter, const Subject& subject, const tuner::v1::Result& result);

  const TuneSettings settings_;
  Kernels& kernels_;
  Chips& chips_;
  Finder& finder_;
  compile::Runner& runner_;
  process::SegmentPool& segments_;
  tuner::CopyPool& copies_;
  const std::vector<Bench> benches_;
  const std::string run_name_;  // makes this daemon's job ids its own
  std::atomic<int64_t> finished_{0};

  mutable absl::Mutex mutex_;
  uint64_t last_stream_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_job_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, Stream> streams_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, JobPtr> jobs_ ABSL_GUARDED_BY(mutex_);  // by key and options
  absl::Time last_job_end_ ABSL_GUARDED_BY(mutex_);
  bool is_trimmed_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // By device: for which job its worker works now, and for whom it last did.
  std::map<std::string, JobPtr> measured_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uid_t> served_ ABSL_GUARDED_BY(mutex_);

  TaskPool compiling_;
  TaskPool opening_;
  TaskPool copying_;
  std::map<std::string, std::unique_ptr<DeviceQueue>>
      queues_;  // by device; the last to be made, the first to go
};

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_JOIN_TUNES_H_
