// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/shadows.h"

#include <string.h>

#include <algorithm>
#include <array>

#include "base/status_macros.h"
#include "daemon/worker/check/conflict.h"
#include "daemon/worker/check/dtype.h"

namespace phobos::worker {
namespace {

using compiler::v1::Recording;
using compiler::v1::Shadow;

constexpr int64_t kWordBytes = sizeof(uint32_t);
constexpr int64_t kAlignment = 256;  // of each shadow
// Elements that are looked at at once, so that large tensors need little memory of the host.
constexpr int64_t kPiece = int64_t{1} << 20;
// Zeros that come from the host; the rest is copied from them.
constexpr int64_t kFirstZeros = int64_t{1} << 20;

int64_t ElementsOf(const TensorSetup& tensor) {
  const int64_t element_bytes = ElementBytes(tensor.dtype());
  return element_bytes == 0 ? 0 : tensor.bytes() / element_bytes;
}

int64_t ElementsOf(const std::string& parameter, const JobSetup& job) {
  for (const TensorSetup& tensor : job.tensors()) {
    if (tensor.parameter() == parameter) return ElementsOf(tensor);
  }
  return 0;
}

// Where each shadow begins, and where the last one ends.
std::vector<int64_t> Offsets(const Recording& recording, const JobSetup& job) {
  std::vector<int64_t> offsets = {0};
  for (const Shadow& shadow : recording.shadows()) {
    const int64_t bytes = ElementsOf(shadow.parameter(), job) * kWordBytes;
    offsets.push_back(offsets.back() + (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  return offsets;
}

void Unwatched(size_t) {}

}  // namespace

int64_t ShadowBytes(const Recording& recording, const JobSetup& job) {
  return Offsets(recording, job).back();
}

std::vector<uint64_t> ShadowMemory::Slots(const Recording& recording) const {
  std::vector<int64_t> offsets = Offsets(recording, job_);
  offsets.pop_back();
  std::vector<uint64_t> slots;
  for (const int64_t offset : offsets) {
    slots.push_back(reinterpret_cast<uint64_t>(begin_ + offset));
  }
  return slots;
}

absl::Status ShadowMemory::Clear(const Recording& recording) {
  const int64_t bytes = ShadowBytes(recording, job_);
  const std::vector<std::byte> zeros(static_cast<size_t>(std::min(bytes, kFirstZeros)));
  auto cleared = static_cast<int64_t>(zeros.size());
  if (cleared > 0) RETURN_IF_ERROR(device_.Copy(begin_, zeros.data(), cleared));
  while (cleared < bytes) {
    const int64_t more = std::min(cleared, bytes - cleared);
    RETURN_IF_ERROR(device_.Copy(begin_ + cleared, begin_, more));
    cleared += more;
  }
  return device_.Finish(Unwatched).status();
}

absl::StatusOr<std::string> ShadowMemory::FoundRace(const Recording& recording,
                                                    const tuner::v1::Grid& grid) {
  for (const TensorSetup& tensor : job_.tensors()) {
    ASSIGN_OR_RETURN(std::string race, FoundRaceOn(tensor, recording, grid));
    if (!race.empty()) return race;
  }
  return std::string();
}

absl::StatusOr<std::string> ShadowMemory::FoundRaceOn(const TensorSetup& tensor,
                                                      const Recording& recording,
                                                      const tuner::v1::Grid& grid) {
  const std::vector<int64_t> offsets = Offsets(recording, job_);
  const int64_t elements = ElementsOf(tensor);
  std::array<std::vector<uint32_t>, kShadowContents> words;
  for (int64_t at = 0; at < elements; at += kPiece) {
    const int64_t size = std::min(kPiece, elements - at);
    Shadows shadows;
    for (int i = 0; i < recording.shadows_size(); ++i) {
      const Shadow& shadow = recording.shadows(i);
      if (shadow.parameter() != tensor.parameter() || shadow.content() == Shadow::STAMP) continue;
      const std::byte* from = begin_ + offsets[static_cast<size_t>(i)] + at * kWordBytes;
      ASSIGN_OR_RETURN(const std::byte* bytes, device_.Read(from, size * kWordBytes));
      std::vector<uint32_t>& copy = words[shadow.content()];
      copy.resize(static_cast<size_t>(size));
      memcpy(copy.data(), bytes, copy.size() * sizeof(uint32_t));
      shadows[shadow.content()] = copy;
    }
    const std::optional<Conflict> conflict = FirstConflict(shadows);
    if (!conflict.has_value()) continue;
    const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    return Describe(*conflict, tensor.parameter(), at + conflict->element, shape, grid, recording);
  }
  return std::string();
}

}  // namespace phobos::worker
