// SPDX-License-Identifier: Apache-2.0
//
// CardStream: the one stream of a card on which a job's copies, flushes and launches run in order,
// each launch between two events. Launches are held back until all of a batch is queued, so that
// the card never waits for the host between them: then an event pair measures the kernel and not
// the gap. Where a stream cannot wait for memory nothing is held back, and only the flushes before
// the launches keep the card from waiting. One thread; the context must be current on it.
//
// An error of the driver here is Aborted, whatever it was: what the card did of the batch is not
// known any more, and a new process is. But a launch that is refused for want of memory or
// registers is ResourceExhausted or FailedPrecondition, and a kernel's first one that is refused
// as an invalid value InvalidArgument.
#ifndef PHOBOS_DAEMON_DEVICE_CUDA_CARD_STREAM_H_
#define PHOBOS_DAEMON_DEVICE_CUDA_CARD_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/launch/cuda/driver.h"
#include "client/launch/cuda/kernel.h"
#include "client/launch/grid.h"

namespace phobos::device {

// What came of the launches since the last Finish.
struct Batch {
  std::vector<int64_t> samples_ns;  // one a launch, in order
  int64_t span_ns = 0;              // from the first one's start to the last one's end
  // What the host waited beside that, from letting the batch go; 0: it had been let go before.
  int64_t late_ns = 0;
};

class CardStream {
 public:
  static absl::StatusOr<std::unique_ptr<CardStream>> Open(
      std::shared_ptr<const launch::cuda::CudaDriver> driver);
  ~CardStream();
  CardStream(const CardStream&) = delete;
  CardStream& operator=(const CardStream&) = delete;

  // Each side is an address of the card or of the host. A copy that touches the host's memory lets
  // the batch go, because the driver may wait for it.
  absl::Status Copy(uint64_t to, uint64_t from, int64_t bytes, bool is_on_card);
  // Queues a mark behind all copies, which must have been let go; Await returns when the card has
  // passed it. 0 is always passed.
  absl::StatusOr<uint32_t> Mark();
  absl::Status Await(uint32_t mark);
  absl::Status Fill(uint64_t to, uint32_t value, int64_t words);
  // `is_first`: of this kernel. The driver may wait for the card then, to load the code or to find
  // memory for its spills, so the batch is let go. REQUIRES: every side of the grid is positive.
  absl::Status Launch(const launch::cuda::CudaKernel& kernel, absl::Span<const uint64_t> slots,
                      const launch::Grid& grid, bool is_first);

  // Lets the batch go and waits for it. `runs` is told which launch runs now; after an error the
  // last it was told is the guilty one.
  absl::StatusOr<Batch> Finish(absl::FunctionRef<void(size_t launch)> runs);

 private:
  using EventPair = std::pair<launch::cuda::Event, launch::cuda::Event>;
  // Words of host memory that the card reads and writes. 128 bytes apart: not in one cache line.
  struct alignas(128) Word {
    std::atomic<uint32_t> value;
  };

  explicit CardStream(std::shared_ptr<const launch::cuda::CudaDriver> driver);
  absl::Status Make();
  absl::Status AddEvents();
  // Before something is queued that can wait on the card for the rest of its batch.
  absl::Status Hold();
  void Release();
  // Queues a write of one word.
  absl::Status Write(launch::cuda::DevicePointer word, uint32_t value);
  // Also lets the batch go: who frees what it uses would wait for it.
  absl::Status Lost(const char* call, launch::cuda::Result result);
  absl::StatusOr<Batch> ReadEvents();

  const std::shared_ptr<const launch::cuda::CudaDriver> driver_;
  const launch::cuda::Functions& call_;
  launch::cuda::Stream stream_ = nullptr;
  // The gate's, the number of launches that are over, the last mark passed.
  Word* words_ = nullptr;
  launch::cuda::DevicePointer gate_ = 0;
  launch::cuda::DevicePointer over_ = 0;
  launch::cuda::DevicePointer passed_ = 0;
  std::vector<EventPair> events_;
  bool has_memory_operations_ = true;  // of streams: to wait for a word and to write one

  enum class State { kIdle, kHeld, kReleased };
  State state_ = State::kIdle;  // of the batch
  uint32_t batch_ = 0;          // its number: the gate's value that lets it go
  int held_ = 0;                // copies, fills and launches queued behind the gate
  size_t launches_ = 0;
  uint32_t marks_ = 0;
};

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CUDA_CARD_STREAM_H_
