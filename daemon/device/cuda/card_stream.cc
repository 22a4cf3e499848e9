// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cuda/card_stream.h"

#include <time.h>

#include <cmath>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "daemon/device/cuda/status.h"

namespace phobos::device {
namespace {

namespace cuda = launch::cuda;

// Event pairs there are from the start. A batch of more launches makes more, in its warm-up.
constexpr size_t kFirstEvents = 256;
// A launch is four operations of the driver. It takes about a thousand before the call that queues
// the next one waits for the card, which must not happen while the gate is closed.
constexpr int kMostHeld = 64;
// How long the host only looks whether a batch is over, before it sleeps between looks.
constexpr int64_t kLookNs = 2'000'000;
constexpr timespec kSleep = {0, 20'000};

int64_t NowNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CardStream>> CardStream::Open(
    std::shared_ptr<const cuda::CudaDriver> driver) {
  std::unique_ptr<CardStream> stream(new CardStream(std::move(driver)));
  RETURN_IF_ERROR(stream->Make());
  return stream;
}

CardStream::CardStream(std::shared_ptr<const cuda::CudaDriver> driver)
    : driver_(std::move(driver)), call_(*driver_->operator->()) {}

absl::Status CardStream::Make() {
  const auto check = [this](const char* call, cuda::Result result) {
    return FromLaunch(driver_->Error(call, result));
  };
  RETURN_IF_ERROR(check("cuStreamCreate", call_.create_stream(&stream_, cuda::kStreamNonBlocking)));
  void* memory = nullptr;
  RETURN_IF_ERROR(check("cuMemHostAlloc",
                        call_.host_allocate(&memory, 3 * sizeof(Word), cuda::kHostDeviceMap)));
  words_ = new (memory) Word[3]();
  RETURN_IF_ERROR(check("cuMemHostGetDevicePointer", call_.host_pointer(&gate_, &words_[0], 0)));
  RETURN_IF_ERROR(check("cuMemHostGetDevicePointer", call_.host_pointer(&over_, &words_[1], 0)));
  RETURN_IF_ERROR(check("cuMemHostGetDevicePointer", call_.host_pointer(&passed_, &words_[2], 0)));
  // A wait that is over at once. What the attributes say is of an older version of the call.
  const cuda::Result waits = call_.wait_value(stream_, gate_, 0, cuda::kWaitGreaterOrEqual);
  has_memory_operations_ = waits != cuda::kNotSupported;
  if (has_memory_operations_) RETURN_IF_ERROR(check("cuStreamWaitValue32", waits));
  while (events_.size() < kFirstEvents) RETURN_IF_ERROR(AddEvents());
  return absl::OkStatus();
}

CardStream::~CardStream() {
  if (words_ != nullptr) Release();
  if (stream_ != nullptr) {
    call_.synchronize_stream(stream_);
    call_.destroy_stream(stream_);
  }
  for (const auto& [start, end] : events_) {
    call_.destroy_event(start);
    call_.destroy_event(end);
  }
  if (words_ != nullptr) call_.host_free(words_);
}

absl::Status CardStream::AddEvents() {
  EventPair pair = {nullptr, nullptr};
  for (cuda::Event* event : {&pair.first, &pair.second}) {
    const cuda::Result result = call_.create_event(event, cuda::kEventDefault);
    if (result != cuda::kSuccess) return Lost("cuEventCreate", result);
  }
  events_.push_back(pair);
  return absl::OkStatus();
}

absl::Status CardStream::Hold() {
  if (!has_memory_operations_) return absl::OkStatus();
  if (state_ == State::kHeld && ++held_ > kMostHeld) Release();
  if (state_ != State::kIdle) return absl::OkStatus();
  const cuda::Result result =
      call_.wait_value(stream_, gate_, batch_ + 1, cuda::kWaitGreaterOrEqual);
  if (result != cuda::kSuccess) return Lost("cuStreamWaitValue32", result);
  ++batch_;
  held_ = 0;
  state_ = State::kHeld;
  return absl::OkStatus();
}

void CardStream::Release() {
  words_[0].value.store(batch_, std::memory_order_release);
  if (state_ == State::kHeld) state_ = State::kReleased;
}

absl::Status CardStream::Write(cuda::DevicePointer word, uint32_t value) {
  if (!has_memory_operations_) {
    const cuda::Result result = call_.fill(word, value, 1, stream_);
    return result == cuda::kSuccess ? absl::OkStatus() : Lost("cuMemsetD32Async", result);
  }
  const cuda::Result result = call_.write_value(stream_, word, value, cuda::kWriteValueDefault);
  return result == cuda::kSuccess ? absl::OkStatus() : Lost("cuStreamWriteValue32", result);
}

absl::Status CardStream::Lost(const char* call, cuda::Result result) {
  Release();
  return absl::AbortedError(driver_->Error(call, result).message());
}

absl::Status CardStream::Copy(uint64_t to, uint64_t from, int64_t bytes, bool is_on_card) {
  if (bytes == 0) return absl::OkStatus();
  if (is_on_card) {
    RETURN_IF_ERROR(Hold());
  } else {
    Release();
  }
  const cuda::Result result = call_.copy(to, from, static_cast<size_t>(bytes), stream_);
  return result == cuda::kSuccess ? absl::OkStatus() : Lost("cuMemcpyAsync", result);
}

absl::StatusOr<uint32_t> CardStream::Mark() {
  RETURN_IF_ERROR(Write(passed_, ++marks_));
  return marks_;
}

absl::Status CardStream::Await(uint32_t mark) {
  const auto is_passed = [&] {
    const uint32_t passed = words_[2].value.load(std::memory_order_acquire);
    return static_cast<int32_t>(passed - mark) >= 0;
  };
  while (!is_passed()) {
    const cuda::Result result = call_.query_stream(stream_);
    if (result != cuda::kSuccess && result != cuda::kNotReady) return Lost("cuStreamQuery", result);
  }
  return absl::OkStatus();
}

absl::Status CardStream::Fill(uint64_t to, uint32_t value, int64_t words) {
  RETURN_IF_ERROR(Hold());
  const cuda::Result result = call_.fill(to, value, static_cast<size_t>(words), stream_);
  return result == cuda::kSuccess ? absl::OkStatus() : Lost("cuMemsetD32Async", result);
}

absl::Status CardStream::Launch(const cuda::CudaKernel& kernel, absl::Span<const uint64_t> slots,
                                const launch::Grid& grid, bool is_first) {
  if (is_first) {
    Release();
  } else {
    RETURN_IF_ERROR(Hold());
  }
  if (launches_ == events_.size()) RETURN_IF_ERROR(AddEvents());
  const auto& [start, end] = events_[launches_];
  cuda::Result result = call_.record_event(start, stream_);
  if (result != cuda::kSuccess) return Lost("cuEventRecord", result);
  result = kernel.Launch(slots.data(), slots.size(), grid, stream_);
  if (result != cuda::kSuccess) Release();  // nobody may wait for what is behind the gate
  if (is_first && result == cuda::kInvalidValue) {
    return absl::InvalidArgumentError(driver_->Error("cuLaunchKernel", result).message());
  }
  if (result == cuda::kOutOfMemory || result == cuda::kLaunchOutOfResources) {
    return FromLaunch(driver_->Error("cuLaunchKernel", result));
  }
  if (result != cuda::kSuccess) return Lost("cuLaunchKernel", result);
  result = call_.record_event(end, stream_);
  if (result != cuda::kSuccess) return Lost("cuEventRecord", result);
  // Where a card is lost, all events are: this word alone then tells how far it came.
  RETURN_IF_ERROR(Write(over_, static_cast<uint32_t>(launches_ + 1)));
  ++launches_;  // what gave an error is not one that Finish tells of
  return absl::OkStatus();
}

absl::StatusOr<Batch> CardStream::Finish(absl::FunctionRef<void(size_t)> runs) {
  const bool was_held = state_ == State::kHeld;
  Release();
  const int64_t start = NowNs();
  size_t told = launches_;  // none
  cuda::Result result = cuda::kNotReady;
  do {
    result = call_.query_stream(stream_);
    const size_t over = words_[1].value.load(std::memory_order_acquire);
    if (over != told && over < launches_) {
      runs(over);
      told = over;
    }
    if (result == cuda::kNotReady && NowNs() - start > kLookNs) nanosleep(&kSleep, nullptr);
  } while (result == cuda::kNotReady);
  if (result != cuda::kSuccess) return Lost("cuStreamQuery", result);
  const int64_t waited = NowNs() - start;
  absl::StatusOr<Batch> batch = ReadEvents();
  if (batch.ok() && was_held) batch->late_ns = waited - batch->span_ns;
  launches_ = 0;
  words_[1].value.store(0, std::memory_order_release);
  state_ = State::kIdle;
  return batch;
}

absl::StatusOr<Batch> CardStream::ReadEvents() {
  Batch batch;
  const auto elapsed = [&](cuda::Event from, cuda::Event to) -> absl::StatusOr<int64_t> {
    float milliseconds = 0;
    const cuda::Result result = call_.elapsed(&milliseconds, from, to);
    if (result != cuda::kSuccess) return Lost("cuEventElapsedTime", result);
    return std::llround(static_cast<double>(milliseconds) * 1e6);
  };
  batch.samples_ns.reserve(launches_);
  for (size_t i = 0; i < launches_; ++i) {
    ASSIGN_OR_RETURN(batch.samples_ns.emplace_back(), elapsed(events_[i].first, events_[i].second));
  }
  if (launches_ > 0) {
    ASSIGN_OR_RETURN(batch.span_ns, elapsed(events_[0].first, events_[launches_ - 1].second));
  }
  return batch;
}

}  // namespace phobos::device
