// SPDX-License-Identifier: Apache-2.0
//
// Job is one tune that callers wait for together: the state machine of docs/life_of_a_request.md.
// It elects the waiter that hands over arguments, checks what that one sends, follows compiling,
// queueing and running, and tells every waiter. It does no work itself: a method returns the Work
// that is now to be done, and whoever does it calls back. It has no clock, thread or lock: Tunes
// (tunes.h) calls it under its own.
#ifndef PHOBOS_DAEMON_ENGINE_JOIN_JOB_H_
#define PHOBOS_DAEMON_ENGINE_JOIN_JOB_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/result_store.h"
#include "daemon/compile/runner.h"
#include "daemon/engine/chips.h"
#include "daemon/engine/join/hand_over.h"
#include "daemon/engine/kernels.h"
#include "daemon/process/segment_pool.h"
#include "daemon/tuner/arguments.h"
#include "proto/phobos/tuner/v1/admin.pb.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"

namespace phobos::engine {

// Whether it is the host chip, which is what compilers run on and no card.
bool IsHost(const tuner::v1::Device& device);

// The error for a step of the stream that comes when another is due.
absl::Status OutOfTurn(const char* step, const char* remedy);

// Who asks.
using Caller = process::SegmentOwner;

// Where a waiter's events go. Called with the engine's lock held: must not block, nor call the
// engine.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void Send(const tuner::v1::TuneEvent& event) = 0;
  // The last call: OK after an event that ends the stream, else the error.
  virtual void Close(const absl::Status& status) = 0;
};

// One caller's part in a job.
struct Waiter {
  uint64_t id = 0;
  Caller caller;
  std::shared_ptr<Sink> sink;
  tuner::v1::Open open;  // extents and scalars are checked; without the source text
  absl::Time since;
  // OK: its reference has not failed. Else it is told so once it is known that the kernel compiles.
  absl::Status reference_failure = absl::OkStatus();
};

// What a job is about. Constant.
struct Subject {
  std::string job_id;
  cache::KeyColumns key;
  tuner::v1::TuneOptions options;  // resolved
  KernelPtr kernel;
  tuner::v1::Device device;
  Chip* chip = nullptr;
  uid_t uid = 0;  // of the caller for whom it was made
};

class Job {
 public:
  enum class Stage {
    kElecting,         // nobody who waits can lead; after a failed reference, compiling goes on
    kLeading,          // Lead is sent; Args are to come
    kCopying,          // Args are being copied
    kReference,        // ArgsOwned is sent; Expected is to come
    kCopyingExpected,  // Expected is being copied; from here on nobody is needed
    kReady,            // all is owned; compiling goes on
    kQueued,           // for the device
    kRunning,          // has the device
    kEnded,
  };

  enum class Work {
    kNone,
    kCopy,    // do TakeCopy()
    kQueue,   // put it into the device's queue
    kForget,  // it ended: nobody is to find it any more
  };

  // How a waiter goes.
  enum class Departure {
    kLost,       // its connection broke: a tune that needs nobody is finished all the same
    kWithdrawn,  // it cancelled, or one of its timeouts passed
  };

  // What is to be copied, off the lock: keeps alive what it reads and writes.
  struct Copy {
    int election = 0;
    uid_t uid = 0;  // of the leader
    bool is_expected = false;
    std::shared_ptr<process::SegmentPool::Loan> loan;
    std::vector<tuner::TensorBytes> tensors;      // arguments, or the reference's answers
    std::vector<tuner::TensorBytes> replaced;     // with is_expected
    std::shared_ptr<tuner::Arguments> arguments;  // with is_expected: to be completed

    // Whether the worker must take part: some are on the device.
    bool has_foreign() const;
  };

  // `segments` must outlive it. `copy_limit` is the most that arguments and answers may need.
  Job(Subject subject, process::SegmentPool& segments, int64_t copy_limit, absl::Time now);

  // A caller joins: it is told Lead or Follow. One that can only follow is refused where nobody
  // leads.
  Work Join(Waiter waiter, absl::Time now);
  // A waiter is gone. Unknown ids are ignored (it was told the end already).
  Work Leave(uint64_t waiter, Departure departure, absl::Time now);

  // Steps of the leader. From anybody else, or out of turn: that waiter is refused.
  Work OnArgs(uint64_t waiter, const tuner::v1::Args& args, absl::Time now);
  Work OnExpected(uint64_t waiter, const tuner::v1::Expected& expected, absl::Time now);
  // The next one leads. This one is told once it is known whether the kernel compiles: where it
  // does not, all are told that instead, for a reference that fits the kernel's intent may not fit
  // it.
  Work OnReferenceFailed(uint64_t waiter, const std::string& message, absl::Time now);

  // A waiter spoke out of turn, or ran out of time: it is told `status` and goes; a leader that is
  // needed is replaced. Unknown ids are ignored.
  Work Refuse(uint64_t waiter, const absl::Status& status, absl::Time now);

