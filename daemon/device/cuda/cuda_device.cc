// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cuda/cuda_device.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <new>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/launch/cuda/card.h"
#include "client/launch/cuda/cubin.h"
#include "client/launch/cuda/driver.h"
#include "client/launch/cuda/kernel.h"
#include "daemon/device/cuda/card_stream.h"
#include "daemon/device/cuda/card_watch.h"
#include "daemon/device/cuda/copy/fetch.h"
#include "daemon/device/cuda/copy/staging.h"
#include "daemon/device/cuda/kernels.h"
#include "daemon/device/cuda/linker.h"
#include "daemon/device/cuda/nvml.h"
#include "daemon/device/cuda/status.h"

namespace phobos::device {
namespace {

namespace cuda = launch::cuda;
using DriverPtr = std::shared_ptr<const cuda::CudaDriver>;

// Of the buffer that Read starts with: canaries fit, so that no round makes it larger.
constexpr int64_t kFirstReadBytes = int64_t{64} << 10;
constexpr int64_t kMostPinnedReadBytes = int64_t{1} << 20;
constexpr int kMostLinkThreads = 16;
constexpr int kFloorLaunches = 64;
constexpr int64_t kWideBytes = 16;  // what the comparing kernel reads at once

uint64_t Address(const std::byte* pointer) { return reinterpret_cast<uint64_t>(pointer); }

void Unwatched(size_t) {}

int64_t MonotonicNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Empty: there is none, or it is damaged.
std::string KeptCubin(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (file) bytes << file.rdbuf();
  return cuda::UnsealCubin(bytes.str());
}

class LoadedKernel : public Kernel {
 public:
  explicit LoadedKernel(std::unique_ptr<cuda::CudaKernel> loaded) : kernel(std::move(loaded)) {
    usage.registers = kernel->registers();
    usage.shared_memory_bytes = kernel->shared_bytes();
    usage.spill_bytes = kernel->local_bytes();
  }
  const std::unique_ptr<cuda::CudaKernel> kernel;
  mutable bool was_launched = false;
};

// A stretch of the card's memory.
class CardMemory {
 public:
  explicit CardMemory(DriverPtr driver) : driver_(std::move(driver)) {}
  ~CardMemory() { Free(); }
  CardMemory(const CardMemory&) = delete;
  CardMemory& operator=(const CardMemory&) = delete;

  absl::Status Allocate(int64_t bytes) {
    Free();
    const cuda::Result result = (*driver_)->allocate(&address_, static_cast<size_t>(bytes));
    RETURN_IF_ERROR(FromLaunch(driver_->Error("cuMemAlloc", result)));
    bytes_ = bytes;
    return absl::OkStatus();
  }
  void Free() {
    if (bytes_ > 0) (*driver_)->free(address_);
    bytes_ = 0;
  }
  int64_t bytes() const { return bytes_; }
  uint64_t address() const { return address_; }
  bool Holds(const std::byte* pointer) const {
    return Address(pointer) >= address_ &&
           Address(pointer) - address_ < static_cast<uint64_t>(bytes_);
  }

