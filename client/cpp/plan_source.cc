// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/plan_source.h"

#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/digest.h"
#include "client/cpp/gpu/memory.h"
#include "client/cpp/plan/extents.h"
#include "client/cpp/plan/load.h"
#include "client/cpp/text.h"

namespace phobos {
namespace {

constexpr char kHostDevice[] = "host";
// While a key is a miss it is looked up at most this often.
constexpr int64_t kMissNs = 1000000000;
// Plans kept for sets of extents; more are made anew, from what is loaded.
constexpr size_t kMostPlans = 1024;
// Open.newer_than_generation where no generation was seen: any will do, but it must be said.
constexpr int64_t kNoneSeen = -1;

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

KernelSource WithDefaults(KernelSource source) {
  if (source.device_uuid.empty()) source.device_uuid = kHostDevice;
  return source;
}

KernelRef RefOf(const KernelSource& source) {
  KernelRef ref;
  ref.text_digest = Sha256Hex(source.text);
  ref.kernel = source.kernel;
  ref.file_name = source.file_name;
  return ref;
}

// What a daemon is wanted for where nothing is to be tuned. An error with a reason is the answer of
// one that is there.
Status WithoutDaemon(const Status& status, const StatusOr<Policy>& policy) {
  if (status.code() != Code::kUnavailable || !policy.ok() || *policy != Policy::kOff) return status;
  const bool has_answered =
      status.detail() != nullptr && status.detail()->reason != ErrorReason::kUnspecified;
  if (has_answered) return status;
  return Status(status.code(),
                "PHOBOS_TUNE=off launches first choices, and it is the daemon that compiles them "
                "(it tunes nothing then); " +
                    status.message(),
                status.detail());
}

// A grid function of which a side is zero for the first choices: the launch runs nothing.
bool LaunchesNothing(const TuneRequest& request, const KernelDescription& description) {
  if (description.variants.empty()) return false;
  const StatusOr<Grid> grid = request.callbacks.grid(0, description.variants[0].settings);
  return grid.ok() && (grid->x == 0 || grid->y == 0 || grid->z == 0);
}

}  // namespace

// A variant that was chosen, loaded.
struct PlanSource::Choice {
  std::shared_ptr<const LoadedVariant> variant;
  Plan::Facts facts;
};

struct PlanSource::State {
  struct Key {
    std::shared_ptr<KeyEpoch> epoch = std::make_shared<KeyEpoch>(0);
    int64_t changes = 0;  // what epoch says
    std::optional<Choice> winner;
    int64_t generation = 0;  // the last one seen; 0: none

    // Of what is made from this entry.
    Plan::Validity Until(int64_t until_ns) const { return {epoch, changes, until_ns}; }
  };

  std::mutex mutex;  // guards all below; never held while the daemon is asked
  Description description;
  std::map<std::vector<int64_t>, Key> keys;
  std::map<std::vector<int64_t>, std::shared_ptr<const Plan>> plans;  // by extents
  std::map<int32_t, Choice> variants;                                 // compiled by request

  std::shared_ptr<const Plan> Current(const std::vector<int64_t>& extents) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = plans.find(extents);
    if (found == plans.end() || !found->second->IsCurrent()) return nullptr;
    return found->second;
  }

  void Keep(const std::vector<int64_t>& extents, std::shared_ptr<const Plan> plan) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (plans.size() >= kMostPlans) plans.clear();
    plans[extents] = std::move(plan);
  }

  Key Copy(const std::vector<int64_t>& key) {
    const std::lock_guard<std::mutex> lock(mutex);
    return keys[key];
  }

  // Another winner: every plan of the key made so far goes out of date.
  void Replace(const std::vector<int64_t>& key, std::optional<Choice> winner, int64_t generation) {
    const std::lock_guard<std::mutex> lock(mutex);
    Key& entry = keys[key];
    entry.epoch->store(++entry.changes);
    entry.winner = std::move(winner);
    entry.generation = std::max(entry.generation, generation);
  }
};

StatusOr<Policy> ParsePolicy(std::string_view text) {
  if (text.empty()) {
    const char* variable = getenv("PHOBOS_TUNE");
    if (variable != nullptr) text = variable;
  }
  if (text.empty() || text == "auto") return Policy::kAuto;
  if (text == "frozen") return Policy::kFrozen;
  if (text == "off") return Policy::kOff;
  return Status(Code::kInvalidArgument, "'" + std::string(text) +
                                            "' is no policy of tuning (PHOBOS_TUNE); write auto, "
                                            "frozen or off");
}

