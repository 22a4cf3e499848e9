// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/check/canary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace phobos::worker {
namespace {

std::vector<std::byte> Filled(CanaryKey key, int64_t offset, size_t size) {
  std::vector<std::byte> bytes(size);
  FillCanary(key, offset, absl::MakeSpan(bytes));
  return bytes;
}

// Every byte, at every offset and size around a word's edges, is guarded.
TEST(Canary, EachChangedByteIsFound) {
  const CanaryKey key = {7, 2};
  for (const int64_t offset : {-33, -32, -1, 0, 3, 1000}) {
    for (size_t size = 1; size < 40; ++size) {
      std::vector<std::byte> bytes = Filled(key, offset, size);
      EXPECT_EQ(FirstChanged(key, offset, bytes), std::nullopt);
      for (size_t i = 0; i < size; ++i) {
        bytes[i] ^= std::byte{1};
        EXPECT_EQ(FirstChanged(key, offset, bytes), offset + static_cast<int64_t>(i));
        bytes[i] ^= std::byte{1};
      }
    }
  }
}

TEST(Canary, AByteDependsOnItsOffsetAlone) {
  const std::vector<std::byte> all = Filled({1, 1}, -100, 200);
  for (size_t begin = 0; begin < 150; ++begin) {
    const std::vector<std::byte> part = Filled({1, 1}, static_cast<int64_t>(begin) - 100, 50);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + static_cast<int64_t>(begin)));
  }
}

// Neither an earlier check's canaries nor a neighbour's can stand in for the right ones.
TEST(Canary, SeedAndTensorChangeAboutAllBytes) {
  const std::vector<std::byte> right = Filled({1, 1}, 0, 4096);
  for (const CanaryKey other : {CanaryKey{2, 1}, CanaryKey{1, 2}}) {
    const std::vector<std::byte> wrong = Filled(other, 0, 4096);
    int same = 0;
    for (size_t i = 0; i < right.size(); ++i) same += right[i] == wrong[i] ? 1 : 0;
    EXPECT_LT(same, 64);  // 16 by chance
  }
}

// No constant imitates them: all 256 values occur about equally often.
TEST(Canary, BytesAreSpread) {
  std::array<int, 256> counts = {};
  for (const std::byte byte : Filled({3, 0}, -32768, 65536)) ++counts[static_cast<size_t>(byte)];
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 150);
  EXPECT_LT(*std::max_element(counts.begin(), counts.end()), 370);
}

}  // namespace
}  // namespace phobos::worker