 private:
  const DriverPtr driver_;
  cuda::DevicePointer address_ = 0;
  int64_t bytes_ = 0;
};

// Memory of the host that the card copies to at full speed.
class PinnedMemory {
 public:
  explicit PinnedMemory(DriverPtr driver) : driver_(std::move(driver)) {}
  ~PinnedMemory() { Free(); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  absl::Status Grow(int64_t bytes) {
    if (bytes <= bytes_) return absl::OkStatus();
    Free();
    const cuda::Result result =
        (*driver_)->host_allocate(&memory_, static_cast<size_t>(bytes), cuda::kHostPortable);
    RETURN_IF_ERROR(FromLaunch(driver_->Error("cuMemHostAlloc", result)));
    bytes_ = bytes;
    return absl::OkStatus();
  }
  // Null before the first Grow and after one that failed.
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  void Free() {
    if (bytes_ > 0) (*driver_)->host_free(memory_);
    bytes_ = 0;
    memory_ = nullptr;
  }
  const DriverPtr driver_;
  void* memory_ = nullptr;
  int64_t bytes_ = 0;
};

// Keeps a card's primary context, current on the thread that made it.
class PrimaryContext {
 public:
  static absl::StatusOr<std::unique_ptr<PrimaryContext>> Take(DriverPtr driver,
                                                              cuda::Device device) {
    std::unique_ptr<PrimaryContext> taken(new PrimaryContext(std::move(driver), device));
    const cuda::CudaDriver& call = *taken->driver_;
    cuda::Result result = call->retain_context(&taken->context_, device);
    RETURN_IF_ERROR(FromLaunch(call.Error("cuDevicePrimaryCtxRetain", result)));
    taken->is_retained_ = true;
    result = call->push_context(taken->context_);
    RETURN_IF_ERROR(FromLaunch(call.Error("cuCtxPushCurrent", result)));
    return taken;
  }
  ~PrimaryContext() {
    cuda::Context popped = nullptr;
    if (is_retained_) (*driver_)->pop_context(&popped);
    if (is_retained_) (*driver_)->release_context(device_);
  }
  cuda::Context get() const { return context_; }

 private:
  PrimaryContext(DriverPtr driver, cuda::Device device)
      : driver_(std::move(driver)), device_(device) {}
  const DriverPtr driver_;
  const cuda::Device device_;
  cuda::Context context_ = nullptr;
  bool is_retained_ = false;
};

// What an open card consists of before it is a Device. The context goes last.
struct Parts {
  DriverPtr driver;
  cuda::Card card;
  std::unique_ptr<PrimaryContext> context;
  std::unique_ptr<CardStream> stream;
  std::unique_ptr<Staging> staging;
  std::unique_ptr<cuda::CudaKernel> nothing;
  std::unique_ptr<cuda::CudaKernel> first_difference;
  std::unique_ptr<CardWatch> watch;
  std::unique_ptr<Linker> linker;
};

class CudaDevice : public Device {
 public:
  CudaDevice(Description description, Parts parts)
      : Device(std::move(description)),
        parts_(std::move(parts)),
        arena_(parts_.driver),
        preloaded_(parts_.driver),
        flush_buffer_(parts_.driver),
        first_(parts_.driver),
        read_(parts_.driver) {}

  // What every job needs.
  absl::Status Prepare() {
    RETURN_IF_ERROR(first_.Allocate(sizeof(uint64_t)));
    return read_.Grow(kFirstReadBytes);
  }

  absl::StatusOr<std::byte*> Reserve(int64_t bytes, bool flush) override {
    const int64_t flush_bytes = flush ? 2 * parts_.card.l2_bytes : 0;
    const int64_t wanted = (arena_.bytes() < bytes ? bytes : 0) +
                           (flush_buffer_.bytes() < flush_bytes ? flush_bytes : 0);
    if (wanted > 0) {
      ASSIGN_OR_RETURN(const int64_t left, CheckMemory(bytes, flush_bytes));
      // What an earlier job needed more of must not keep this one out.
      if (wanted > left) arena_.Free(), flush_buffer_.Free();
    }
    if (arena_.bytes() < bytes) RETURN_IF_ERROR(arena_.Allocate(bytes));
    if (flush_buffer_.bytes() < flush_bytes) RETURN_IF_ERROR(flush_buffer_.Allocate(flush_bytes));
    parts_.watch->Reset();
    return reinterpret_cast<std::byte*>(arena_.address());
  }

  absl::StatusOr<int64_t> FreeBytes() override {
    ASSIGN_OR_RETURN(const int64_t left, CheckMemory(0, 0));
    return left + arena_.bytes();
  }

  absl::StatusOr<std::byte*> ReservePreloaded(int64_t bytes) override {
    // As in Reserve: what is left over would be missing to the job.
    if (preloaded_.bytes() > bytes) preloaded_.Free();
    if (preloaded_.bytes() < bytes) RETURN_IF_ERROR(preloaded_.Allocate(bytes));
    return reinterpret_cast<std::byte*>(preloaded_.address());
  }