StatusOr<std::shared_ptr<PlanSource>> PlanSource::Open(std::shared_ptr<Client> client,
                                                       KernelSource source) {
  if (source.text.size() > kLongestSource) {
    return SourceTooLong(source.file_name, source.text.size());
  }
  if (!IsUtf8(source.text)) {
    return Status(Code::kInvalidArgument, source.file_name + " is not UTF-8 text");
  }
  for (const std::string* name : {&source.file_name, &source.kernel, &source.device_uuid}) {
    if (IsUtf8(*name)) continue;
    return Status(Code::kInvalidArgument, "the name '" + *name + "' is not UTF-8 text");
  }
  return std::shared_ptr<PlanSource>(
      new PlanSource(std::move(client), WithDefaults(std::move(source))));
}

PlanSource::PlanSource(std::shared_ptr<Client> client, KernelSource source)
    : client_(std::move(client)),
      source_(std::move(source)),
      ref_(RefOf(source_)),
      state_([] { return std::make_unique<State>(); }) {}

PlanSource::~PlanSource() = default;

StatusOr<Description> PlanSource::Describe() {
  State& state = state_.Get();
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.description != nullptr) return state.description;
  }
  StatusOr<stub::LookupResponse> response = Lookup({}, /*want_description=*/true, false);
  if (!response.ok()) return Named(WithoutDaemon(response.status(), ParsePolicy("")));
  std::optional<KernelDescription> description;
  if (response->hit.has_value()) description = std::move(response->hit->description);
  if (response->miss.has_value()) description = std::move(response->miss->description);
  if (!description.has_value()) {
    return Named(Status(Code::kInternal, "the daemon does not describe the kernel"));
  }
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.description == nullptr) {
    state.description = std::make_shared<const KernelDescription>(*std::move(description));
  }
  return state.description;
}

// What this process has for a launch that asks nobody; a plan that is out of date will do.
StatusOr<Prepared> PlanSource::PresentForCapture(const std::vector<int64_t>& extents) {
  State& state = state_.Get();
  Description description;
  std::optional<Choice> choice;
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    const auto plan = state.plans.find(extents);
    if (plan != state.plans.end()) return Prepared{plan->second, std::nullopt};
    description = state.description;
    if (description != nullptr && extents.size() == description->extents.size()) {
      const auto key = state.keys.find(KeyOf(*description, extents));
      if (key != state.keys.end()) choice = key->second.winner;
    }
  }
  const std::string key = description == nullptr ? "" : KeyText(*description, extents);
  if (choice.has_value()) {
    StatusOr<std::shared_ptr<const Plan>> plan = MakePlan(description, extents, *choice, {});
    if (!plan.ok()) return Named(plan.status(), key);
    return Prepared{*std::move(plan), std::nullopt};
  }
  return Named(
      Status(Code::kFailedPrecondition, "the stream is being captured, and nothing is loaded" +
                                            (key.empty() ? std::string() : " for " + key) +
                                            "; launch it once, or tune it, before the capture"),
      key);
}

