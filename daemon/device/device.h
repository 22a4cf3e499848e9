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
#include <string>
#include <utility>
#include <vector>

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
};

// A compiled variant to load. `variant` is its index in the space, for messages and for the fake.
struct KernelFile {
  int variant = 0;
  std::string path;
  compiler::v1::Artifact artifact;
};

// A loaded kernel; each Device knows its own kind.
class Kernel {
 public:
  virtual ~Kernel() = default;
};

// What came of the launches since the last Finish.
struct Outcome {
  std::vector<int64_t> samples_ns;  // one a launch, in order; not positive when the timer failed
  bool disturbed = false;           // something outside took the device meanwhile
  std::string disturbance;          // what, for a person
};

class Device {
 public:
  explicit Device(Description description) : description_(std::move(description)) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Description& description() const { return description_; }

  // Memory for one job's tensors, aligned to 4096, with unreadable pages on both sides where the
  // device can have them; and, when `flush`, all that Flush needs. Takes the place of what an
  // earlier call gave; contents are unspecified. Nothing is given back before the Device dies, so a
  // second job finds it warm. ResourceExhausted: over what the device has, with both numbers.
  virtual absl::StatusOr<std::byte*> Reserve(int64_t bytes, bool flush) = 0;

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
  // queued to here.
  virtual absl::StatusOr<Outcome> Finish() = 0;

  // Bytes of device memory as the host reads them. Valid until the next call.
  virtual absl::StatusOr<const std::byte*> Read(const std::byte* from, int64_t bytes) = 0;

  // The clock by which a warm-up is long enough, from any start.
  virtual int64_t NowNs() = 0;

 private:
  const Description description_;
};

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_DEVICE_H_
