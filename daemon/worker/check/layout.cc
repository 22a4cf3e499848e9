// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/check/layout.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace phobos::worker {
namespace {

constexpr int64_t kKept = 256;  // the caller's address is kept modulo this

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

int64_t AlignmentOf(int64_t bytes, int64_t most) {
  int64_t alignment = kKept;
  while (2 * alignment <= std::min(bytes, most)) alignment *= 2;
  return alignment;
}

}  // namespace

absl::StatusOr<Layout> LayOut(absl::Span<const TensorSetup* const> tensors,
                              int64_t most_alignment) {
  Layout layout;
  int64_t cursor = 0;
  for (const TensorSetup* tensor : tensors) {
    const int64_t modulo = tensor->address_mod_256();
    if (tensor->bytes() < 0 || modulo < 0 || modulo >= kKept) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor->parameter(), " of ",
                                                     tensor->bytes(), " bytes at ", modulo,
                                                     " modulo 256 cannot be laid out"));
    }
    if (tensor->bytes() > std::numeric_limits<int64_t>::max() / 2 - cursor) {
      return absl::InvalidArgumentError("the tensors together are larger than any memory");
    }
    Place place;
    place.begin = cursor;
    place.tensor =
        RoundUp(cursor + kCanaryBytes, AlignmentOf(tensor->bytes(), most_alignment)) + modulo;
    place.bytes = tensor->bytes();
    place.end = RoundUp(place.tensor + place.bytes + kCanaryBytes, kKept);
    cursor = place.end;
    layout.places.push_back(place);
  }
  layout.total_bytes = cursor;
  return layout;
}

}  // namespace phobos::worker
