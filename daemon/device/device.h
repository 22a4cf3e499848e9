// SPDX-License-Identifier: Apache-2.0
//
// Device: one card, or the host chip, as the worker process drives it: memory, kernels, and a queue
// of copies, flushes and timed launches that run in order. It measures and moves bytes; what is
// checked and in which order things are launched is worker/job.h's. Lives in the worker process
// only. Not thread-safe: one thread owns it; Kernels die before their Device.
#ifndef PHOBOS_DAEMON_DEVICE_DEVICE_H_
#define PHOBOS_DAEMON_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::device {

// What is known of a Device from its start.
struct Description {
  tuner::v1::Device device;
  int64_t timer_resolution_ns = 1;  // samples closer than this cannot be told apart
  int64_t timer_floor_ns = 0;       // sample of a kernel that does nothing; 0: not known
  // Whether its memory is the host's. Else what a job needs again and again is worth a copy in the
  // device's memory.
  bool has_host_memory = true;
};

// A compiled variant to load. `variant` is its index in the space, for messages and for the fake.
struct KernelFile {
  int variant = 0;
  std::string path;
  compiler::v1::Artifact artifact;
};

// What the loaded code takes of a GPU; zeros on other devices, which have no such limits.
struct KernelUsage {
  int registers = 0;                // a thread
  int64_t shared_memory_bytes = 0;  // a block, static and dynamic
  int64_t spill_bytes = 0;          // a thread
};

// A loaded kernel; each Device knows its own kind.
class Kernel {
 public:
  virtual ~Kernel() = default;
  KernelUsage usage;
};

// What came of the launches since the last Finish.
struct Outcome {
  std::vector<int64_t> samples_ns;  // one a launch, in order; not positive when the timer failed
  bool disturbed = false;           // something outside took the device meanwhile
  std::string disturbance;          // what, for a person
  int64_t now_ns = 0;               // the device's clock then, from any start
  tuner::v1::CardState state;       // of a GPU, some milliseconds old at most
};

// Bytes in an allocation that another process has on this device.
struct ForeignBytes {
  std::string name;    // for messages
  std::string handle;  // CUDA's IPC handle of the allocation: a secret, never in a message
  int64_t offset_bytes = 0;
  int64_t bytes = 0;
  std::byte* to = nullptr;    // the host's memory
  std::byte* kept = nullptr;  // of ReservePreloaded's, for a copy on the device; null: none
};

// Errors of every call: Aborted means that the device is lost to this process, which must end.

class Device {
 public:
  explicit Device(Description description) : description_(std::move(description)) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Description& description() const { return description_; }

  // Memory for one job's tensors, aligned to 256, with unreadable pages on both sides where the
  // device can have them; and, when `flush`, all that Flush needs. Takes the place of what an
  // earlier call gave; contents are unspecified. Nothing is given back before the Device dies, so a
  // second job finds it warm. ResourceExhausted: over what the device has, with both numbers.
  virtual absl::StatusOr<std::byte*> Reserve(int64_t bytes, bool flush) = 0;

  // Bytes that Reserve could give now without its flush buffer, what it gave before among them; the
  // largest number where that has no limit.
  virtual absl::StatusOr<int64_t> FreeBytes() = 0;

  // Memory beside Reserve's, aligned to 256, for what a later job needs, so that it can be copied
  // before that job begins. Takes the place of what an earlier call gave, of which no more than
  // these bytes is held; 0 gives all back. ResourceExhausted: there is no room.
  virtual absl::StatusOr<std::byte*> ReservePreloaded(int64_t) {
    return absl::UnimplementedError("this device's memory is the host's");
  }

  // Says what Load will be asked for soon. A device whose artifacts need more work before they can
  // run begins with it, in threads of its own; Load waits for its own file's.
  virtual void Expect(absl::Span<const KernelFile>) {}

  // FailedPrecondition: this device cannot run it; ResourceExhausted: no memory for it; other
  // errors: a bad artifact.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> Load(const KernelFile& file) = 0;

  // Queues a copy; each side may be the host's memory or the device's. Both must stay until Finish.
  virtual absl::Status Copy(std::byte* to, const std::byte* from, int64_t bytes) = 0;

  // Queues a write of twice the last-level cache, so that the next launch reads its inputs from
  // memory. REQUIRES: the last Reserve asked for it.
  virtual absl::Status Flush() = 0;

  // Queues one launch between two time stamps. slots and grid as in the Artifact's ABI. REQUIRES:
  // every side of the grid is positive.
  virtual absl::Status Launch(const Kernel& kernel, absl::Span<const uint64_t> slots,
                              const tuner::v1::Grid& grid) = 0;

  // Waits for everything queued. What disturbed the device is looked for from the first launch
  // queued to here. Where launches are not over when Launch returns, `runs` is told which one, by
  // its place among those whose Launch was OK, is the one that runs now. After an error the last it
  // was told is the guilty one, also when a Launch gave Aborted before, for an earlier one's sake.
  virtual absl::StatusOr<Outcome> Finish(absl::FunctionRef<void(size_t launch)> runs) = 0;

  // Bytes of device memory as the host reads them, when all that is queued is done. Valid until the
  // next call.
  virtual absl::StatusOr<const std::byte*> Read(const std::byte* from, int64_t bytes) = 0;

  // Offset of the first byte that differs between two places in the device's own memory, when all
  // that is queued is done. Of the host's memory the caller finds it itself.
  virtual absl::StatusOr<std::optional<int64_t>> FirstDifference(const std::byte*, const std::byte*,
                                                                 int64_t) {
    return absl::UnimplementedError("this device's memory is the host's");
  }

  // Copies what other processes share, when all that is queued is done. Each allocation is opened
  // once and let go of before this returns. InvalidArgument: a range outside its allocation;
  // FailedPrecondition: an allocation that cannot be opened here, and why.
  virtual absl::Status Fetch(absl::Span<const ForeignBytes>) {
    return absl::FailedPreconditionError("this device has no memory that processes share");
  }

 private:
  const Description description_;
};

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_DEVICE_H_