  void Expect(absl::Span<const KernelFile> files) override {
    for (const KernelFile& file : files) {
      const std::string cubin = CubinOf(file);
      if (access(cubin.c_str(), R_OK) != 0) parts_.linker->Expect(file.path, cubin);
    }
  }

  absl::StatusOr<std::unique_ptr<Kernel>> Load(const KernelFile& file) override {
    const cuda::KernelShape shape = {file.artifact.entry(), file.artifact.threads(),
                                     file.artifact.dynamic_shared_memory_bytes()};
    const std::string path = CubinOf(file);
    // A damaged file, or one that this driver does not load, is made again.
    if (const std::string kept = KeptCubin(path); !kept.empty()) {
      auto kernel = cuda::CudaKernel::Load(parts_.driver, kept, shape);
      if (kernel.ok()) return std::make_unique<LoadedKernel>(*std::move(kernel));
    }
    ASSIGN_OR_RETURN(const std::string cubin, parts_.linker->Take(file.path, path));
    auto kernel = cuda::CudaKernel::Load(parts_.driver, cubin, shape);
    if (!kernel.ok()) return FromLaunch(kernel.status());
    return std::make_unique<LoadedKernel>(*std::move(kernel));
  }

  absl::Status Copy(std::byte* to, const std::byte* from, int64_t bytes) override {
    const auto is_here = [this](const std::byte* pointer) {
      return arena_.Holds(pointer) || preloaded_.Holds(pointer);
    };
    if (is_here(to) && is_here(from)) {
      return parts_.stream->Copy(Address(to), Address(from), bytes, /*is_on_card=*/true);
    }
    return is_here(to) ? parts_.staging->Upload(Address(to), from, bytes)
                       : parts_.staging->Download(to, Address(from), bytes);
  }

  absl::Status Fetch(absl::Span<const ForeignBytes> pieces) override {
    return FetchForeign(*parts_.driver, *parts_.stream, *parts_.staging, pieces);
  }

  absl::Status Flush() override {
    if (parts_.card.l2_bytes == 0) return absl::OkStatus();  // the card tells of no cache
    if (flush_buffer_.bytes() == 0) {
      return absl::FailedPreconditionError("Flush without a Reserve for it");
    }
    ++flushes_;
    const int64_t words = flush_buffer_.bytes() / int64_t{sizeof(uint32_t)};
    return parts_.stream->Fill(flush_buffer_.address(), ++flush_value_, words);
  }

  absl::Status Launch(const Kernel& kernel, absl::Span<const uint64_t> slots,
                      const tuner::v1::Grid& grid) override {
    const auto& loaded = static_cast<const LoadedKernel&>(kernel);
    const absl::Status launched =
        parts_.stream->Launch(*loaded.kernel, slots, {grid.x(), grid.y(), grid.z()},
                              !std::exchange(loaded.was_launched, true));
    if (!absl::IsInvalidArgument(launched)) return launched;
    // What the driver says where a kernel's local memory does not fit.
    const int64_t local = loaded.kernel->local_bytes();
    const cuda::Card& card = parts_.card;
    const int64_t needed = local * card.multiprocessors * card.max_threads;
    if (needed < card.memory_bytes / 4) return absl::AbortedError(launched.message());
    return absl::ResourceExhaustedError(absl::StrCat(
        "its ", local, " bytes of local memory a thread (arrays of its own and spilled registers) ",
        "are set aside for all threads that the card's ", card.multiprocessors,
        " multiprocessors hold, ", needed, " bytes or more, and the card has ", card.memory_bytes,
        ": ", launched.message()));
  }

  absl::StatusOr<Outcome> Finish(absl::FunctionRef<void(size_t)> runs) override {
    ASSIGN_OR_RETURN(Batch batch, parts_.stream->Finish(runs));
    Outcome outcome;
    outcome.now_ns = MonotonicNs();
    const size_t flushes = std::exchange(flushes_, 0);
    if (batch.samples_ns.empty()) return outcome;
    outcome.disturbance =
        parts_.watch->Look({batch.samples_ns.size(), flushes, batch.span_ns, batch.late_ns});
    outcome.disturbed = !outcome.disturbance.empty();
    outcome.state = parts_.watch->state();
    outcome.samples_ns = std::move(batch.samples_ns);
    return outcome;
  }

