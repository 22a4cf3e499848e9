// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/gpu/addresses.h"

#include <optional>
#include <utility>

namespace phobos {

CardAddresses::CardAddresses(Gpu& gpu, std::vector<Tensor> tensors)
    : gpu_(gpu),
      tensors_(std::move(tensors)),
      seen_(std::make_unique<std::atomic<uint64_t>[]>(tensors_.size())) {}

StatusOr<bool> CardAddresses::AreOnHost(const uint64_t* values) const {
  const GpuContext current(gpu_);
  if (!current.status().ok()) return current.status();
  for (const Tensor& tensor : tensors_) {
    const StatusOr<std::optional<int>> card = CardOf(gpu_.driver(), values[tensor.value]);
    if (!card.ok()) return card.status();
    if (card->has_value()) return false;
  }
  return true;
}

Status CardAddresses::CheckNew(const uint64_t* values) const {
  const GpuContext current(gpu_);
  if (!current.status().ok()) return current.status();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const uint64_t address = values[tensors_[i].value];
    if (address == seen_[i].load(std::memory_order_relaxed)) continue;
    const StatusOr<std::optional<int>> card = CardOf(gpu_.driver(), address);
    if (!card.ok()) return card.status();
    const std::string runs = ", and the kernel runs on " + gpu_.card().uuid + " (card " +
                             std::to_string(gpu_.card().device) + ")";
    if (!card->has_value()) {
      return Status(Code::kInvalidArgument,
                    tensors_[i].name + " is in host memory" + runs + "; copy it to that card");
    }
    if (**card != gpu_.card().device) {
      return Status(Code::kInvalidArgument, tensors_[i].name + " is in the memory of card " +
                                                std::to_string(**card) + runs +
                                                "; copy it to that card");
    }
    seen_[i].store(address, std::memory_order_relaxed);
  }
  return Status();
}

}  // namespace phobos