StatusOr<Prepared> PlanSource::Prepare(const std::vector<int64_t>& extents,
                                       std::string_view policy_text, const TuneRequest* request,
                                       void* stream) {
  State& state = state_.Get();
  std::shared_ptr<const Plan> present = state.Current(extents);
  if (present != nullptr && present->facts().origin == Plan::Origin::kWinner) {
    return Prepared{std::move(present), std::nullopt};
  }
  const StatusOr<bool> is_captured = client_->IsCaptured(source_.device_uuid, stream);
  if (!is_captured.ok()) return Named(is_captured.status());
  if (*is_captured) return PresentForCapture(extents);
  const StatusOr<Policy> policy = ParsePolicy(policy_text);
  if (!policy.ok()) return policy.status();
  const bool may_tune = *policy == Policy::kAuto && request != nullptr;
  if (present != nullptr && *policy != Policy::kFrozen && !may_tune) {
    return Prepared{std::move(present), std::nullopt};
  }
  const StatusOr<Description> description = Describe();
  if (!description.ok()) return description.status();
  const std::string key = KeyText(**description, extents);
  if (Status status = CheckExtents(**description, extents); !status.ok()) {
    return Named(status, key);
  }
  StatusOr<std::shared_ptr<const Plan>> winner = Winner(*description, extents);
  if (!winner.ok() && *policy != Policy::kOff) return Named(winner.status(), key);
  if (winner.ok() && *winner != nullptr) return Prepared{*winner, std::nullopt};
  if (*policy == Policy::kFrozen) {
    return Named(Status(Code::kFailedPrecondition,
                        "no Result is stored for " + (key.empty() ? "this kernel" : key) +
                            ", and PHOBOS_TUNE=frozen forbids to tune; tune it before, or "
                            "set PHOBOS_TUNE=auto"),
                 key);
  }
  if (may_tune && !LaunchesNothing(*request, **description)) {
    TuneRequest here = *request;
    here.extents = extents;
    here.may_be_on_host = false;  // they are what is launched on
    StatusOr<Tuned> tuned = Tune(here);
    if (!tuned.ok()) return tuned.status();
    if (!tuned->cached) {
      // The launch's caller sees no Result.
      for (const std::string& line : LeftOutLines(tuned->result)) {
        client_->Warn(source_.kernel + ": " + line);
      }
    }
    std::shared_ptr<const Plan> plan = tuned->plan;
    return Prepared{std::move(plan), *std::move(tuned)};
  }
  StatusOr<std::shared_ptr<const Plan>> first = FirstChoices(*description, extents);
  if (!first.ok()) return Named(WithoutDaemon(first.status(), policy), key);
  return Prepared{*std::move(first), std::nullopt};
}

std::shared_ptr<const Plan> PlanSource::Present(const std::vector<int64_t>& extents) {
  std::shared_ptr<const Plan> present = state_.Get().Current(extents);
  const bool is_winner = present != nullptr && present->facts().origin == Plan::Origin::kWinner;
  return is_winner ? present : nullptr;
}

StatusOr<std::shared_ptr<const Plan>> PlanSource::Find(const std::vector<int64_t>& extents) {
  if (std::shared_ptr<const Plan> present = Present(extents); present != nullptr) return present;
  const StatusOr<Description> description = Describe();
  if (!description.ok()) return description.status();
  const std::string key = KeyText(**description, extents);
  if (Status status = CheckExtents(**description, extents); !status.ok()) {
    return Named(status, key);
  }
  StatusOr<std::shared_ptr<const Plan>> winner = Winner(*description, extents);
  if (!winner.ok()) return Named(winner.status(), key);
  return winner;
}

StatusOr<std::shared_ptr<const Plan>> PlanSource::Variant(const std::vector<int64_t>& extents,
                                                          int32_t variant) {
  const StatusOr<Description> description = Describe();
  if (!description.ok()) return description.status();
  const std::string key = KeyText(**description, extents);
  const StatusOr<Choice> choice = CompileVariant(variant);
  if (!choice.ok()) return Named(choice.status(), key);
  StatusOr<std::shared_ptr<const Plan>> plan = MakePlan(*description, extents, *choice, {});
  if (!plan.ok()) return Named(plan.status(), key);
  return plan;
}

StatusOr<Tuned> PlanSource::Tune(const TuneRequest& request) {
  const StatusOr<Description> description = Describe();
  if (!description.ok()) return description.status();
  const std::string key = KeyText(**description, request.extents);
  StatusOr<TuneOutcome> outcome = Converse(request, *description, /*warm=*/false);
  if (!outcome.ok()) return Named(outcome.status(), key);
  Tuned tuned;
  LaunchPlan plan;
  Plan::Facts facts;
  if (outcome->hit.has_value()) {
    stub::Hit& hit = *outcome->hit;
    tuned.cached = true;
    plan = std::move(hit.plan);
    facts.substitution = std::move(hit.substitution);
    facts.recorded_extents = std::move(hit.recorded_extents);
    facts.generation = hit.generation;
    if (!hit.result.has_value()) {
      StatusOr<std::optional<Result>> stored = CurrentResult(request.extents);
      if (!stored.ok()) return stored.status();
      hit.result = *std::move(stored);
    }
    if (hit.result.has_value()) tuned.result = *std::move(hit.result);
  } else {
    stub::TuneDone& done = *outcome->done;
    tuned.cached = done.cached;
    plan = std::move(done.plan);
    tuned.result = std::move(done.result);
    facts.generation = tuned.result.generation;
    facts.recorded_extents = RecordedExtents(tuned.result);
  }
  StatusOr<std::shared_ptr<const LoadedVariant>> loaded = LoadVariant(plan);
  if (!loaded.ok()) return Named(loaded.status(), key);
  const Choice choice = {*std::move(loaded), std::move(facts)};
  State& state = state_.Get();
  const std::vector<int64_t> values = KeyOf(**description, request.extents);
  const bool is_winner = choice.facts.substitution.empty();
  state.Replace(values, is_winner ? std::optional<Choice>(choice) : std::nullopt,
                choice.facts.generation);
  StatusOr<std::shared_ptr<const Plan>> made =
      MakePlan(*description, request.extents, choice, state.Copy(values).Until(0));
  if (!made.ok()) return Named(made.status(), key);
  state.Keep(request.extents, *made);
  tuned.plan = *std::move(made);
  return tuned;
}

