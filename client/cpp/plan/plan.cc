// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/plan/plan.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "client/launch/cuda/capture.h"

namespace phobos {
namespace {

constexpr std::string_view kExtentSlot = "extent:";
// Kernels with more slots than this, which are rare, pay for an allocation a launch.
constexpr size_t kSlotsOnStack = 32;

// Coarse is enough for what lasts a second, and several times cheaper.
int64_t CoarseNowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

template <typename List, typename Matches>
bool FindIndex(const List& list, const Matches& matches, size_t& index) {
  const auto found = std::find_if(list.begin(), list.end(), matches);
  index = static_cast<size_t>(found - list.begin());
  return found != list.end();
}

}  // namespace

Plan::Plan(std::shared_ptr<const LoadedVariant> variant, Promises promises, Facts facts,
           Validity validity, std::shared_ptr<launch::HostPool> pool)
    : variant_(std::move(variant)),
      promises_(std::move(promises)),
      facts_(std::move(facts)),
      validity_(std::move(validity)),
      pool_(std::move(pool)) {}

StatusOr<std::shared_ptr<const Plan>> Plan::Make(std::shared_ptr<const LoadedVariant> variant,
                                                 Promises promises, Facts facts, Validity validity,
                                                 std::shared_ptr<launch::HostPool> pool) {
  std::shared_ptr<Plan> plan(new Plan(std::move(variant), std::move(promises), std::move(facts),
                                      std::move(validity), std::move(pool)));
  const KernelDescription& description = plan->promises_.description();
  for (const std::string& name : plan->variant_->plan.slots) {
    Slot slot;
    slot.is_extent = name.starts_with(kExtentSlot);
    const std::string_view bare =
        std::string_view(name).substr(slot.is_extent ? kExtentSlot.size() : 0);
    const bool is_found =
        slot.is_extent
            ? FindIndex(
                  description.extents, [&](const auto& e) { return e == bare; }, slot.index)
            : FindIndex(
                  description.parameters, [&](const auto& p) { return p.name == bare; },
                  slot.index);
    if (!is_found) {
      return Status(Code::kInternal, "the compiled kernel " + description.kernel + " wants '" +
                                         name + "', which its description does not have");
    }
    plan->slots_.push_back(slot);
  }
  if (const GpuVariant* gpu = plan->variant_->gpu.get(); gpu != nullptr) {
    StatusOr<std::vector<CardAddresses::Tensor>> tensors =
        TensorsWithBytes(description, plan->promises_.extents());
    if (!tensors.ok()) return tensors.status();
    plan->addresses_.emplace(gpu->gpu(), *std::move(tensors));
  }
  return std::shared_ptr<const Plan>(std::move(plan));
}

bool Plan::IsCaptured(void* stream) const {
  if (variant_->gpu == nullptr) return false;
  const GpuContext current(variant_->gpu->gpu());
  if (!current.status().ok()) return false;
  const StatusOr<bool> is_captured =
      launch::cuda::IsCaptured(variant_->gpu->gpu().driver(), static_cast<cuda::Stream>(stream));
  return is_captured.ok() && *is_captured;
}

bool Plan::IsCurrent() const {
  if (validity_.epoch != nullptr &&
      validity_.epoch->load(std::memory_order_relaxed) != validity_.made_at) {
    return false;
  }
  return validity_.until_ns == 0 || CoarseNowNs() < validity_.until_ns;
}

StatusOr<Plan::Outcome> Plan::Launch(const uint64_t* values, const Grid& grid, void* stream) const {
  if (!IsCurrent() && !IsCaptured(stream)) return Outcome::kLookAgain;
  const StatusOr<int64_t> blocks = launch::BlockCount(grid);
  if (!blocks.ok()) return Refusal(blocks.status());
  if (*blocks == 0) return Outcome::kLaunched;
  if (Status status = promises_.Check(values, grid); !status.ok()) return Refusal(status);
  if (addresses_.has_value()) {
    if (Status status = addresses_->Check(values); !status.ok()) return Refusal(status);
  }
  std::array<uint64_t, kSlotsOnStack> few;
  std::vector<uint64_t> many;
  uint64_t* slots = few.data();
  if (slots_.size() > kSlotsOnStack) {
    many.resize(slots_.size());
    slots = many.data();
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    slots[i] = slot.is_extent ? static_cast<uint64_t>(promises_.extents()[slot.index])
                              : values[slot.index];
  }
  if (variant_->gpu == nullptr) {
    pool_->Run(*variant_->kernel, slots, grid);
    return Outcome::kLaunched;
  }
  if (Status status =
          variant_->gpu->Launch(slots, slots_.size(), grid, static_cast<cuda::Stream>(stream));
      !status.ok()) {
    return Refusal(status);
  }
  return Outcome::kLaunched;
}

const Constant* Plan::Setting(std::string_view name) const {
  for (const Constant& constant : variant_->plan.settings) {
    if (constant.name == name) return &constant;
  }
  return nullptr;
}

Status Plan::Refusal(const Status& status) const {
  const KernelDescription& description = promises_.description();
  auto detail = status.detail() == nullptr ? std::make_shared<ErrorDetail>()
                                           : std::make_shared<ErrorDetail>(*status.detail());
  if (status.code() == Code::kInvalidArgument) detail->reason = ErrorReason::kBadArgument;
  detail->kernel = description.kernel;
  detail->key = KeyText(description, promises_.extents());
  return Status(status.code(), status.message(), std::move(detail));
}

}  // namespace phobos