  absl::StatusOr<const std::byte*> Read(const std::byte* from, int64_t bytes) override {
    // Where no memory can be pinned, ordinary memory is as good, and slower.
    if (bytes > kMostPinnedReadBytes || !read_.Grow(std::max(bytes, kFirstReadBytes)).ok()) {
      return ReadInto(from, bytes);
    }
    RETURN_IF_ERROR(parts_.stream->Copy(Address(read_.data()), Address(from), bytes, false));
    RETURN_IF_ERROR(parts_.stream->Finish(Unwatched).status());
    return read_.data();
  }

  absl::StatusOr<std::optional<int64_t>> FirstDifference(const std::byte* a, const std::byte* b,
                                                         int64_t bytes) override {
    // The wide loads of the kernel need both to be aligned alike; what is left at the ends, and all
    // of what is not, is compared here.
    const auto odd = static_cast<int64_t>((kWideBytes - Address(a) % kWideBytes) % kWideBytes);
    const bool is_alike = Address(a) % kWideBytes == Address(b) % kWideBytes;
    const int64_t head = is_alike ? std::min(odd, bytes) : bytes;
    const int64_t wide = (bytes - head) / kWideBytes;
    ASSIGN_OR_RETURN(auto found, CompareHere(a, b, 0, head));
    if (!found.has_value()) {
      ASSIGN_OR_RETURN(found, CompareWide(a, b, head, wide));
    }
    if (!found.has_value()) {
      ASSIGN_OR_RETURN(found, CompareHere(a, b, head + wide * kWideBytes, bytes));
    }
    return found;
  }

 private:
  // Into ordinary memory: to pin much of it takes longer than what it saves.
  absl::StatusOr<const std::byte*> ReadInto(const std::byte* from, int64_t bytes) {
    if (large_read_bytes_ < bytes) {
      large_read_.reset();
      large_read_bytes_ = 0;
      large_read_.reset(new (std::nothrow) std::byte[static_cast<size_t>(bytes)]);
      if (large_read_ == nullptr) {
        return absl::ResourceExhaustedError(
            absl::StrCat("no memory of the host for ", bytes, " bytes of the card's"));
      }
      large_read_bytes_ = bytes;
    }
    RETURN_IF_ERROR(parts_.staging->Download(large_read_.get(), Address(from), bytes));
    RETURN_IF_ERROR(parts_.stream->Finish(Unwatched).status());
    return large_read_.get();
  }

  std::string CubinOf(const KernelFile& file) const {
    return cuda::CubinPath(file.path, parts_.card, parts_.driver->version());
  }

  // Bytes of the card that are free now.
  absl::StatusOr<int64_t> CheckMemory(int64_t bytes, int64_t flush_bytes) const {
    size_t left = 0, total = 0;
    const cuda::Result result = (*parts_.driver)->memory_left(&left, &total);
    RETURN_IF_ERROR(FromLaunch(parts_.driver->Error("cuMemGetInfo", result)));
    const int64_t available = static_cast<int64_t>(left) + arena_.bytes() + flush_buffer_.bytes();
    if (bytes <= available - flush_bytes) return static_cast<int64_t>(left);
    return absl::ResourceExhaustedError(
        absl::StrCat("the tune needs ", bytes, " bytes of the card's memory for its tensors and ",
                     flush_bytes, " to flush its cache, and ", available, " of ", total,
                     " are free; tune with smaller arguments or free memory of the card"));
  }