Status PlanSource::Warm(const TuneRequest& request) {
  const StatusOr<Description> description = Describe();
  if (!description.ok()) return description.status();
  const StatusOr<TuneOutcome> outcome = Converse(request, *description, /*warm=*/true);
  if (!outcome.ok()) return Named(outcome.status(), KeyText(**description, request.extents));
  return Status();
}

StatusOr<std::optional<Result>> PlanSource::CurrentResult(const std::vector<int64_t>& extents) {
  const StatusOr<Description> description = Describe();
  if (!description.ok()) return description.status();
  const std::vector<std::string>& names = (*description)->extents;
  if (extents.size() != names.size()) return Named(CheckExtents(**description, extents));
  std::vector<Extent> known;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] >= 0) known.push_back({names[i], extents[i]});
  }
  StatusOr<stub::LookupResponse> response = Lookup(known, false, /*want_result=*/true);
  if (!response.ok()) return Named(response.status(), KeyText(**description, extents));
  if (!response->hit.has_value()) return std::optional<Result>();
  return std::move(response->hit->result);
}

Status PlanSource::Adopt(const Result& result) {
  const StatusOr<Description> description = Describe();
  if (!description.ok()) return description.status();
  const StatusOr<stub::AdoptResponse> response =
      WithSource<stub::AdoptResponse>([&](const KernelRef& ref) {
        return client_->daemon().Adopt({ref, result}, client_->patience());
      });
  if (!response.ok()) return Named(response.status());
  std::vector<int64_t> key;
  for (const std::string& name : (*description)->key) {
    for (const Extent& extent : result.key) {
      if (extent.name == name) key.push_back(extent.value);
    }
  }
  state_.Get().Replace(key, std::nullopt, response->generation.value_or(0));
  return Status();
}

// Asks with the text's digest alone, and again with the text where the daemon does not know it.
template <typename Answer, typename Ask>
StatusOr<Answer> PlanSource::WithSource(const Ask& ask) {
  StatusOr<Answer> answer = ask(ref_);
  if (!answer.ok() || !answer->need_source.has_value()) return answer;
  KernelRef ref = ref_;
  ref.source_text = source_.text;
  answer = ask(ref);
  if (answer.ok() && answer->need_source.has_value()) {
    return Status(Code::kInternal, "the daemon asks for the kernel's text again and again");
  }
  return answer;
}

StatusOr<stub::LookupResponse> PlanSource::Lookup(const std::vector<Extent>& extents,
                                                  bool want_description, bool want_result) {
  return WithSource<stub::LookupResponse>([&](const KernelRef& ref) {
    stub::LookupRequest request;
    request.kernel = ref;
    request.device_uuid = source_.device_uuid;
    request.extents = extents;
    request.want_description = want_description;
    request.want_result = want_result;
    return client_->daemon().Lookup(request, client_->patience());
  });
}

