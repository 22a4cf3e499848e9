// SPDX-License-Identifier: Apache-2.0
//
// What the shadows of a race-recording form say after its launch (message Recording of
// manifest.proto): whether two blocks touched one element, one of them writing and not both by
// atomics, or one scatter wrote an element twice. Pure functions, any thread.
#ifndef PHOBOS_DAEMON_WORKER_CHECK_CONFLICT_H_
#define PHOBOS_DAEMON_WORKER_CHECK_CONFLICT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::worker {

// Blocks that a recording tells apart: a grid has no more of them.
inline constexpr int64_t kMostRecordedBlocks = (int64_t{1} << 32) - 2;

// The shadows of one tensor, or the same stretch of each, by their content: empty where the form
// has none.
inline constexpr size_t kShadowContents = compiler::v1::Shadow::Content_ARRAYSIZE;
using Shadows = std::array<absl::Span<const uint32_t>, kShadowContents>;

// How a block touches an element.
enum class Touch { kWrite, kRead, kAtomic };

struct Conflict {
  int64_t element = 0;  // index in the stretch
  // Two blocks and what each does; of a clash the one block that wrote the element twice.
  std::array<int64_t, 2> blocks = {};
  std::array<Touch, 2> touches = {};
  bool is_clash = false;
};

// Of the first element that has one; two blocks before a clash. REQUIRES: shadows that are not
// empty have one size.
std::optional<Conflict> FirstConflict(const Shadows& shadows);

// "block (0, 0, 0) writes out[7] (add.py:9) and block (3, 0, 0) writes it (add.py:9)". `element`:
// its index in the tensor, which has this shape; the places are those of the recording's shadows.
std::string Describe(const Conflict& conflict, const std::string& tensor, int64_t element,
                     absl::Span<const int64_t> shape, const tuner::v1::Grid& grid,
                     const compiler::v1::Recording& recording);

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_CHECK_CONFLICT_H_
