// SPDX-License-Identifier: Apache-2.0
//
// Card: what the driver says of one GPU, or of one MIG slice. Asks the driver alone, makes no
// context. Values; any thread.
#ifndef PHOBOS_CLIENT_LAUNCH_CUDA_CARD_H_
#define PHOBOS_CLIENT_LAUNCH_CUDA_CARD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/launch/cuda/driver.h"
#include "client/launch/status.h"

namespace phobos::launch::cuda {

struct Card {
  // The driver's ordinal in this process; CUDA_VISIBLE_DEVICES changes it. -1: it cannot be told.
  Device device = -1;
  std::string name;  // "NVIDIA H200"
  // "GPU-...", as nvidia-smi spells it; "MIG-..." for a slice. Empty: it cannot be told.
  std::string uuid;
  std::string card_uuid;  // of the physical card: `uuid`, or a slice's parent's
  std::string chip;       // "sm_90"; empty: too old for this compiler
  // Why no kernel can run on it; empty: one can. The rest may be missing where it is not.
  std::string unusable;
  int major = 0;  // compute capability
  int minor = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t shared_memory_bytes = 0;  // most that a block can have
  int multiprocessors = 0;
  int max_threads = 0;  // of a block
};

// The chip whose PTX runs best on a card of that compute capability: its own, else the newest older
// one, because PTX runs on newer cards. Empty: older than every chip that is compiled for.
std::string ChipOf(int major, int minor);

// All that the driver shows this process, in the order of their ordinals; one that cannot be read
// is unusable.
StatusOr<std::vector<Card>> ListCards(const CudaDriver& driver);

// The card of that uuid. NotFound lists those there are.
StatusOr<Card> FindCard(const CudaDriver& driver, const std::string& uuid);

}  // namespace phobos::launch::cuda

#endif  // PHOBOS_CLIENT_LAUNCH_CUDA_CARD_H_
