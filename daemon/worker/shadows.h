// SPDX-License-Identifier: Apache-2.0
//
// ShadowMemory: the stretch of a Device's memory that race-recording forms write down in who
// touched what (message Recording of manifest.proto). It lays out one recording's shadows at a
// time, clears them, and says what they tell. It launches nothing (job.h). Lives in the worker
// process. One thread, the Device's.
#ifndef PHOBOS_DAEMON_WORKER_SHADOWS_H_
#define PHOBOS_DAEMON_WORKER_SHADOWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/device/device.h"
#include "daemon/worker/messages.pb.h"

namespace phobos::worker {

// Memory that the shadows take, for these tensors.
int64_t ShadowBytes(const compiler::v1::Recording& recording, const JobSetup& job);

class ShadowMemory {
 public:
  // At `begin`, which is aligned to 256, as large as any of the job's recordings needs. All must
  // outlive this.
  ShadowMemory(const JobSetup& job, device::Device& device, std::byte* begin)
      : job_(job), device_(device), begin_(begin) {}

  // The shadows' addresses, in their order.
  std::vector<uint64_t> Slots(const compiler::v1::Recording& recording) const;

  // Makes them all 0, and waits for that.
  absl::Status Clear(const compiler::v1::Recording& recording);

  // The witness of a race that a launch on this grid wrote down; empty: there was none.
  absl::StatusOr<std::string> FoundRace(const compiler::v1::Recording& recording,
                                        const tuner::v1::Grid& grid);

 private:
  // The shadows of one tensor.
  absl::StatusOr<std::string> FoundRaceOn(const TensorSetup& tensor,
                                          const compiler::v1::Recording& recording,
                                          const tuner::v1::Grid& grid);

  const JobSetup& job_;
  device::Device& device_;
  std::byte* const begin_;
};

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_SHADOWS_H_
