// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/check/conflict.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/worker/check/compare.h"

namespace phobos::worker {
namespace {

using compiler::v1::Shadow;

// The blocks that touched an element in one way: none, or the smallest and the largest number.
struct Blocks {
  int64_t first = 0;
  int64_t last = -1;

  bool is_empty() const { return last < 0; }
};

struct TouchContents {
  Touch touch;
  Shadow::Content last;
  Shadow::Content first;
};
constexpr TouchContents kTouches[] = {
    {Touch::kWrite, Shadow::LAST_WRITE, Shadow::FIRST_WRITE},
    {Touch::kRead, Shadow::LAST_READ, Shadow::FIRST_READ},
    {Touch::kAtomic, Shadow::LAST_ATOMIC, Shadow::FIRST_ATOMIC},
};

uint32_t WordAt(const Shadows& shadows, Shadow::Content content, size_t element) {
  const absl::Span<const uint32_t> words = shadows[content];
  return words.empty() ? 0 : words[element];
}

Blocks BlocksAt(const Shadows& shadows, const TouchContents& contents, size_t element) {
  const uint32_t last = WordAt(shadows, contents.last, element);
  if (last == 0) return {};
  return {int64_t{~WordAt(shadows, contents.first, element)}, int64_t{last} - 1};
}

// One block of each set, not the same; nullopt: both sets are one and the same block, or one is
// empty.
std::optional<std::array<int64_t, 2>> TwoOf(const Blocks& a, const Blocks& b) {
  if (a.is_empty() || b.is_empty()) return std::nullopt;
  if (a.first != b.last) return std::array<int64_t, 2>{a.first, b.last};
  if (a.last != b.first) return std::array<int64_t, 2>{a.last, b.first};
  return std::nullopt;
}

std::optional<Conflict> ConflictAt(const Shadows& shadows, size_t element) {
  Conflict conflict;
  conflict.element = static_cast<int64_t>(element);
  const Blocks writers = BlocksAt(shadows, kTouches[0], element);
  const Blocks atomics = BlocksAt(shadows, kTouches[2], element);
  for (const TouchContents& other : kTouches) {
    const Blocks others = BlocksAt(shadows, other, element);
    // An atomic is a write too, but not to another atomic.
    for (const Touch touch : {Touch::kWrite, Touch::kAtomic}) {
      if (touch == Touch::kAtomic && other.touch != Touch::kRead) continue;
      const auto two = TwoOf(touch == Touch::kWrite ? writers : atomics, others);
      if (!two.has_value()) continue;
      conflict.blocks = *two;
      conflict.touches = {touch, other.touch};
      return conflict;
    }
  }
  const uint32_t clash = WordAt(shadows, Shadow::CLASH, element);
  if (clash == 0) return std::nullopt;
  conflict.is_clash = true;
  conflict.blocks = {int64_t{clash} - 1, int64_t{clash} - 1};
  return conflict;
}

// Whether no more than one block touched the element, which is how most are. A block's two words
// add up to 0, and so do two that are 0.
bool IsOneBlocks(const Shadows& shadows, size_t element) {
  uint32_t last = 0;
  uint32_t first = 0;
  for (const TouchContents& contents : kTouches) {
    last = std::max(last, WordAt(shadows, contents.last, element));
    first = std::max(first, WordAt(shadows, contents.first, element));
  }
  return last + first == 0;
}

std::string BlockText(int64_t number, const tuner::v1::Grid& grid) {
  const int64_t x = std::max<int64_t>(grid.x(), 1);
  const int64_t y = std::max<int64_t>(grid.y(), 1);
  return absl::StrCat("block (", number % x, ", ", number / x % y, ", ", number / x / y, ")");
}

std::string_view Verb(Touch touch) {
  switch (touch) {
    case Touch::kWrite:
      return "writes";
    case Touch::kRead:
      return "reads";
    case Touch::kAtomic:
      return "atomically changes";
  }
  return "touches";
}

// " (add.py:9 or add.py:12)": of the accesses that the shadow tells of.
std::string PlacesText(const compiler::v1::Recording& recording, const std::string& tensor,
                       Shadow::Content content) {
  for (const Shadow& shadow : recording.shadows()) {
    if (shadow.parameter() != tensor || shadow.content() != content) continue;
    if (shadow.places().empty()) break;
    return absl::StrCat(" (", absl::StrJoin(shadow.places(), " or "), ")");
  }
  return "";
}

}  // namespace

std::optional<Conflict> FirstConflict(const Shadows& shadows) {
  size_t size = 0;
  for (const absl::Span<const uint32_t> words : shadows) size = std::max(size, words.size());
  for (size_t i = 0; i < size; ++i) {
    if (IsOneBlocks(shadows, i) && WordAt(shadows, Shadow::CLASH, i) == 0) continue;
    if (auto conflict = ConflictAt(shadows, i); conflict.has_value()) return conflict;
  }
  return std::nullopt;
}

std::string Describe(const Conflict& conflict, const std::string& tensor, int64_t element,
                     absl::Span<const int64_t> shape, const tuner::v1::Grid& grid,
                     const compiler::v1::Recording& recording) {
  const std::string name = tensor + IndexText(element, shape);
  if (conflict.is_clash) {
    return absl::StrCat("a scatter of ", BlockText(conflict.blocks[0], grid), " writes ", name,
                        " twice", PlacesText(recording, tensor, Shadow::CLASH));
  }
  const auto part = [&](int side, const std::string& what) {
    const Touch touch = conflict.touches[static_cast<size_t>(side)];
    const TouchContents& contents = kTouches[static_cast<size_t>(touch)];
    return absl::StrCat(BlockText(conflict.blocks[static_cast<size_t>(side)], grid), " ",
                        std::string(Verb(touch)), " ", what,
                        PlacesText(recording, tensor, contents.last));
  };
  return absl::StrCat(part(0, name), " and ", part(1, "it"));
}

}  // namespace phobos::worker