StatusOr<std::optional<PlanSource::Choice>> PlanSource::LookUpWinner(
    const KernelDescription& description, const std::vector<int64_t>& extents) {
  StatusOr<stub::LookupResponse> response =
      Lookup(NamedExtents(description, extents), false, false);
  if (!response.ok()) return response.status();
  if (!response->hit.has_value()) return std::optional<Choice>();
  const stub::Hit& hit = *response->hit;
  StatusOr<std::shared_ptr<const LoadedVariant>> loaded = LoadVariant(hit.plan);
  if (!loaded.ok()) return loaded.status();
  Choice choice;
  choice.variant = *std::move(loaded);
  choice.facts.generation = hit.generation;
  choice.facts.substitution = hit.substitution;
  choice.facts.recorded_extents = hit.recorded_extents;
  if (!hit.substitution.empty()) client_->Warn(source_.kernel + ": " + hit.substitution);
  return std::optional<Choice>(std::move(choice));
}

// The plan of the winner for these extents; null: the key is a miss.
StatusOr<std::shared_ptr<const Plan>> PlanSource::Winner(const Description& description,
                                                         const std::vector<int64_t>& extents) {
  State& state = state_.Get();
  const std::vector<int64_t> key = KeyOf(*description, extents);
  const State::Key entry = state.Copy(key);
  const Plan::Validity validity = entry.Until(0);
  if (entry.winner.has_value()) {
    StatusOr<std::shared_ptr<const Plan>> plan =
        MakePlan(description, extents, *entry.winner, validity);
    if (plan.ok()) state.Keep(extents, *plan);
    // Not admissible for these extents: the daemon knows the fastest one that is.
    if (plan.ok() || plan.status().code() != Code::kFailedPrecondition) return plan;
  }
  StatusOr<std::optional<Choice>> choice = LookUpWinner(*description, extents);
  if (!choice.ok()) return choice.status();
  if (!choice->has_value()) return std::shared_ptr<const Plan>();
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    State::Key& now = state.keys[key];
    now.generation = std::max(now.generation, (*choice)->facts.generation);
    if ((*choice)->facts.substitution.empty() && !now.winner.has_value()) now.winner = **choice;
  }
  StatusOr<std::shared_ptr<const Plan>> plan = MakePlan(description, extents, **choice, validity);
  if (plan.ok()) state.Keep(extents, *plan);
  return plan;
}

StatusOr<std::shared_ptr<const Plan>> PlanSource::FirstChoices(
    const Description& description, const std::vector<int64_t>& extents) {
  StatusOr<Choice> choice = CompileVariant(0);
  if (!choice.ok()) return choice.status();
  choice->facts.origin = Plan::Origin::kFirstChoices;
  State& state = state_.Get();
  const std::vector<int64_t> key = KeyOf(*description, extents);
  StatusOr<std::shared_ptr<const Plan>> plan =
      MakePlan(description, extents, *choice, state.Copy(key).Until(NowNs() + kMissNs));
  if (plan.ok()) state.Keep(extents, *plan);
  return plan;
}

StatusOr<std::shared_ptr<const LoadedVariant>> PlanSource::LoadVariant(const LaunchPlan& plan) {
  StatusOr<std::shared_ptr<Gpu>> gpu = client_->Card(source_.device_uuid);
  if (!gpu.ok()) return gpu.status();
  return Load(client_->daemon(), plan, *std::move(gpu), client_->patience());
}

StatusOr<PlanSource::Choice> PlanSource::CompileVariant(int32_t variant) {
  State& state = state_.Get();
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    const auto found = state.variants.find(variant);
    if (found != state.variants.end()) return found->second;
  }
  StatusOr<stub::CompileResponse> response =
      WithSource<stub::CompileResponse>([&](const KernelRef& ref) {
        stub::CompileRequest request;
        request.kernel = ref;
        request.device_uuid = source_.device_uuid;
        request.variant = variant;
        return client_->daemon().Compile(request, client_->patience());
      });
  if (!response.ok()) return response.status();
  if (!response->compiled.has_value()) {
    return Status(Code::kInternal, "the daemon answered Compile with nothing");
  }
  const stub::Compiled& compiled = *response->compiled;
  if (compiled.race_verdict == RaceVerdict::kUnproven) {
    client_->Warn(source_.kernel + ": not proved free of races (" + compiled.race_detail +
                  "); tune it with a reference to have it checked");
  }
  StatusOr<std::shared_ptr<const LoadedVariant>> loaded = LoadVariant(compiled.plan);
  if (!loaded.ok()) return loaded.status();
  Choice choice;
  choice.variant = *std::move(loaded);
  choice.facts.origin = Plan::Origin::kVariant;
  choice.facts.race_verdict = compiled.race_verdict;
  choice.facts.race_detail = compiled.race_detail;
  const std::lock_guard<std::mutex> lock(state.mutex);
  return state.variants.emplace(variant, std::move(choice)).first->second;
}

