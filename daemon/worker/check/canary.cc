// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/check/canary.h"

#include <string.h>

#include <algorithm>

namespace phobos::worker {
namespace {

constexpr int64_t kWord = sizeof(uint64_t);

// The finalizer of splitmix64: every input bit changes about half of the output bits.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The eight canary bytes of one aligned word of offsets.
uint64_t Word(uint64_t base, int64_t word) {
  return Mix(base + static_cast<uint64_t>(word) * 0x9e3779b97f4a7c15);
}

uint64_t Base(CanaryKey key) {
  return Mix(key.seed ^ Mix(static_cast<uint64_t>(key.tensor) + 0x9e3779b97f4a7c15));
}

int64_t FloorWord(int64_t offset) {
  return offset >= 0 ? offset / kWord : -((kWord - 1 - offset) / kWord);
}

// Calls visit(position in bytes, expected bytes, count) for each word's part that lies in the
// range, until it gives false.
template <typename Visit>
void ForWords(CanaryKey key, int64_t offset, int64_t size, Visit visit) {
  const uint64_t base = Base(key);
  int64_t position = 0;
  while (position < size) {
    const int64_t word = FloorWord(offset + position);
    const int64_t skipped = offset + position - word * kWord;
    const int64_t count = std::min(kWord - skipped, size - position);
    const uint64_t value = Word(base, word);
    std::byte bytes[kWord];
    memcpy(bytes, &value, sizeof(bytes));
    if (!visit(position, bytes + skipped, count)) return;
    position += count;
  }
}

}  // namespace

void FillCanary(CanaryKey key, int64_t offset, absl::Span<std::byte> bytes) {
  ForWords(key, offset, static_cast<int64_t>(bytes.size()),
           [&](int64_t position, const std::byte* expected, int64_t count) {
             memcpy(bytes.data() + position, expected, static_cast<size_t>(count));
             return true;
           });
}

std::optional<int64_t> FirstChanged(CanaryKey key, int64_t offset,
                                    absl::Span<const std::byte> bytes) {
  std::optional<int64_t> changed;
  ForWords(key, offset, static_cast<int64_t>(bytes.size()),
           [&](int64_t position, const std::byte* expected, int64_t count) {
             const std::byte* got = bytes.data() + position;
             // Nearly all parts are whole words, and those are compared without a call.
             if (count == kWord && memcmp(got, expected, kWord) == 0) return true;
             const auto differ = std::mismatch(got, got + count, expected);
             if (differ.first == got + count) return true;
             changed = offset + position + (differ.first - got);
             return false;
           });
  return changed;
}

}  // namespace phobos::worker