  // Of the bytes [begin, end).
  absl::StatusOr<std::optional<int64_t>> CompareHere(const std::byte* a, const std::byte* b,
                                                     int64_t begin, int64_t end) {
    std::vector<std::byte> kept;
    for (int64_t at = begin; at < end; at += kMostPinnedReadBytes) {
      const int64_t size = std::min(kMostPinnedReadBytes, end - at);
      ASSIGN_OR_RETURN(const std::byte* bytes, Read(a + at, size));
      kept.assign(bytes, bytes + size);
      ASSIGN_OR_RETURN(bytes, Read(b + at, size));
      const auto differ = std::mismatch(kept.begin(), kept.end(), bytes);
      if (differ.first != kept.end()) return at + (differ.first - kept.begin());
    }
    return std::nullopt;
  }

  // Of `wide` times 16 bytes from `begin` on.
  absl::StatusOr<std::optional<int64_t>> CompareWide(const std::byte* a, const std::byte* b,
                                                     int64_t begin, int64_t wide) {
    if (wide == 0) return std::nullopt;
    static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
    RETURN_IF_ERROR(parts_.stream->Copy(first_.address(), reinterpret_cast<uint64_t>(&kNone),
                                        sizeof(kNone), false));
    const uint64_t slots[] = {Address(a + begin), Address(b + begin), static_cast<uint64_t>(wide),
                              first_.address()};
    const int64_t blocks =
        std::min<int64_t>((wide + kOwnThreads - 1) / kOwnThreads, 8 * parts_.card.multiprocessors);
    RETURN_IF_ERROR(parts_.stream->Launch(*parts_.first_difference, slots, {blocks, 1, 1}, true));
    ASSIGN_OR_RETURN(const std::byte* bytes,
                     Read(reinterpret_cast<const std::byte*>(first_.address()), sizeof(kNone)));
    uint64_t first = kNone;
    memcpy(&first, bytes, sizeof(first));
    if (first == kNone) return std::nullopt;
    const int64_t at = begin + static_cast<int64_t>(first) * kWideBytes;
    return CompareHere(a, b, at, at + kWideBytes);
  }

