// SPDX-License-Identifier: Apache-2.0
#include "client/launch/cuda/card.h"

#include <stdio.h>
#include <string.h>

namespace phobos::launch::cuda {
namespace {

// What the compiler has PTX for, in ascending order (docs/compiler_contract.md).
constexpr int kChips[] = {75, 80, 86, 89, 90};

std::string UuidText(const char* kind, const Uuid& uuid) {
  std::string text = kind;
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    char hex[4];
    snprintf(hex, sizeof(hex), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex;
  }
  return text;
}

// Reads several attributes and remembers the first failure.
class Reader {
 public:
  Reader(const CudaDriver& driver, Device device) : driver_(driver), device_(device) {}

  int Attribute(DeviceAttribute which) {
    int value = 0;
    Keep("cuDeviceGetAttribute", driver_->device_attribute(&value, which, device_));
    return value;
  }
  void Keep(const char* call, Result result) {
    if (status_.ok()) status_ = driver_.Error(call, result);
  }
  const Status& status() const { return status_; }

 private:
  const CudaDriver& driver_;
  const Device device_;
  Status status_;
};

void ReadUuids(const CudaDriver& driver, Reader& reader, Card& card) {
  Uuid own = {}, physical = {};
  const Result own_result = driver->device_uuid(&own, card.device);
  const Result physical_result = driver->card_uuid(&physical, card.device);
  reader.Keep("cuDeviceGetUuid_v2", own_result);
  reader.Keep("cuDeviceGetUuid", physical_result);
  if (own_result != kSuccess || physical_result != kSuccess) return;
  // A slice has an identity of its own; a whole card has one.
  const bool is_slice = memcmp(own.bytes, physical.bytes, sizeof(own.bytes)) != 0;
  card.card_uuid = UuidText("GPU-", physical);
  card.uuid = is_slice ? UuidText("MIG-", own) : card.card_uuid;
}

// What goes wrong makes this card unusable, and says nothing of the others.
Card ReadCard(const CudaDriver& driver, int ordinal) {
  Card card;
  card.unusable = "GPU " + std::to_string(ordinal) + " cannot be read: ";
  if (Status status = driver.Error("cuDeviceGet", driver->device(&card.device, ordinal));
      !status.ok()) {
    card.device = -1;
    card.unusable += status.message();
    return card;
  }
  Reader reader(driver, card.device);
  char name[256] = {};
  reader.Keep("cuDeviceGetName", driver->device_name(name, sizeof(name) - 1, card.device));
  card.name = name;
  ReadUuids(driver, reader, card);
  size_t bytes = 0;
  reader.Keep("cuDeviceTotalMem", driver->device_bytes(&bytes, card.device));
  card.memory_bytes = static_cast<int64_t>(bytes);
  card.major = reader.Attribute(kComputeCapabilityMajor);
  card.minor = reader.Attribute(kComputeCapabilityMinor);
  card.l2_bytes = reader.Attribute(kL2CacheSize);
  card.shared_memory_bytes = reader.Attribute(kMaxSharedMemoryPerBlockOptin);
  card.multiprocessors = reader.Attribute(kMultiprocessorCount);
  card.max_threads = reader.Attribute(kMaxThreadsPerBlock);
  card.chip = ChipOf(card.major, card.minor);
  const int mode = reader.Attribute(kComputeMode);
  if (!reader.status().ok()) {
    card.unusable += reader.status().message();
    return card;
  }
  card.unusable.clear();
  if (mode == kComputeProhibited) {
    card.unusable = card.name + " is in compute mode \"prohibited\": \"nvidia-smi -c DEFAULT\"";
  } else if (card.chip.empty()) {
    card.unusable = card.name + " has compute capability " + std::to_string(card.major) + "." +
                    std::to_string(card.minor) + "; kernels are compiled for 7.5 and newer";
  }
  return card;
}

}  // namespace

std::string ChipOf(int major, int minor) {
  std::string chip;
  for (const int known : kChips) {
    if (known <= major * 10 + minor) chip = "sm_" + std::to_string(known);
  }
  return chip;
}

StatusOr<std::vector<Card>> ListCards(const CudaDriver& driver) {
  int count = 0;
  if (Status status = driver.Error("cuDeviceGetCount", driver->device_count(&count));
      !status.ok()) {
    return status;
  }
  std::vector<Card> cards;
  for (int i = 0; i < count; ++i) cards.push_back(ReadCard(driver, i));
  return cards;
}

StatusOr<Card> FindCard(const CudaDriver& driver, const std::string& uuid) {
  const StatusOr<std::vector<Card>> cards = ListCards(driver);
  if (!cards.ok()) return cards.status();
  std::string known;
  for (const Card& card : *cards) {
    if (card.uuid.empty()) continue;
    if (card.uuid == uuid) return card;
    known += (known.empty() ? "" : ", ") + card.uuid;
  }
  return Status(Code::kNotFound,
                "no GPU here is " + uuid + "; there are: " + (known.empty() ? "none" : known));
}

}  // namespace phobos::launch::cuda
