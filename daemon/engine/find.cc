// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/find.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "daemon/engine/key.h"
#include "daemon/error/error.h"
#include "daemon/tuner/admission.h"

namespace phobos::engine {
namespace {

// Answers kept ready: at most this many, each with its request of bounded size.
constexpr size_t kMostReady = 4096;
constexpr size_t kMostReadyRequest = 2048;
constexpr size_t kMostReadyAnswer = 16384;

// An artifact in use is noted as used this often, so that it is not the first to go.
constexpr absl::Duration kRenewal = absl::Minutes(10);

// The winner first, then the other timed variants, fastest first, equal times by index.
std::vector<const tuner::v1::VariantResult*> ByPreference(const tuner::v1::Result& result) {
  std::vector<const tuner::v1::VariantResult*> order;
  for (const tuner::v1::VariantResult& variant : result.variants()) {
    if (variant.status() == tuner::v1::VARIANT_STATUS_TIMED) order.push_back(&variant);
  }
  std::sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
    const bool a_wins = a->index() == result.winner();
    const bool b_wins = b->index() == result.winner();
    if (a_wins != b_wins) return a_wins;
    return std::make_pair(a->best_ns(), a->index()) < std::make_pair(b->best_ns(), b->index());
  });
  return order;
}

bool NamesScalar(const compiler::v1::Condition& condition,
                 const compiler::v1::KernelDescription& description) {
  return std::any_of(condition.program().begin(), condition.program().end(), [&](const auto& op) {
    return op.code() == compiler::v1::ConditionOp::PUSH_NAME &&
           std::any_of(description.parameters().begin(), description.parameters().end(),
                       [&](const auto& parameter) { return parameter.name() == op.name(); });
  });
}

// For a lookup, which knows no scalars: what depends on them is the launch's to decide.
compiler::v1::KernelDescription WithoutScalarConditions(
    const compiler::v1::KernelDescription& description) {
  compiler::v1::KernelDescription decidable = description;
  decidable.clear_conditions();
  for (const compiler::v1::Condition& condition : description.conditions()) {
    if (!NamesScalar(condition, description)) *decidable.add_conditions() = condition;
  }
  return decidable;
}

}  // namespace

absl::StatusOr<const tuner::v1::Device*> Finder::DeviceOf(const std::string& uuid) const {
  for (const tuner::v1::Device& device : devices_) {
    if (device.uuid() == uuid) return &device;
  }
  if (uuid.empty() && !devices_.empty()) return &devices_.back();
  const std::string known =
      absl::StrJoin(devices_, ", ", [](std::string* out, const tuner::v1::Device& device) {
        absl::StrAppend(out, device.uuid());
      });
  return error::Make(absl::StatusCode::kNotFound, tuner::v1::ERROR_REASON_NO_DEVICE,
                     absl::StrCat("this daemon has no device '", uuid, "'"),
                     absl::StrCat("use one of: ", known));
}

Finder::AnswerPtr Finder::Recent(const tuner::v1::LookupRequest& request) {
  const int64_t changes = chips_.changes();
  if (request.ByteSizeLong() >= kMostReadyRequest) return nullptr;  // such are not kept
  const std::string name = request.SerializeAsString();
  AnswerPtr answer;
  bool is_renewal_due = false;
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = ready_.find(name);
    if (found == ready_.end() || found->second.changes != changes) return nullptr;
    answer = found->second.answer;
    is_renewal_due = absl::Now() > found->second.renewed + kRenewal;
  }
  // A renewal, and an artifact that is gone, take the long way.
  if (answer->has_hit() &&
      (is_renewal_due || access(answer->hit().plan().artifact_path().c_str(), F_OK) != 0)) {
    return nullptr;
  }
  lookups_.fetch_add(1, std::memory_order_relaxed);
  if (answer->has_hit()) hits_.fetch_add(1, std::memory_order_relaxed);
  return answer;
}

absl::StatusOr<Finder::AnswerPtr> Finder::Lookup(const tuner::v1::LookupRequest& request) {
  lookups_.fetch_add(1, std::memory_order_relaxed);
  // Read before the store is: a generation kept meanwhile makes this answer stale, not fresh.
  const int64_t changes = chips_.changes();
  ASSIGN_OR_RETURN(tuner::v1::LookupResponse response, Answer(request));
  if (response.has_hit()) hits_.fetch_add(1, std::memory_order_relaxed);
  auto answer = std::make_shared<const tuner::v1::LookupResponse>(std::move(response));
  const bool is_small = request.ByteSizeLong() < kMostReadyRequest &&
                        answer->ByteSizeLong() < kMostReadyAnswer && !request.want_result() &&
                        request.kernel().source_text().empty();
  if (is_small && !answer->has_need_source()) KeepReady(request, answer, changes);
  return answer;
}

