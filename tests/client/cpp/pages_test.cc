// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/tune/pages.h"

#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace phobos {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Pages of the block that are in memory.
size_t Present(const std::byte* data, size_t bytes) {
  std::vector<unsigned char> pages(bytes / 4096);
  EXPECT_EQ(mincore(const_cast<std::byte*>(data), bytes, pages.data()), 0) << strerror(errno);
  return static_cast<size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

TEST(OwnPages, AreZeroAndWritable) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, 2 * kMiB, 5 * kMiB + 3}) {
    const auto pages = OwnPages::Make(bytes);
    ASSERT_TRUE(pages.ok()) << pages.status().message();
    std::byte* data = (*pages)->data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % (bytes < 2 * kMiB ? 64 : 2 * kMiB), 0U);
    EXPECT_EQ(std::count(data, data + bytes, std::byte{0}), static_cast<int64_t>(bytes));
    memset(data, 1, bytes);
  }
}

TEST(OwnPages, TooManyAreAnError) {
  const auto pages = OwnPages::Make(size_t{1} << 60);
  EXPECT_EQ(pages.status().code(), Code::kResourceExhausted);
}

TEST(PagesAhead, ChangesNoByteThatIsWrittenMeanwhile) {
  constexpr size_t kBytes = 33 * kMiB;
  const auto pages = OwnPages::Make(kBytes);
  ASSERT_TRUE(pages.ok());
  std::byte* data = (*pages)->data();
  for (const int value : {1, 2}) {
    // Neither end on a page's border.
    const PagesAhead ahead({{data + 5, kBytes / 2}, {data + kBytes / 2, kBytes / 2 - 7}});
    memset(data, value, kBytes);
  }
  EXPECT_EQ(std::count(data, data + kBytes, std::byte{2}), static_cast<int64_t>(kBytes));
}

TEST(PagesAhead, BringsInPagesOfSharedMemory) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor: nobody goes ahead";
  constexpr size_t kBytes = 32 * kMiB;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* data = static_cast<std::byte*>(memory);
  EXPECT_EQ(Present(data, kBytes), 0U);
  {
    const PagesAhead ahead({{data, kBytes}});
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (Present(data, kBytes) == 0 && std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
    }
    EXPECT_GT(Present(data, kBytes), 0U);
  }
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace phobos
