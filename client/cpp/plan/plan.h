// SPDX-License-Identifier: Apache-2.0
//
// Plan: one variant of a kernel, loaded, for one set of extents; what launches. Immutable but for
// its going out of date. Any thread; a forked child may go on launching it.
#ifndef PHOBOS_CLIENT_CPP_PLAN_PLAN_H_
#define PHOBOS_CLIENT_CPP_PLAN_PLAN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "client/cpp/gpu/addresses.h"
#include "client/cpp/gpu/variant.h"
#include "client/cpp/plan/promises.h"
#include "client/launch/host.h"
#include "client/launch/status.h"
#include "client/stub/wire/types.h"

namespace phobos {

// A variant's code in this process.
struct LoadedVariant {
  // On the host chip.
  Fd memory;  // holds the code where it came from the daemon as bytes; must outlive `kernel`
  std::unique_ptr<launch::HostKernel> kernel;
  // On a GPU.
  std::unique_ptr<GpuVariant> gpu;

  LaunchPlan plan;
};

// Counts the changes of the winner of one key in this process.
using KeyEpoch = std::atomic<int64_t>;

class Plan {
 public:
  enum class Origin { kWinner, kFirstChoices, kVariant };

  // What a user may want to know of it.
  struct Facts {
    Origin origin = Origin::kWinner;
    int64_t generation = 0;    // kWinner
    std::string substitution;  // not empty: this is not the winner, and why
    RaceVerdict race_verdict = RaceVerdict::kUnspecified;  // not kWinner
    std::string race_detail;
    // Not empty: no proof says that it is free of races, only a recording of a launch with these.
    std::vector<Extent> recorded_extents;
  };

  // How long it may be launched.
  struct Validity {
    std::shared_ptr<const KeyEpoch> epoch;  // out of date when this is not `made_at`; null: never
    int64_t made_at = 0;
    int64_t until_ns = 0;  // of CLOCK_MONOTONIC; 0: for ever
  };

  // Internal: the plan's slots do not fit the description. `pool`: on the host chip, else null.
  static StatusOr<std::shared_ptr<const Plan>> Make(std::shared_ptr<const LoadedVariant> variant,
                                                    Promises promises, Facts facts,
                                                    Validity validity,
                                                    std::shared_ptr<launch::HostPool> pool);

  enum class Outcome { kLaunched, kLookAgain };

  // Runs the kernel: on the host chip it is done on return; on a GPU it is queued on `stream`
  // (a CUstream; null: the default one) in the caller's context. kLookAgain: nothing was launched,
  // the plan is out of date, and the stream is not being captured. `values`: one a parameter, a
  // tensor's address or a scalar's bits. A grid with a zero launches nothing, and is kLaunched.
  // InvalidArgument: a promise that the launch breaks, a tensor elsewhere than on the card; on a
  // GPU also the driver's errors, and FailedPrecondition: it would have to be loaded during a
  // capture.
  StatusOr<Outcome> Launch(const uint64_t* values, const Grid& grid, void* stream = nullptr) const;

  bool IsCurrent() const;

  const LaunchPlan& variant() const { return variant_->plan; }
  const Facts& facts() const { return facts_; }
  const Promises& promises() const { return promises_; }
  // One setting's value, null when there is none of that name.
  const Constant* Setting(std::string_view name) const;

 private:
  Plan(std::shared_ptr<const LoadedVariant> variant, Promises promises, Facts facts,
       Validity validity, std::shared_ptr<launch::HostPool> pool);
  Status Refusal(const Status& status) const;
  // Whether the stream takes what is launched now into a graph, for which no other plan is looked
  // for.
  bool IsCaptured(void* stream) const;

  const std::shared_ptr<const LoadedVariant> variant_;
  const Promises promises_;
  const Facts facts_;
  const Validity validity_;
  const std::shared_ptr<launch::HostPool> pool_;
  // Where each slot comes from: a parameter's value, or an extent's.
  struct Slot {
    bool is_extent = false;
    size_t index = 0;
  };
  std::vector<Slot> slots_;
  std::optional<CardAddresses> addresses_;  // on a GPU
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_PLAN_PLAN_H_
