// SPDX-License-Identifier: Apache-2.0
//
// Finder answers "what should this launch run": the current generation of a key, its fastest
// variant that is admissible for the launch's extents, and that variant's artifact (compiled again
// where it is gone or another compiler made it). Never tunes, never waits for a device. Recent
// answers are kept ready and dropped as soon as any generation is kept. Any thread.
#ifndef PHOBOS_DAEMON_ENGINE_FIND_H_
#define PHOBOS_DAEMON_ENGINE_FIND_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/compile/runner.h"
#include "daemon/engine/chips.h"
#include "daemon/engine/kernels.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"

namespace phobos::engine {

// One variant of a Result as it is to be launched.
struct Choice {
  tuner::v1::LaunchPlan plan;
  std::string substitution;  // why it is not the winner; empty when it is
  bool is_recorded = false;  // not proved free of races: the Result's recording found none
};

// The answer that tells of `choice`, which is of `result`.
tuner::v1::Hit HitOf(Choice choice, const tuner::v1::Result& result);

class Finder {
 public:
  using AnswerPtr = std::shared_ptr<const tuner::v1::LookupResponse>;

  // All must outlive it.
  Finder(const std::vector<tuner::v1::Device>& devices, Kernels& kernels, Chips& chips,
         compile::Runner& runner)
      : devices_(devices), kernels_(kernels), chips_(chips), runner_(runner) {}

  // The answer if it was given before and still holds; null otherwise. Reads memory only, but for
  // the artifact's name.
  AnswerPtr Recent(const tuner::v1::LookupRequest& request);

  // Reads the disk and may run the compiler. InvalidArgument: the kernel's text, an unknown extent;
  // NotFound: no such device.
  absl::StatusOr<AnswerPtr> Lookup(const tuner::v1::LookupRequest& request);

  // The device of that uuid; an empty one means the last, the host chip. NotFound lists those there
  // are.
  absl::StatusOr<const tuner::v1::Device*> DeviceOf(const std::string& uuid) const;

  // The winner of `result`, or its fastest variant that these extents and scalars admit.
  // FailedPrecondition: none is, with each reason.
  absl::StatusOr<Choice> Choose(const tuner::v1::Result& result, const Kernel& kernel, Chip& chip,
                                absl::Span<const tuner::v1::Extent> extents,
                                absl::Span<const tuner::v1::Scalar> scalars);

  int64_t lookups() const { return lookups_.load(std::memory_order_relaxed); }
  int64_t hits() const { return hits_.load(std::memory_order_relaxed); }

 private:
  struct Ready {
    AnswerPtr answer;
    int64_t changes = 0;
    absl::Time renewed;  // when the artifact was last noted as used
  };

  absl::StatusOr<tuner::v1::LookupResponse> Answer(const tuner::v1::LookupRequest& request);
  void KeepReady(const tuner::v1::LookupRequest& request, AnswerPtr answer, int64_t changes);

  const std::vector<tuner::v1::Device>& devices_;
  Kernels& kernels_;
  Chips& chips_;
  compile::Runner& runner_;
  std::atomic<int64_t> lookups_{0};
  std::atomic<int64_t> hits_{0};
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Ready> ready_ ABSL_GUARDED_BY(mutex_);  // by request
};

// What a launch of `variant` needs.
tuner::v1::LaunchPlan MakePlan(const compiler::v1::KernelDescription& description, int variant,
                               const compile::CompiledVariant& compiled, const std::string& chip);

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_FIND_H_
