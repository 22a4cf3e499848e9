// SPDX-License-Identifier: Apache-2.0
//
// Nvml: what NVIDIA's management library says of one card: clocks, temperature, power, why clocks
// are held down, and which processes use it. Loaded at run time; a machine without it is tuned on
// all the same. Not for control: it changes nothing. One thread.
#ifndef PHOBOS_DAEMON_DEVICE_CUDA_NVML_H_
#define PHOBOS_DAEMON_DEVICE_CUDA_NVML_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::device {

// What one process used of the card's multiprocessors in the library's last sampling periods.
struct CardUse {
  unsigned process = 0;  // as the machine numbers it, not a container
  unsigned percent = 0;  // the most of any period
};

class Nvml {
 public:
  // Loads libnvidia-ml.so.1, or what $PHOBOS_NVML_LIBRARY names, and finds the card ("GPU-...",
  // "MIG-..."). Unavailable: no library, too old, or no such card, with the reason.
  static absl::StatusOr<std::unique_ptr<Nvml>> Open(const std::string& uuid);
  virtual ~Nvml() = default;

  // "580.159"; empty where the library does not tell.
  virtual std::string Driver() = 0;

  // That a card is idle, or was told to run at fixed clocks, is no throttling.
  virtual tuner::v1::CardState Read() = 0;

  // Processes that have a context on the card, in no order; empty where the card does not tell.
  virtual std::vector<unsigned> Processes() = 0;

  // Processes that kept the card busy in sampling periods that ended since the last call, or, in
  // the first call, since `now_us` of CLOCK_REALTIME. A period is a sixth of a second or longer, by
  // the card: mostly there is none. Unavailable: the card does not tell, as one that is cut into
  // MIG slices.
  virtual absl::StatusOr<std::vector<CardUse>> NewUses(int64_t now_us) = 0;
};

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CUDA_NVML_H_
