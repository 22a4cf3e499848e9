// SPDX-License-Identifier: Apache-2.0
//
// Worker: one device as the tuner sees it, in a process of its own that may die at any call and is
// started again by the next. Begin gives it a job; Check, WarmUp and Round run variants of that
// job; nothing of a job survives the process, so after a death the tuner calls Begin and Load again
// (tuner/field.cc). One thread at a time. Implemented by supervisor.h over a socketpair, and by
// tests in memory.
#ifndef PHOBOS_DAEMON_WORKER_WORKER_H_
#define PHOBOS_DAEMON_WORKER_WORKER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/worker/messages.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::worker {

// A file descriptor to shared memory that the caller owns and the worker maps for reading.
struct SharedMemory {
  int fd = -1;
  int64_t bytes = 0;
};

// How the last call ended when its Status is Aborted: the process died or was killed.
struct Death {
  int variant = -1;        // the last that ran in that call, its launch ended or not; -1: none did
  bool timed_out = false;  // killed by us for running past the launch limit
  bool killed = false;     // by somebody else, perhaps by the system for want of memory
  std::string how;  // "signal 11 (Segmentation fault)", "exit status 3", "ran longer than 1.0 s"
};

class Worker {
 public:
  virtual ~Worker() = default;

  // The device; starts the process when it is not running.
  virtual absl::StatusOr<tuner::v1::Device> Describe() = 0;

  // Says what Load will be called for once a job has begun, so that a GPU's linker can work beside
  // the upload. May leave some out.
  virtual absl::Status Expect(const std::vector<VariantSetup>& variants) = 0;

  // Copies arguments of a later job to a device with memory of its own. The job with that token
  // finds them there, if none came between; without, it copies them itself. Between jobs only.
  virtual absl::Status Preload(const PreloadCall&, const SharedMemory&) { return absl::OkStatus(); }

  // Takes over a job: maps `memory`, lays out the tensors with canaries on both sides.
  // ResourceExhausted: needs more memory than the device has, with both numbers.
  virtual absl::Status Begin(const JobSetup& setup, const std::vector<SharedMemory>& memory) = 0;

  // Loads a variant's artifact; InvalidArgument etc. concern this variant alone.
  virtual absl::StatusOr<LoadOutcome> Load(const VariantSetup& variant) = 0;

  // Runs one variant once on fresh copies and compares. `seed` makes the canaries.
  virtual absl::StatusOr<CheckOutcome> Check(int variant, uint64_t seed) = 0;

  // Runs the race-recording form of a variant once on fresh copies and judges what it wrote down:
  // TIMED (no conflict), RACE with the witness, or RACE_CHECK_FAILED with the reason.
  virtual absl::StatusOr<CheckOutcome> Record(int, uint64_t) {
    return absl::UnimplementedError("this worker runs no race-recording forms");
  }

  // Launches the variants in turn for at least `at_least`; returns the number of launches.
  virtual absl::StatusOr<int64_t> WarmUp(const std::vector<int>& variants,
                                         absl::Duration at_least) = 0;

  // One round: each variant launched once in this order, restored and flushed before. One sample
  // each.
  virtual absl::StatusOr<RoundOutcome> Round(const std::vector<int>& order, bool flush) = 0;

  // Copies tensors that other processes have on the device into `to`. Between jobs only.
  // InvalidArgument: a tensor outside its allocation or its place; else why they cannot be opened.
  virtual absl::Status Fetch(const FetchCall&, const SharedMemory&) {
    return absl::UnimplementedError("this worker's device has no memory that processes share");
  }

  // Lets go of the job's memory mappings and kernels (the memory itself is kept warm for the next
  // job).
  virtual absl::Status End() = 0;

  // A launch that runs longer than this is killed. Kept over deaths.
  void SetLaunchLimit(absl::Duration limit) { launch_limit_ = limit; }

  // REQUIRES: the last call gave Aborted.
  const Death& LastDeath() const { return last_death_; }

 protected:
  absl::Duration launch_limit_ = absl::Seconds(10);
  Death last_death_;
};

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_WORKER_H_