  // REQUIRES: kCopy was returned, once each.
  Copy TakeCopy();
  // The worker begins with what is on the device of a Copy; before, it waited for the device.
  // False: its leader left meanwhile, and it is not to be done.
  bool OnFetching(const Copy& copy);
  // What came of a Copy. A late one (its leader left meanwhile) is ignored. Where what is on the
  // device could not be had, the caller is told Lead again, to send the bytes.
  Work OnCopied(const Copy& copy, absl::StatusOr<std::shared_ptr<tuner::Arguments>> arguments,
                absl::Time now);

  Work OnCompiled(absl::StatusOr<compile::CompiledSpace> space, absl::Time now);
  // What is measured, for as long as whoever measures holds it.
  struct Inputs {
    std::shared_ptr<const compile::CompiledSpace> space;
    std::shared_ptr<const tuner::Arguments> arguments;
    tuner::v1::Open open;  // the leader's
    std::vector<tuner::v1::VariantGrid> grids;
    Caller asked_by;
  };
  // It has its device, but another tune has the card's lock (another slice's, or another daemon's):
  // waiters are told what they wait for.
  void OnCardBusy(absl::Time now);
  // It has its device and the card's lock. REQUIRES: kQueued. Cancelled: it ended meanwhile.
  absl::StatusOr<Inputs> OnStarted(absl::Time now);
  void OnProgress(const tuner::v1::Progress& progress, absl::Time now);
  // Ends it with an error for all who wait.
  Work Fail(const absl::Status& status);
  // Ends it; the waiters are to be answered by the caller.
  std::vector<Waiter> Finish();

  // Timeouts, and progress to every waiter once a second. `queue_position` is 0 unless kQueued.
  // `estimate_ms` is told until it runs; from then on the tuner's own is.
  Work Tick(absl::Time now, int queue_position, int64_t estimate_ms);

  const Subject& subject() const { return subject_; }
  Stage stage() const { return stage_; }
  // The oldest waiter of this process; 0: none.
  uint64_t WaiterOf(const Caller& caller) const;
  tuner::v1::JobStatus Status(absl::Time now) const;

  // True: whoever works for it gives up. Read without the lock.
  const std::atomic<bool>& stop() const { return stop_; }

  absl::Time started() const { return started_; }
  // Where the time went before the tune ran, and the total until `now`.
  void FillSplit(tuner::v1::TimeSplit& split, absl::Time now) const;

 private:
  Waiter* Find(uint64_t id);
  Waiter* Leader();
  // Sends the last event's status and forgets the waiter.
  void Close(uint64_t id, const absl::Status& status);
  void CloseAll(const absl::Status& status);

  Work Elect(absl::Time now);
  bool Lead(Waiter& waiter, absl::Time now);
  absl::StatusOr<tuner::v1::Lead> PrepareLead(const Waiter& waiter, absl::Time now);
  void DropLeader();
  // The leader's mistake: it is refused and the next one leads.
  Work RefuseLeader(const absl::Status& status, absl::Time now);
  bool TakesCudaIpc() const;
  Work AfterLoss();
  // Tells those whose reference failed.
  void CloseFailed();
  Work QueueIfReady(absl::Time now);

  void AwaitFetch(bool awaits);
  bool TimeOut(const Waiter& waiter, absl::Time now, std::string* which) const;
  tuner::v1::Phase PhaseNow() const;
  void TellAll(absl::Time now);

  const Subject subject_;
  process::SegmentPool& segments_;
  const int64_t copy_limit_;
  const absl::Time opened_;
  std::atomic<bool> stop_{false};

  Stage stage_ = Stage::kElecting;
  std::vector<Waiter> waiters_;  // oldest first
  uint64_t leader_ = 0;
  int election_ = 0;              // counts leaders: what was begun for an earlier one is void
  bool has_lost_waiter_ = false;  // after ArgsOwned, without having withdrawn
  int failed_references_ = 0;
  absl::Status reference_failure_;  // of the last one

  // Of the present leader.
  HandOver hand_over_;
  std::shared_ptr<process::SegmentPool::Loan> loan_;
  tuner::v1::Open leading_open_;
  Caller asked_by_;
  bool refuses_cuda_ipc_ = false;  // it was of no use in this job
  std::vector<tuner::v1::VariantGrid> grids_;
  Copy copy_;
  bool awaits_fetch_ = false;  // kCopying: for the device, which may be tuned on
  std::shared_ptr<tuner::Arguments> arguments_;

  std::shared_ptr<const compile::CompiledSpace> space_;
  tuner::v1::Progress progress_;
  absl::Time told_;

  // Times of the present leader and of the job.
  absl::Time led_, sent_, owned_, expected_, compiled_, queued_, started_;
};

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_JOIN_JOB_H_
