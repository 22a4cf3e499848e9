// SPDX-License-Identifier: Apache-2.0
//
// A Device that computes two small kernels and otherwise does what its script says (script.h):
// takes made-up times by a made-up clock, writes where it must not, crashes, hangs. It writes down
// every call, so that tests can prove in which order things happened and that nothing was allocated
// or loaded between samples. For tests; one thread.
#ifndef PHOBOS_DAEMON_DEVICE_FAKE_FAKE_DEVICE_H_
#define PHOBOS_DAEMON_DEVICE_FAKE_FAKE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/device/device.h"
#include "daemon/device/fake/script.h"

namespace phobos::device {

class FakeDevice : public Device {
 public:
  explicit FakeDevice(FakeScript script);

  // Every call so far: "reserve", "load 2", "copy", "flush", "launch 2", "finish".
  const std::vector<std::string>& calls() const { return calls_; }
  void ClearCalls() { calls_.clear(); }

  // The calls of Device. Copies and launches happen at once; a launch that the script lets crash or
  // hang does so here.
  absl::StatusOr<std::byte*> Reserve(int64_t bytes, bool flush) override;
  absl::StatusOr<int64_t> FreeBytes() override { return script_.memory_bytes; }
  absl::StatusOr<std::unique_ptr<Kernel>> Load(const KernelFile& file) override;
  absl::Status Copy(std::byte* to, const std::byte* from, int64_t bytes) override;
  absl::Status Flush() override;
  absl::Status Launch(const Kernel& kernel, absl::Span<const uint64_t> slots,
                      const tuner::v1::Grid& grid) override;
  absl::StatusOr<Outcome> Finish(absl::FunctionRef<void(size_t launch)> runs) override;
  absl::StatusOr<const std::byte*> Read(const std::byte* from, int64_t bytes) override;

 private:
  // What the launch takes by the script, given the clock's ramp and whether the cache was flushed.
  int64_t SampleOf(const FakeVariant& variant, int64_t launch);

  const FakeScript script_;
  std::vector<std::string> calls_;
  std::vector<std::byte> memory_;
  std::map<int, int64_t> launches_;  // so far, of each variant
  std::vector<int64_t> samples_ns_;
  bool flushed_ = false;    // since the last launch
  bool may_flush_ = false;  // the last Reserve asked for it
  int64_t now_ns_ = 0;      // the made-up clock
  int64_t finishes_ = 0;    // with launches before them
};

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_FAKE_FAKE_DEVICE_H_