absl::StatusOr<tuner::v1::LookupResponse> Finder::Answer(const tuner::v1::LookupRequest& request) {
  ASSIGN_OR_RETURN(const tuner::v1::Device* device, DeviceOf(request.device_uuid()));
  Chip& chip = *chips_.Find(device->chip());
  ASSIGN_OR_RETURN(const KernelPtr kernel, kernels_.Resolve(request.kernel(), *chip.results));
  tuner::v1::LookupResponse response;
  if (kernel == nullptr) {
    response.mutable_need_source();
    return response;
  }
  const std::vector<tuner::v1::Extent> extents(request.extents().begin(), request.extents().end());
  const bool only_describes =
      extents.empty() && request.want_description() && !kernel->description.extents().empty();
  if (only_describes) {
    *response.mutable_miss()->mutable_description() = kernel->description;
    return response;
  }
  RETURN_IF_ERROR(CheckKeyExtents(kernel->description, extents));
  const cache::KeyColumns key = MakeKey(kernel->description, *device, extents);
  ASSIGN_OR_RETURN(const std::shared_ptr<const tuner::v1::Result> result,
                   chips_.Current(chip, key.digest));
  if (result == nullptr) {
    response.mutable_miss()->set_key(ValuesText(key.values));
    if (request.want_description()) {
      *response.mutable_miss()->mutable_description() = kernel->description;
    }
    return response;
  }
  ASSIGN_OR_RETURN(Choice choice, Choose(*result, *kernel, chip, extents, {}));
  tuner::v1::Hit& hit = *response.mutable_hit();
  hit = HitOf(std::move(choice), *result);
  if (request.want_result()) *hit.mutable_result() = *result;
  if (request.want_description()) *hit.mutable_description() = kernel->description;
  return response;
}

absl::StatusOr<Choice> Finder::Choose(const tuner::v1::Result& result, const Kernel& kernel,
                                      Chip& chip, absl::Span<const tuner::v1::Extent> extents,
                                      absl::Span<const tuner::v1::Scalar> scalars) {
  const compiler::v1::KernelDescription decidable =
      scalars.empty() ? WithoutScalarConditions(kernel.description) : kernel.description;
  std::string reasons;
  for (const tuner::v1::VariantResult* variant : ByPreference(result)) {
    const int index = variant->index();
    if (index < 0 || index >= kernel.description.variants_size()) continue;
    // Without all extents there is no launch to admit: the question is who won.
    const tuner::Admission admission =
        static_cast<int>(extents.size()) < kernel.description.extents_size()
            ? tuner::Admission{}
            : tuner::Admit(decidable, index, extents, scalars, nullptr);
    std::string reason = admission.reason;
    if (admission.status == tuner::v1::VARIANT_STATUS_UNSPECIFIED) {
      ASSIGN_OR_RETURN(const compile::CompiledVariant compiled,
                       runner_.CompileOne(kernel.source, kernel.description, index, chip.name,
                                          *chip.results, chip.artifacts));
      // It may be a newer compiler's than the tune's, which may have found a race meanwhile.
      const tuner::Admission judged = tuner::JudgeCompiled(compiled.variant);
      const bool is_unproved = tuner::NeedsRecording(compiled.variant);
      const bool is_unknown = is_unproved && !variant->race_recorded();
      if (judged.status == tuner::v1::VARIANT_STATUS_UNSPECIFIED && !is_unknown) {
        return Choice{MakePlan(kernel.description, index, compiled, chip.name), reasons,
                      is_unproved};
      }
      reason = is_unknown ? "the present compiler cannot prove it free of races, and its tune made "
                            "no recording"
                          : judged.reason;
    }
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", "variant ", index, ": ", reason);
  }
  return error::Make(absl::StatusCode::kFailedPrecondition, tuner::v1::ERROR_REASON_NO_WINNER,
                     absl::StrCat("no variant of the stored Result fits this launch: ", reasons),
                     "tune with these arguments and force, or make what decides between the "
                     "variants a part of the key");
}

void Finder::KeepReady(const tuner::v1::LookupRequest& request, AnswerPtr answer, int64_t changes) {
  // Without unknown fields, so that one question has one name, and nobody fills the place of others
  // with names that differ in nothing.
  tuner::v1::LookupRequest known = request;
  known.DiscardUnknownFields();
  const absl::MutexLock lock(&mutex_);
  if (ready_.size() >= kMostReady) ready_.clear();
  ready_[known.SerializeAsString()] = Ready{std::move(answer), changes, absl::Now()};
}

tuner::v1::Hit HitOf(Choice choice, const tuner::v1::Result& result) {
  tuner::v1::Hit hit;
  *hit.mutable_plan() = std::move(choice.plan);
  hit.set_substitution(std::move(choice.substitution));
  hit.set_generation(result.generation());
  if (choice.is_recorded) *hit.mutable_recorded_extents() = result.extents();
  return hit;
}

tuner::v1::LaunchPlan MakePlan(const compiler::v1::KernelDescription& description, int variant,
                               const compile::CompiledVariant& compiled, const std::string& chip) {
  tuner::v1::LaunchPlan plan;
  const compiler::v1::VariantSettings& settings = description.variants(variant);
  plan.set_variant(variant);
  *plan.mutable_settings() = settings.settings();
  *plan.mutable_artifact() = compiled.variant.artifact();
  plan.set_artifact_path(compiled.artifact_path);
  plan.set_chip(chip);
  plan.set_threads(settings.threads());
  for (const compiler::v1::Parameter& parameter : description.parameters()) {
    plan.add_slots(parameter.name());
  }
  for (const std::string& extent : description.extents()) {
    plan.add_slots(absl::StrCat("extent:", extent));
  }
  return plan;
}

}  // namespace phobos::engine
