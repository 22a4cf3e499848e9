// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cpu/cpu_device.h"

#include <emmintrin.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/launch/host.h"
#include "daemon/device/cpu/disturbance.h"
#include "daemon/device/cpu/machine.h"
#include "daemon/device/cpu/region.h"

namespace phobos::device {
namespace {

constexpr int64_t kGuessedCacheBytes = int64_t{32} << 20;
// Copies and flushes go to the pool in blocks of this size.
constexpr int64_t kBlockBytes = int64_t{1} << 20;

int64_t RawNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The smallest step the clock was seen to take.
int64_t ClockStepNs() {
  int64_t step = 1'000'000;
  for (int i = 0; i < 1000; ++i) {
    const int64_t first = RawNs();
    int64_t second = RawNs();
    while (second == first) second = RawNs();
    step = std::min(step, second - first);
  }
  return step;
}

absl::Status FromLaunch(const phobos::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.code()), status.message());
}

class CpuKernel : public Kernel {
 public:
  explicit CpuKernel(std::unique_ptr<launch::HostKernel> host) : host(std::move(host)) {}
  const std::unique_ptr<launch::HostKernel> host;
};

// slots: to, from, bytes.
void CopyBlocks(const uint64_t* slots, const int64_t*, int64_t first, int64_t end, void*) {
  const int64_t begin = first * kBlockBytes;
  const int64_t bytes = std::min(end * kBlockBytes, static_cast<int64_t>(slots[2])) - begin;
  memcpy(reinterpret_cast<std::byte*>(slots[0]) + begin,
         reinterpret_cast<const std::byte*>(slots[1]) + begin, static_cast<size_t>(bytes));
}

// slots: buffer, a value. Ordinary stores of a value that changes, so that neither the compiler nor
// the C library turns them into stores that go past the cache.
void FlushBlocks(const uint64_t* slots, const int64_t*, int64_t first, int64_t end, void*) {
  auto* line = reinterpret_cast<__m128i*>(slots[0] + static_cast<uint64_t>(first * kBlockBytes));
  const auto* last =
      reinterpret_cast<__m128i*>(slots[0] + static_cast<uint64_t>(end * kBlockBytes));
  __m128i value = _mm_set1_epi32(static_cast<int>(slots[1]));
  const __m128i one = _mm_set1_epi32(1);
  for (; line < last; ++line) {
    _mm_store_si128(line, value);
    value = _mm_add_epi32(value, one);
  }
}

class CpuDevice : public Device {
 public:
  // REQUIRES: `flush_bytes` is a whole number of blocks.
  CpuDevice(Description description, int64_t flush_bytes)
      : Device(std::move(description)),
        flush_bytes_(flush_bytes),
        pool_(this->description().device.threads()),
        copy_(launch::HostKernel::Of(&CopyBlocks)),
        flush_(launch::HostKernel::Of(&FlushBlocks)) {
    samples_ns_.reserve(kMostSamples);
  }

  absl::StatusOr<std::byte*> Reserve(int64_t bytes, bool flush) override {
    const int64_t wanted_flush = flush ? flush_bytes_ : 0;
    RETURN_IF_ERROR(CheckMemory(bytes, wanted_flush));
    if (arena_.bytes() < bytes) {
      arena_ = Region();  // before the larger one is asked for
      ASSIGN_OR_RETURN(arena_, Region::Map(bytes));
    }
    if (flush_buffer_.bytes() < wanted_flush) {
      ASSIGN_OR_RETURN(flush_buffer_, Region::Map(wanted_flush));
      RETURN_IF_ERROR(Flush());  // touches every page
      RETURN_IF_ERROR(Finish([](size_t) {}).status());
    }
    return arena_.data();
  }

  absl::StatusOr<int64_t> FreeBytes() override {
    ASSIGN_OR_RETURN(const Memory memory, ReadMemory(MachineRoot()));
    // Pages of the arena that nobody has touched are available still.
    return memory.available_bytes + arena_.ResidentBytes();
  }

