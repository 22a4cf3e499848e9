// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cpu/region.h"

#include <gtest/gtest.h>
#include <string.h>

#include "tests/status_matchers.h"

namespace phobos::device {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

TEST(Region, OnlyWhatWasTouchedIsResident) {
  EXPECT_EQ(Region().ResidentBytes(), 0);
  ASSERT_OK_AND_ASSIGN(const Region region, Region::Map(8 * kHugePage));
  ASSERT_EQ(region.bytes(), 8 * kHugePage);
  EXPECT_EQ(region.ResidentBytes(), 0);
  *region.data() = std::byte{1};
  EXPECT_GT(region.ResidentBytes(), 0);
  EXPECT_LE(region.ResidentBytes(), kHugePage);
  memset(region.data(), 1, 4 * kHugePage);
  EXPECT_EQ(region.ResidentBytes(), 4 * kHugePage);
}

// Longer than what is looked at at once.
TEST(Region, ALongOneIsLookedAtWhole) {
  ASSERT_OK_AND_ASSIGN(const Region region, Region::Map((int64_t{2} << 30) + kHugePage));
  region.data()[region.bytes() - 1] = std::byte{1};
  EXPECT_GT(region.ResidentBytes(), 0);
  EXPECT_LE(region.ResidentBytes(), kHugePage);
}

}  // namespace
}  // namespace phobos::device
