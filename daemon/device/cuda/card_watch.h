// SPDX-License-Identifier: Apache-2.0
//
// CardWatch: whether something else had the card, or held its clocks down, while a batch of
// launches ran. Two witnesses: NVML, whose answers are some tenths of a second old, and the batch
// itself, which takes a multiple of its time when the card is shared out in slices, or has to wait
// for its slice. That NVML saw another process's work is not enough: it may be the caller's own,
// from before it asked. But then less of a delay is taken for one. One thread.
#ifndef PHOBOS_DAEMON_DEVICE_CUDA_CARD_WATCH_H_
#define PHOBOS_DAEMON_DEVICE_CUDA_CARD_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/device/cuda/nvml.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::device {

// A batch of so many launches and flushes that is over.
struct Ran {
  size_t launches = 0;
  size_t flushes = 0;
  int64_t span_ns = 0;  // what it took the card
  int64_t late_ns = 0;  // what the host waited for it beside that; 0: not known
};

class CardWatch {
 public:
  // `nvml`: null where there is none. `own_process`: this process as NVML numbers it; nullopt: not
  // known, and uses by processes are not judged. `clock`: CLOCK_MONOTONIC, or a test's.
  CardWatch(std::unique_ptr<Nvml> nvml, std::optional<unsigned> own_process,
            int64_t (*clock)() = nullptr);

  // Another job begins: its batches are compared with each other only.
  void Reset();

  // What disturbed a batch; empty: nothing seen. NVML is asked at most every few milliseconds, for
  // uses less often, and what it said holds between.
  std::string Look(const Ran& ran);

  // The card as NVML told in the last Look.
  const tuner::v1::CardState& state() const { return state_; }

 private:
  void AskNvml();
  // What the batch itself shows.
  std::string Delay(const Ran& ran, bool is_suspected);

  const std::unique_ptr<Nvml> nvml_;
  const std::optional<unsigned> own_process_;
  int64_t (*const clock_)();
  std::map<std::pair<size_t, size_t>, int64_t> fastest_ns_;  // by launches and flushes
  int64_t asked_ns_ = 0;                                     // 0: never
  int64_t asked_uses_ns_ = 0;
  int64_t used_until_ns_ = 0;  // by another process
  std::string use_;
  tuner::v1::CardState state_;
};

// This process as NVML numbers it, which is as the machine does: in a container not its getpid(),
// which is then another process's number. `host_pid`: getpid() where it is the machine's number
// (HostPid); else this process is the one that has a context on the card `now` and had none
// `before` it took one. nullopt: none, or several, did so.
std::optional<unsigned> OwnProcess(std::optional<unsigned> host_pid,
                                   const std::vector<unsigned>& before,
                                   const std::vector<unsigned>& now);

// nullopt: this process is in a namespace of process numbers that is not the machine's.
std::optional<unsigned> HostPid();

// What has a card, or holds its clocks down, while nothing of ours runs there; empty: nothing. What
// ran before the call does not count, so that it takes half a second; but where the card's sampling
// periods last longer than a quarter of one, it may. Unavailable: NVML cannot tell. `sleep`: for so
// many ns, or a test's.
absl::StatusOr<std::string> LookAtCard(Nvml& nvml, void (*sleep)(int64_t ns) = nullptr);

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CUDA_CARD_WATCH_H_