  absl::StatusOr<std::unique_ptr<Kernel>> Load(const KernelFile& file) override {
    const int64_t scratch = file.artifact.scratch_bytes();
    ASSIGN_OR_RETURN(const Memory memory, ReadMemory(MachineRoot()));
    if (scratch < 0 || scratch > memory.available_bytes / pool_.threads()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("needs ", scratch, " bytes of scratch memory on each of ", pool_.threads(),
                       " threads; ", memory.available_bytes, " bytes are available"));
    }
    const auto& features = file.artifact.cpu_features();
    auto host =
        launch::HostKernel::Load(file.path, file.artifact.entry(), scratch,
                                 std::vector<std::string>(features.begin(), features.end()));
    if (!host.ok()) return FromLaunch(host.status());
    return std::make_unique<CpuKernel>(*std::move(host));
  }

  absl::Status Copy(std::byte* to, const std::byte* from, int64_t bytes) override {
    BeginBatch();
    const uint64_t slots[] = {reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from),
                              static_cast<uint64_t>(bytes)};
    pool_.Run(*copy_, slots, {(bytes + kBlockBytes - 1) / kBlockBytes, 1, 1});
    return absl::OkStatus();
  }

  absl::Status Flush() override {
    if (flush_buffer_.data() == nullptr) {
      return absl::FailedPreconditionError("Flush without a Reserve for it");
    }
    BeginBatch();
    const uint64_t slots[] = {reinterpret_cast<uint64_t>(flush_buffer_.data()), ++flushes_};
    pool_.Run(*flush_, slots, {flush_bytes_ / kBlockBytes, 1, 1});
    return absl::OkStatus();
  }

  absl::Status Launch(const Kernel& kernel, absl::Span<const uint64_t> slots,
                      const tuner::v1::Grid& grid) override {
    BeginBatch();
    const launch::HostKernel& host = *static_cast<const CpuKernel&>(kernel).host;
    const launch::Grid sides = {grid.x(), grid.y(), grid.z()};
    const int64_t start = RawNs();
    pool_.Run(host, slots.data(), sides);
    samples_ns_.push_back(RawNs() - start);
    return absl::OkStatus();
  }

  absl::StatusOr<Outcome> Finish(absl::FunctionRef<void(size_t)>) override {
    Outcome outcome;
    outcome.now_ns = RawNs();
    if (!batch_start_ns_.has_value()) return outcome;
    const Work work = {outcome.now_ns - *batch_start_ns_, pool_.threads(),
                       static_cast<int64_t>(samples_ns_.size())};
    outcome.disturbance = Disturbance(before_, ReadSchedulerTimes(), work);
    outcome.disturbed = !outcome.disturbance.empty();
    outcome.samples_ns = samples_ns_;
    samples_ns_.clear();
    batch_start_ns_.reset();
    return outcome;
  }

  absl::StatusOr<const std::byte*> Read(const std::byte* from, int64_t) override { return from; }

 private:
  static constexpr size_t kMostSamples = 4096;  // more than that grow

  void BeginBatch() {
    if (batch_start_ns_.has_value()) return;
    before_ = ReadSchedulerTimes();
    batch_start_ns_ = RawNs();
  }

  absl::Status CheckMemory(int64_t bytes, int64_t flush) const {
    ASSIGN_OR_RETURN(const Memory memory, ReadMemory(MachineRoot()));
    const int64_t ours = arena_.bytes() + flush_buffer_.bytes();
    const int64_t available = memory.available_bytes + ours;
    if (bytes <= available - flush) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "the tune needs ", bytes, " bytes for its tensors and ", flush, " to flush the cache, and ",
        available, " bytes of memory are available; tune with smaller arguments or free memory"));
  }

  const int64_t flush_bytes_;
  launch::HostPool pool_;
  const std::unique_ptr<launch::HostKernel> copy_;
  const std::unique_ptr<launch::HostKernel> flush_;
  Region arena_;
  Region flush_buffer_;
  uint64_t flushes_ = 0;
  std::vector<int64_t> samples_ns_;
  std::optional<int64_t> batch_start_ns_;
  SchedulerTimes before_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenCpu(int64_t llc_bytes) {
  const MachineRoot machine;
  ASSIGN_OR_RETURN(const std::string chip, NativeChip());
  ASSIGN_OR_RETURN(const Memory memory, ReadMemory(machine));
  std::optional<int64_t> cache = LastLevelCacheBytes(machine);
  if (!cache.has_value()) cache = LastLevelCacheBytesByCpuid();
  if (!cache.has_value()) cache = llc_bytes > 0 ? llc_bytes : kGuessedCacheBytes;

  Description description;
  tuner::v1::Device& device = description.device;
  device.set_uuid("host");
  device.set_threads(launch::DefaultThreads());
  device.set_card_name(absl::StrCat(ProcessorName(machine), ", ", device.threads(),
                                    device.threads() == 1 ? " thread" : " threads"));
  device.set_chip(chip);
  device.set_flush_bytes(*cache);
  utsname system = {};
  if (uname(&system) == 0) device.set_driver(absl::StrCat("Linux ", system.release));
  device.set_memory_bytes(memory.total_bytes);
  description.timer_resolution_ns = ClockStepNs();
  return std::make_unique<CpuDevice>(std::move(description), FlushBytes(*cache, kBlockBytes));
}

}  // namespace phobos::device
