// SPDX-License-Identifier: Apache-2.0
//
// How a leader hands its tensors over: where in its segment each one goes, and whether what it sent
// fits that. Pure functions, any thread.
#ifndef PHOBOS_DAEMON_ENGINE_JOIN_HAND_OVER_H_
#define PHOBOS_DAEMON_ENGINE_JOIN_HAND_OVER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/tuner/arguments.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"

namespace phobos::engine {

using BufferRefs = google::protobuf::RepeatedPtrField<tuner::v1::BufferRef>;

struct HandOver {
  std::vector<tuner::v1::BufferRequest>
      buffers;        // one a tensor parameter, in order; `segment` is not set
  int64_t bytes = 0;  // of the segment that they need
};

// InvalidArgument: `tensor_bytes` (where given) is not what the extents say. ResourceExhausted: the
// daemon's copies would need more than `copy_limit`, with both numbers. REQUIRES: CheckExtents.
absl::StatusOr<HandOver> PlanHandOver(const compiler::v1::KernelDescription& description,
                                      const tuner::v1::Open& open, int64_t copy_limit);

// Indices of the variants whose grid is wanted.
std::vector<int32_t> WantedVariants(const compiler::v1::KernelDescription& description);

// InvalidArgument: a grid for each wanted variant, once, or its error, is not what was sent.
absl::Status CheckGrids(const compiler::v1::KernelDescription& description,
                        const tuner::v1::Args& args);

// Where the parameters named by `refs` lie in segment number `segment` at `memory`, or, where
// `takes_cuda_ipc`, on the card. InvalidArgument: an unknown or repeated parameter, another
// segment, a size that is not the tensor's, a place outside, a handle that is not taken or is none.
// Whether a place on the card is inside its allocation is for the worker to find.
absl::StatusOr<std::vector<tuner::TensorBytes>> Locate(const HandOver& hand_over,
                                                       const BufferRefs& refs, uint64_t segment,
                                                       absl::Span<const std::byte> memory,
                                                       bool takes_cuda_ipc = false);

// InvalidArgument: a tensor parameter is missing among the arguments, or a written one among the
// reference's answers.
absl::Status CheckAllThere(const HandOver& hand_over, const BufferRefs& refs, bool only_written);

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_JOIN_HAND_OVER_H_