StatusOr<std::shared_ptr<const Plan>> PlanSource::MakePlan(const Description& description,
                                                           const std::vector<int64_t>& extents,
                                                           const Choice& choice,
                                                           Plan::Validity validity) {
  StatusOr<Promises> promises = Promises::Make(description, choice.variant->plan.variant, extents);
  if (!promises.ok()) return promises.status();
  const std::string remark = RemarkOnExtents(*description, extents, choice.facts.recorded_extents);
  if (!remark.empty()) client_->Warn(source_.kernel + ": " + remark);
  std::shared_ptr<launch::HostPool> pool;
  if (choice.variant->gpu == nullptr) {
    StatusOr<std::shared_ptr<launch::HostPool>> made = client_->Pool(source_.device_uuid);
    if (!made.ok()) return made.status();
    pool = *std::move(made);
  }
  return Plan::Make(choice.variant, *std::move(promises), choice.facts, std::move(validity),
                    std::move(pool));
}

StatusOr<TuneOutcome> PlanSource::Converse(const TuneRequest& request,
                                           const Description& description, bool warm) {
  if (Status status = CheckExtents(*description, request.extents); !status.ok()) return status;
  if (request.values.size() != description->parameters.size()) {
    return Status(Code::kInvalidArgument,
                  source_.kernel + " has " + std::to_string(description->parameters.size()) +
                      " parameters, but " + std::to_string(request.values.size()) +
                      " values were given");
  }
  // Copying the arguments reads them: a bad address must be found before.
  if (Status status = Promises::CheckTensors(*description, request.extents, request.values);
      !status.ok()) {
    return status;
  }
  const StatusOr<std::shared_ptr<Gpu>> gpu = client_->Card(source_.device_uuid);
  // A process that has no driver can have a card tuned all the same.
  if (!gpu.ok() && !request.may_be_on_host) return gpu.status();
  std::optional<GpuMemory> memory;
  if (gpu.ok() && *gpu != nullptr) {
    const StatusOr<bool> are_on_card =
        AreOnCard(**gpu, *description, request.extents, request.values, request.may_be_on_host);
    if (!are_on_card.ok()) return are_on_card.status();
    if (*are_on_card) memory.emplace(*gpu, static_cast<cuda::Stream>(request.stream));
  }
  if (memory.has_value()) {
    // Before anybody is asked: a stream that is being captured is refused.
    if (Status status = memory->Settle(); !status.ok()) return status;
  }
  TuneSpec spec;
  spec.kernel = ref_;
  spec.source_text = source_.text;
  spec.device_uuid = source_.device_uuid;
  spec.description = description;
  spec.extents = request.extents;
  spec.values = request.values;
  spec.memory = memory.has_value() ? &*memory : nullptr;
  spec.options = request.options;
  spec.timeouts = request.timeouts;
  spec.callbacks = request.callbacks;
  spec.warm = warm;
  if (request.force) {
    const StatusOr<int64_t> seen = SeenGeneration(*description, request.extents);
    if (!seen.ok()) return seen.status();
    spec.newer_than_generation = *seen > 0 ? *seen : kNoneSeen;
  }
  return RunTune(client_->daemon(), spec, client_->patience());
}

// The last generation that this process saw at the key, else the stored one; 0: there is none.
StatusOr<int64_t> PlanSource::SeenGeneration(const KernelDescription& description,
                                             const std::vector<int64_t>& extents) {
  const int64_t seen = state_.Get().Copy(KeyOf(description, extents)).generation;
  if (seen > 0) return seen;
  const StatusOr<stub::LookupResponse> response =
      Lookup(NamedExtents(description, extents), false, false);
  if (!response.ok()) return response.status();
  return response->hit.has_value() ? response->hit->generation : 0;
}

Status PlanSource::Named(const Status& status, std::string key) const {
  auto detail = status.detail() == nullptr ? std::make_shared<ErrorDetail>()
                                           : std::make_shared<ErrorDetail>(*status.detail());
  if (detail->kernel.empty()) detail->kernel = source_.kernel;
  if (detail->key.empty()) detail->key = std::move(key);
  return Status(status.code(), status.message(), std::move(detail));
}

}  // namespace phobos
