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

absl::Status Preloaded::Reserve(const PreloadCall& call, int64_t size) {
  if (device_.description().has_host_memory) return absl::OkStatus();
  if (token_ != 0 && token_ == call.token()) return absl::OkStatus();
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
  rooms_.clear();
  ASSIGN_OR_RETURN(std::byte * base, device_.ReservePreloaded(total));
  for (size_t i = 0; i < places.size(); ++i) {
    const PreloadedTensor& tensor = call.tensors(static_cast<int>(i));
    if (tensor.bytes() == 0) continue;
    rooms_[tensor.offset_bytes()] = {base + places[i], tensor.bytes()};
  }
  token_ = call.token();
  return absl::OkStatus();
}

std::byte* Preloaded::PlaceFor(uint64_t token, int64_t offset, int64_t bytes) const {
  if (token_ == 0 || token_ != token) return nullptr;
  const auto found = rooms_.find(offset);
  return found == rooms_.end() || found->second.bytes != bytes ? nullptr : found->second.place;
}

void Preloaded::Add(int64_t offset) { rooms_.at(offset).is_filled = true; }

absl::Status Preloaded::Copy(const PreloadCall& call, absl::Span<const std::byte> memory) {
  if (device_.description().has_host_memory) return absl::OkStatus();
  RETURN_IF_ERROR(Reserve(call, static_cast<int64_t>(memory.size())));
  std::vector<Room*> copied;
  for (auto& [offset, room] : rooms_) {
    if (room.is_filled) continue;
    RETURN_IF_ERROR(device_.Copy(room.place, memory.data() + offset, room.bytes));
    copied.push_back(&room);
  }
  RETURN_IF_ERROR(device_.Finish([](size_t) {}).status());
  for (Room* room : copied) room->is_filled = true;
  return absl::OkStatus();
}

void Preloaded::KeepOnly(uint64_t token) {
  if (token_ == 0 || token_ == token) return;
  token_ = 0;
  rooms_.clear();
  device_.ReservePreloaded(0).IgnoreError();
}

const std::byte* Preloaded::Find(uint64_t token, int64_t offset) const {
  if (token_ == 0 || token_ != token) return nullptr;
  const auto found = rooms_.find(offset);
  return found == rooms_.end() || !found->second.is_filled ? nullptr : found->second.place;
}

}  // namespace phobos::worker
