// SPDX-License-Identifier: Apache-2.0
//
// Canary bytes beside tensors: each a hash of (seed, tensor, offset), so that no constant, no copy
// of a neighbour and no earlier canary can imitate them. `offset` is counted from the tensor's
// first byte: negative before it, its size and more after it. Pure functions, any thread.
#ifndef PHOBOS_DAEMON_WORKER_CHECK_CANARY_H_
#define PHOBOS_DAEMON_WORKER_CHECK_CANARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace phobos::worker {

// Which canaries: those of one check, beside one tensor.
struct CanaryKey {
  uint64_t seed = 0;
  int tensor = 0;
};

// Fills `bytes`, the first of which lies at `offset`.
void FillCanary(CanaryKey key, int64_t offset, absl::Span<std::byte> bytes);

// Offset of the first byte that is not as FillCanary left it.
std::optional<int64_t> FirstChanged(CanaryKey key, int64_t offset,
                                    absl::Span<const std::byte> bytes);

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_CHECK_CANARY_H_
