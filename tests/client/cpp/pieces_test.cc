// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/tune/pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace phobos {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(ForPieces, TakesEveryElementOnce) {
  for (const size_t size : {0, 1, 9, 10, 11, 1000}) {
    std::vector<std::atomic<int>> taken(size);
    ForPieces(size, 10, [&](size_t begin, size_t end) {
      EXPECT_TRUE(begin % 10 == 0 && begin < end && end - begin <= 10) << begin << " " << end;
      for (size_t i = begin; i < end; ++i) ++taken[i];
    });
    EXPECT_TRUE(std::all_of(taken.begin(), taken.end(), [](int times) { return times == 1; }))
        << size;
  }
}

TEST(CopyBytes, CopiesAllAndNoMore) {
  for (const size_t bytes : {size_t{0}, size_t{1}, 3 * kMiB, 8 * kMiB, 13 * kMiB + 5}) {
    std::vector<std::byte> from(bytes), to(bytes + 1, std::byte{7});
    for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 31 + (i >> 12));
    CopyBytes(to.data(), from.data(), bytes);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin())) << bytes;
    EXPECT_EQ(to[bytes], std::byte{7});
  }
}

}  // namespace
}  // namespace phobos
