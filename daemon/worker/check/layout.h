// SPDX-License-Identifier: Apache-2.0
//
// Where a job's tensors lie in the device's memory: each between two stretches of canaries of its
// own, at the caller's address modulo 256 and otherwise as aligned as an allocation of its own
// would be. Pure functions, any thread.
#ifndef PHOBOS_DAEMON_WORKER_CHECK_LAYOUT_H_
#define PHOBOS_DAEMON_WORKER_CHECK_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/worker/messages.pb.h"

namespace phobos::worker {

// Least number of canary bytes on each side of a tensor: a page, so that a stray row or a misplaced
// vector hits them.
inline constexpr int64_t kCanaryBytes = 4096;

// One tensor's place, in bytes from the start of the memory: canaries, the tensor, canaries.
struct Place {
  int64_t begin = 0;   // of the canaries before it
  int64_t tensor = 0;  // its first byte
  int64_t bytes = 0;
  int64_t end = 0;  // past the canaries after it
};

struct Layout {
  std::vector<Place> places;  // in the order of the tensors
  int64_t total_bytes = 0;
};

// A tensor lies `address_mod_256` behind a multiple of the largest power of two that is neither
// above its size nor above `most_alignment`, but of 256 at least. REQUIRES: most_alignment is a
// power of two from 256 on, and the memory is aligned to 256; where it is not to most_alignment,
// the multiples count from its start. InvalidArgument: a negative size, an address_mod_256 outside
// 0..255.
absl::StatusOr<Layout> LayOut(absl::Span<const TensorSetup* const> tensors, int64_t most_alignment);

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_CHECK_LAYOUT_H_
