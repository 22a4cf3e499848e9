// SPDX-License-Identifier: Apache-2.0
//
// PlanSource: where the plans of one kernel on one device come from: stored winners, tunes, first
// choices, by the policy table of PHOBOS_TUNE. The one place of these rules, for C, C++ and Python.
// Keeps the winner of each key for the process's life. Any thread; a forked child starts with
// nothing kept.
#ifndef PHOBOS_CLIENT_CPP_PLAN_SOURCE_H_
#define PHOBOS_CLIENT_CPP_PLAN_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/plan/plan.h"
#include "client/cpp/plan/promises.h"
#include "client/cpp/tune/tune.h"
#include "client/launch/per_process.h"
#include "client/launch/status.h"
#include "client/stub/wire/types.h"
#include "client/stub/wire/verbs.h"

namespace phobos {

struct KernelSource {
  std::string text;         // of the whole file, UTF-8
  std::string file_name;    // for messages
  std::string kernel;       // the function's name
  std::string device_uuid;  // "GPU-...", as nvidia-smi shows it; empty: the host chip
};

// The longest text that is read.
constexpr size_t kLongestSource = 1 << 20;

// The error for a longer one.
inline Status SourceTooLong(const std::string& file_name, size_t bytes) {
  return Status(Code::kInvalidArgument,
                file_name + " has " + std::to_string(bytes) + " bytes; at most 1 MiB is read");
}

// What a launch does where no winner is known: PHOBOS_TUNE.
enum class Policy { kAuto, kFrozen, kOff };

// "auto", "frozen", "off"; empty: $PHOBOS_TUNE, else auto. InvalidArgument lists them.
StatusOr<Policy> ParsePolicy(std::string_view text);

// The caller's part of a tune. The extents are values of the description's, in its order.
struct TuneRequest {
  std::vector<int64_t> extents;
  std::vector<uint64_t> values;
  TuneOptions options;
  TuneTimeouts timeouts;
  TuneCallbacks callbacks;
  void* stream = nullptr;  // of a GPU: the CUstream on which the arguments were written
  // On a GPU: whether the tensors may all be in the host's memory instead, of which the daemon
  // makes copies on the card.
  bool may_be_on_host = true;
  bool force = false;  // only a Result newer than the last seen here, or else the stored one
};

struct Tuned {
  Result result;
  bool cached = false;  // a stored Result answered
  std::shared_ptr<const Plan> plan;
};

struct Prepared {
  std::shared_ptr<const Plan> plan;
  std::optional<Tuned> tuned;  // by this very call
};

class PlanSource {
 public:
  // Asks nobody yet. InvalidArgument: the text or a name is not UTF-8, or the text over 1 MiB.
  static StatusOr<std::shared_ptr<PlanSource>> Open(std::shared_ptr<Client> client,
                                                    KernelSource source);
  ~PlanSource();
  PlanSource(const PlanSource&) = delete;
  PlanSource& operator=(const PlanSource&) = delete;

  const std::string& kernel() const { return source_.kernel; }

  // Asked of the daemon once a process. InvalidArgument: the text's first error, with line and
  // caret.
  StatusOr<Description> Describe();

  // The plan of a launch on `stream` (of a GPU, a CUstream). `request`: how to tune if need be (its
  // extents are not looked at); null: no reference is given. While the stream is being captured
  // nothing is looked up, tuned or loaded: what this process has is taken, else it is
  // FailedPrecondition. Errors: FailedPrecondition under kFrozen; what made a tune impossible; no
  // admissible variant; a broken promise about extents.
  StatusOr<Prepared> Prepare(const std::vector<int64_t>& extents, std::string_view policy,
                             const TuneRequest* request, void* stream = nullptr);

  // The winner's plan that this process has, without asking anybody; null: it has none.
  // Nanoseconds.
  std::shared_ptr<const Plan> Present(const std::vector<int64_t>& extents);

  // The winner; null: there is none.
  StatusOr<std::shared_ptr<const Plan>> Find(const std::vector<int64_t>& extents);

  // One variant, neither checked nor timed. FailedPrecondition: it has a race, or is not for these
  // extents.
  StatusOr<std::shared_ptr<const Plan>> Variant(const std::vector<int64_t>& extents,
                                                int32_t variant);

  // Tunes, joins a tune, or takes the stored Result that was made with the same options. Older
  // plans of the key go out of date.
  StatusOr<Tuned> Tune(const TuneRequest& request);
  Status Warm(const TuneRequest& request);

  // The current Result; nothing: there is none. An extent outside the key may be -1: any.
  StatusOr<std::optional<Result>> CurrentResult(const std::vector<int64_t>& extents);

  // Makes a Result from elsewhere the current one.
  Status Adopt(const Result& result);

 private:
  struct Choice;
  struct State;

  PlanSource(std::shared_ptr<Client> client, KernelSource source);

  StatusOr<Prepared> PresentForCapture(const std::vector<int64_t>& extents);

  template <typename Answer, typename Ask>
  StatusOr<Answer> WithSource(const Ask& ask);
  StatusOr<stub::LookupResponse> Lookup(const std::vector<Extent>& extents, bool want_description,
                                        bool want_result);
  StatusOr<std::optional<Choice>> LookUpWinner(const KernelDescription& description,
                                               const std::vector<int64_t>& extents);
  StatusOr<std::shared_ptr<const LoadedVariant>> LoadVariant(const LaunchPlan& plan);
  StatusOr<Choice> CompileVariant(int32_t variant);
  StatusOr<std::shared_ptr<const Plan>> MakePlan(const Description& description,
                                                 const std::vector<int64_t>& extents,
                                                 const Choice& choice, Plan::Validity validity);
  StatusOr<std::shared_ptr<const Plan>> Winner(const Description& description,
                                               const std::vector<int64_t>& extents);
  StatusOr<std::shared_ptr<const Plan>> FirstChoices(const Description& description,
                                                     const std::vector<int64_t>& extents);
  StatusOr<TuneOutcome> Converse(const TuneRequest& request, const Description& description,
                                 bool warm);
  StatusOr<int64_t> SeenGeneration(const KernelDescription& description,
                                   const std::vector<int64_t>& extents);
  // Adds kernel and key to an error that lacks them.
  Status Named(const Status& status, std::string key = "") const;

  const std::shared_ptr<Client> client_;
  const KernelSource source_;
  const KernelRef ref_;  // without the text
  launch::PerProcess<State> state_;
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_PLAN_SOURCE_H_
