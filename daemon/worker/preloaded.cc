// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/preloaded.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace phobos::worker {
namespace {

// As the addresses that tensors are known by.
constexpr int64_t kModulus = 256;

int64_t RoundUp(int64_t value) { return (value + kModulus - 1) / kModulus * kModulus; }

}  // namespace

absl::Status Preloaded::Copy(const PreloadCall& call, absl::Span<const std::byte> memory) {
  if (device_.description().has_host_memory) return absl::OkStatus();
  const auto size = static_cast<int64_t>(memory.size());
  int64_t total = 0;
  std::vector<int64_t> places;
  for (const PreloadedTensor& tensor : call.tensors()) {
    if (tensor.bytes() < 0 || tensor.offset_bytes() < 0 || tensor.offset_bytes() > size ||
        tensor.bytes() > size - tensor.offset_bytes() || tensor.address_mod_256() < 0 ||
        tensor.address_mod_256() >= kModulus) {
      return absl::InvalidArgumentError("a tensor to preload lies outside its memory");
    }
    places.push_back(total + tensor.address_mod_256());
    total = RoundUp(places.back() + tensor.bytes());
  }
  token_ = 0;
  copies_.clear();
  ASSIGN_OR_RETURN(std::byte * base, device_.ReservePreloaded(total));
  for (size_t i = 0; i < places.size(); ++i) {
    const PreloadedTensor& tensor = call.tensors(static_cast<int>(i));
    if (tensor.bytes() == 0) continue;
    RETURN_IF_ERROR(
        device_.Copy(base + places[i], memory.data() + tensor.offset_bytes(), tensor.bytes()));
    copies_[tensor.offset_bytes()] = base + places[i];
  }
  RETURN_IF_ERROR(device_.Finish([](size_t) {}).status());
  token_ = call.token();
  return absl::OkStatus();
}

void Preloaded::KeepOnly(uint64_t token) {
  if (token_ == 0 || token_ == token) return;
  token_ = 0;
  copies_.clear();
  device_.ReservePreloaded(0).IgnoreError();
}

const std::byte* Preloaded::Find(uint64_t token, int64_t offset) const {
  if (token_ == 0 || token_ != token) return nullptr;
  const auto found = copies_.find(offset);
  return found == copies_.end() ? nullptr : found->second;
}

}  // namespace phobos::worker