  const Parts parts_;
  CardMemory arena_;
  CardMemory preloaded_;
  CardMemory flush_buffer_;
  CardMemory first_;   // the comparing kernel's answer
  PinnedMemory read_;  // what Read gives
  std::unique_ptr<std::byte[]> large_read_;
  int64_t large_read_bytes_ = 0;
  uint32_t flush_value_ = 0;
  size_t flushes_ = 0;  // since the last Finish
};

absl::StatusOr<cuda::Card> Choose(const cuda::CudaDriver& driver, const std::string& name) {
  const auto cards = cuda::ListCards(driver);
  if (!cards.ok()) return FromLaunch(cards.status());
  size_t ordinal = 0;
  if (!absl::SimpleAtoi(name, &ordinal)) {
    const auto card = cuda::FindCard(driver, name);
    if (!card.ok()) return absl::UnavailableError(card.status().message());
    return *card;
  }
  if (ordinal >= cards->size()) {
    return absl::UnavailableError(
        absl::StrCat("there is no GPU ", ordinal, ": the driver shows ", cards->size()));
  }
  return (*cards)[ordinal];
}

// `nvml`: null where there is none.
tuner::v1::Device Describe(const cuda::CudaDriver& driver, const cuda::Card& card, Nvml* nvml) {
  tuner::v1::Device device;
  device.set_uuid(card.uuid);
  device.set_card_uuid(card.card_uuid);
  device.set_card_name(card.name);
  device.set_chip(card.chip);
  device.set_flush_bytes(card.l2_bytes);
  device.set_memory_bytes(card.memory_bytes);
  device.set_driver(nvml == nullptr ? "" : nvml->Driver());
  if (device.driver().empty()) {
    device.set_driver("CUDA " + cuda::VersionText(driver.version()));
  }
  return device;
}

std::unique_ptr<Nvml> OpenNvml(const cuda::Card& card) {
  absl::StatusOr<std::unique_ptr<Nvml>> opened = Nvml::Open(card.uuid);
  return opened.ok() ? *std::move(opened) : nullptr;
}

absl::StatusOr<std::unique_ptr<cuda::CudaKernel>> LoadOwn(const DriverPtr& driver,
                                                          const char* entry) {
  auto kernel = cuda::CudaKernel::Load(driver, kOwnPtx, {entry, kOwnThreads, 0});
  if (!kernel.ok()) return FromLaunch(kernel.status());
  return *std::move(kernel);
}

// What samples of a kernel that does nothing tell of the timer.
absl::Status MeasureTimer(CardStream& stream, const cuda::CudaKernel& nothing,
                          Description& description) {
  RETURN_IF_ERROR(stream.Launch(nothing, {}, {1, 1, 1}, true));
  RETURN_IF_ERROR(stream.Finish(Unwatched).status());
  for (int i = 0; i < kFloorLaunches; ++i) {
    RETURN_IF_ERROR(stream.Launch(nothing, {}, {1, 1, 1}, false));
  }
  ASSIGN_OR_RETURN(Batch batch, stream.Finish(Unwatched));
  std::sort(batch.samples_ns.begin(), batch.samples_ns.end());
  int64_t step = 1000;  // the smallest there was between two
  for (size_t i = 1; i < batch.samples_ns.size(); ++i) {
    const int64_t difference = batch.samples_ns[i] - batch.samples_ns[i - 1];
    if (difference > 0) step = std::min(step, difference);
  }
  description.timer_resolution_ns = step;
  description.timer_floor_ns = batch.samples_ns.front();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<tuner::v1::Device>>> DescribeCards() {
  const auto driver = cuda::CudaDriver::Load();
  if (!driver.ok()) return FromLaunch(driver.status());
  const auto cards = cuda::ListCards(**driver);
  if (!cards.ok()) return FromLaunch(cards.status());
  std::vector<absl::StatusOr<tuner::v1::Device>> described;
  for (const cuda::Card& card : *cards) {
    if (card.unusable.empty()) {
      described.push_back(Describe(**driver, card, OpenNvml(card).get()));
    } else {
      described.push_back(absl::UnavailableError(card.unusable));
    }
  }
  return described;
}

absl::StatusOr<std::unique_ptr<Device>> OpenCuda(const std::string& name) {
  // Code is loaded when it is asked for, not in the middle of the first launch.
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  auto driver = cuda::CudaDriver::Load();
  if (!driver.ok()) return FromLaunch(driver.status());
  Parts parts;
  parts.driver = *std::move(driver);
  ASSIGN_OR_RETURN(parts.card, Choose(*parts.driver, name));
  const cuda::Card& card = parts.card;
  if (!card.unusable.empty()) return absl::UnavailableError(card.unusable);

  std::unique_ptr<Nvml> nvml = OpenNvml(card);
  const auto processes = [&] {
    return nvml == nullptr ? std::vector<unsigned>() : nvml->Processes();
  };
  const std::vector<unsigned> before = processes();
  ASSIGN_OR_RETURN(parts.context, PrimaryContext::Take(parts.driver, card.device));
  const std::optional<unsigned> own = OwnProcess(HostPid(), before, processes());

  Description description;
  description.device = Describe(*parts.driver, card, nvml.get());
  description.has_host_memory = false;

  parts.watch = std::make_unique<CardWatch>(std::move(nvml), own);
  ASSIGN_OR_RETURN(parts.stream, CardStream::Open(parts.driver));
  parts.staging = std::make_unique<Staging>(parts.driver, *parts.stream);
  ASSIGN_OR_RETURN(parts.nothing, LoadOwn(parts.driver, kNothing));
  ASSIGN_OR_RETURN(parts.first_difference, LoadOwn(parts.driver, kFirstDifference));
  const int threads = static_cast<int>(std::thread::hardware_concurrency());
  parts.linker = std::make_unique<Linker>(parts.driver, parts.context->get(),
                                          std::clamp(threads, 1, kMostLinkThreads));
  RETURN_IF_ERROR(MeasureTimer(*parts.stream, *parts.nothing, description));
  auto made = std::make_unique<CudaDevice>(std::move(description), std::move(parts));
  RETURN_IF_ERROR(made->Prepare());
  return made;
}

}  // namespace phobos::device
