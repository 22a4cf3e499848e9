// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/fake/fake_device.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace phobos::device {
namespace {

// What a launch costs by the device's clock on top of its sample, so that a warm-up ends after some
// thousand launches.
constexpr int64_t kHostNs = 10'000;

class FakeKernel : public Kernel {
 public:
  FakeKernel(int index, FakeVariant variant) : index(index), variant(std::move(variant)) {}
  const int index;
  const FakeVariant variant;
};

Description Describe(const FakeScript& script) {
  Description description;
  description.device.set_uuid("fake");
  description.device.set_card_name("Fake");
  description.device.set_chip("fake");
  description.device.set_threads(1);
  description.device.set_driver("1");
  description.device.set_memory_bytes(script.memory_bytes);
  description.timer_resolution_ns = script.resolution_ns;
  return description;
}

// What happens "once" is due until its file exists, which this makes; without a file: always.
bool IsFirst(const std::string& once_file) {
  if (once_file.empty()) return true;
  const int fd = open(once_file.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  close(fd);
  return true;
}

bool IsDue(const FakeEvent& event, int64_t launch) {
  return event.launch == launch && IsFirst(event.once_file);
}

void Compute(FakeOperation operation, absl::Span<const uint64_t> slots) {
  const auto floats = [&](size_t slot) { return reinterpret_cast<float*>(slots[slot]); };
  switch (operation) {
    case FakeOperation::kNothing:
      return;
    case FakeOperation::kAccumulate:
      for (uint64_t i = 0; i < slots[2]; ++i) floats(0)[i] += floats(1)[i];
      return;
    case FakeOperation::kAdd:
    case FakeOperation::kShorter: {
      const uint64_t n = slots[3] - (operation == FakeOperation::kShorter ? 1 : 0);
      for (uint64_t i = 0; i < n; ++i) floats(2)[i] = floats(0)[i] + floats(1)[i];
      return;
    }
  }
}

}  // namespace

FakeDevice::FakeDevice(FakeScript script) : Device(Describe(script)), script_(std::move(script)) {}

absl::StatusOr<std::byte*> FakeDevice::Reserve(int64_t bytes, bool flush) {
  calls_.push_back("reserve");
  if (bytes > script_.memory_bytes && IsFirst(script_.memory_once_file)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the job needs ", bytes, " bytes on the device, which has ",
                     script_.memory_bytes, "; tune with smaller arguments"));
  }
  may_flush_ = flush;
  constexpr size_t kAlignment = 4096;
  memory_.resize(static_cast<size_t>(bytes) + kAlignment);
  const auto address = reinterpret_cast<uintptr_t>(memory_.data());
  return memory_.data() + (kAlignment - address % kAlignment) % kAlignment;
}

absl::StatusOr<std::unique_ptr<Kernel>> FakeDevice::Load(const KernelFile& file) {
  calls_.push_back(absl::StrCat("load ", file.variant));
  const auto found = script_.variants.find(file.variant);
  FakeVariant variant = found == script_.variants.end() ? FakeVariant() : found->second;
  if (variant.no_memory) return absl::ResourceExhaustedError("no memory for the kernel");
  return std::make_unique<FakeKernel>(file.variant, std::move(variant));
}

absl::Status FakeDevice::Copy(std::byte* to, const std::byte* from, int64_t bytes) {
  calls_.push_back("copy");
  memcpy(to, from, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status FakeDevice::Flush() {
  calls_.push_back("flush");
  if (!may_flush_) return absl::FailedPreconditionError("Flush without a Reserve for it");
  flushed_ = true;
  return absl::OkStatus();
}

int64_t FakeDevice::SampleOf(const FakeVariant& variant, int64_t launch) {
  const auto index = std::min(static_cast<size_t>(launch - 1), variant.times_ns.size() - 1);
  int64_t sample = variant.times_ns[index];
  const int64_t ramp_ns = script_.ramp_ms * 1'000'000;
  if (now_ns_ < ramp_ns) {
    sample +=
        static_cast<int64_t>(static_cast<double>(sample) *
                             (1.0 - static_cast<double>(now_ns_) / static_cast<double>(ramp_ns)));
  }
  if (!flushed_) sample -= script_.warm_ns;
  return sample;
}

absl::Status FakeDevice::Launch(const Kernel& kernel, absl::Span<const uint64_t> slots,
                                const tuner::v1::Grid&) {
  const auto& fake = static_cast<const FakeKernel&>(kernel);
  calls_.push_back(absl::StrCat("launch ", fake.index));
  const int64_t launch = ++launches_[fake.index];
  if (IsDue(fake.variant.crash, launch)) raise(SIGSEGV);
  if (IsDue(fake.variant.hang, launch)) {
    while (true) pause();
  }
  if (fake.variant.slow_launch == launch) {
    absl::SleepFor(absl::Milliseconds(fake.variant.slow_ms));
  }
  Compute(fake.variant.operation, slots);
  for (const FakePoke& poke : fake.variant.pokes) {
    auto* byte = reinterpret_cast<uint8_t*>(slots[static_cast<size_t>(poke.slot)]) + poke.offset;
    *byte = static_cast<uint8_t>(~*byte);
  }
  const int64_t sample = SampleOf(fake.variant, launch);
  flushed_ = false;
  now_ns_ += kHostNs + std::max<int64_t>(sample, 0);
  samples_ns_.push_back(sample);
  return absl::OkStatus();
}

absl::StatusOr<Outcome> FakeDevice::Finish(absl::FunctionRef<void(size_t)>) {
  calls_.push_back("finish");
  Outcome outcome;
  outcome.now_ns = now_ns_;
  outcome.samples_ns = std::exchange(samples_ns_, {});
  if (outcome.samples_ns.empty()) return outcome;
  ++finishes_;
  outcome.disturbed = script_.disturbed_from > 0 && finishes_ >= script_.disturbed_from &&
                      (script_.disturbed_to < 0 || finishes_ <= script_.disturbed_to);
  if (outcome.disturbed) outcome.disturbance = "the script says so";
  return outcome;
}

absl::StatusOr<const std::byte*> FakeDevice::Read(const std::byte* from, int64_t) { return from; }

}  // namespace phobos::device
