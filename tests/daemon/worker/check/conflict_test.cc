// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/check/conflict.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

namespace phobos::worker {
namespace {

using compiler::v1::Shadow;

constexpr Shadow::Content kLast[] = {Shadow::LAST_WRITE, Shadow::LAST_READ, Shadow::LAST_ATOMIC};
constexpr Shadow::Content kFirst[] = {Shadow::FIRST_WRITE, Shadow::FIRST_READ,
                                      Shadow::FIRST_ATOMIC};

// Blocks by how they touch one element: stores, loads, atomics.
using Touched = std::array<std::set<uint32_t>, 3>;

// The words that a recording leaves of them.
std::array<std::vector<uint32_t>, kShadowContents> Words(const Touched& touched) {
  std::array<std::vector<uint32_t>, kShadowContents> words;
  for (size_t way = 0; way < touched.size(); ++way) {
    const std::set<uint32_t>& blocks = touched[way];
    words[kLast[way]] = {blocks.empty() ? 0 : *blocks.rbegin() + 1};
    words[kFirst[way]] = {blocks.empty() ? 0 : ~*blocks.begin()};
  }
  return words;
}

std::optional<Conflict> ConflictOf(
    const std::array<std::vector<uint32_t>, kShadowContents>& words) {
  Shadows shadows;
  for (size_t i = 0; i < words.size(); ++i) shadows[i] = words[i];
  return FirstConflict(shadows);
}

// By the definition.
bool IsRace(const Touched& touched) {
  for (size_t a = 0; a < 3; ++a) {
    for (size_t b = 0; b < 3; ++b) {
      const bool one_writes = a != 1 || b != 1;
      if (!one_writes || (a == 2 && b == 2)) continue;
      for (const uint32_t block : touched[a]) {
        if (touched[b].size() > touched[b].count(block)) return true;
      }
    }
  }
  return false;
}

TEST(ConflictTest, AllSetsOfThreeBlocks) {
  constexpr uint32_t kBlocks[] = {0, 5, 0xfffffffd};
  int races = 0;
  for (int bits = 0; bits < 512; ++bits) {
    Touched touched;
    for (int i = 0; i < 9; ++i) {
      if ((bits >> i & 1) != 0) touched[static_cast<size_t>(i / 3)].insert(kBlocks[i % 3]);
    }
    const std::optional<Conflict> conflict = ConflictOf(Words(touched));
    ASSERT_EQ(conflict.has_value(), IsRace(touched)) << bits;
    if (!conflict.has_value()) continue;
    ++races;
    EXPECT_FALSE(conflict->is_clash);
    EXPECT_NE(conflict->blocks[0], conflict->blocks[1]) << bits;
    for (size_t side = 0; side < 2; ++side) {
      const auto way = static_cast<size_t>(conflict->touches[side]);
      EXPECT_EQ(touched[way].count(static_cast<uint32_t>(conflict->blocks[side])), 1u) << bits;
    }
    EXPECT_FALSE(conflict->touches[0] == Touch::kRead);
    EXPECT_FALSE(conflict->touches[0] == Touch::kAtomic && conflict->touches[1] == Touch::kAtomic);
  }
  EXPECT_GT(races, 300);
}

TEST(ConflictTest, WhatIsNotThereTouchesNothing) {
  EXPECT_FALSE(FirstConflict({}).has_value());
  const std::vector<uint32_t> last = {0, 3, 9}, first = {0, ~2u, ~4u};
  Shadows shadows;
  shadows[Shadow::LAST_READ] = last;
  shadows[Shadow::FIRST_READ] = first;
  EXPECT_FALSE(FirstConflict(shadows).has_value());
  shadows = {};
  shadows[Shadow::LAST_WRITE] = last;
  shadows[Shadow::FIRST_WRITE] = first;
  ASSERT_TRUE(FirstConflict(shadows).has_value());
  EXPECT_EQ(FirstConflict(shadows)->element, 2);
}

TEST(ConflictTest, TwoBlocksComeBeforeAClash) {
  auto words = Words({std::set<uint32_t>{4}, {}, {}});
  words[Shadow::CLASH] = {5};
  EXPECT_TRUE(ConflictOf(words)->is_clash);
  EXPECT_EQ(ConflictOf(words)->blocks[0], 4);
  words = Words({std::set<uint32_t>{4, 6}, {}, {}});
  words[Shadow::CLASH] = {5};
  EXPECT_FALSE(ConflictOf(words)->is_clash);
}

TEST(ConflictTest, Texts) {
  compiler::v1::Recording recording;
  const auto add = [&](Shadow::Content content, const std::vector<std::string>& places) {
    Shadow& shadow = *recording.add_shadows();
    shadow.set_parameter("out");
    shadow.set_content(content);
    for (const std::string& place : places) shadow.add_places(place);
  };
  add(Shadow::LAST_WRITE, {"k.py:9", "k.py:12"});
  add(Shadow::LAST_READ, {"k.py:4"});
  add(Shadow::CLASH, {"k.py:9"});
  tuner::v1::Grid grid;
  grid.set_x(3), grid.set_y(2), grid.set_z(4);
  Conflict conflict;
  conflict.blocks = {1, 3 * 2 * 3 + 3 + 2};
  conflict.touches = {Touch::kWrite, Touch::kRead};
  EXPECT_EQ(Describe(conflict, "out", 7, {2, 5}, grid, recording),
            "block (1, 0, 0) writes out[1, 2] (k.py:9 or k.py:12) and block (2, 1, 3) reads it "
            "(k.py:4)");
  conflict.touches = {Touch::kAtomic, Touch::kWrite};
  EXPECT_EQ(Describe(conflict, "out", 7, {10}, grid, recording),
            "block (1, 0, 0) atomically changes out[7] and block (2, 1, 3) writes it (k.py:9 or "
            "k.py:12)");
  conflict.is_clash = true;
  EXPECT_EQ(Describe(conflict, "out", 7, {10}, grid, recording),
            "a scatter of block (1, 0, 0) writes out[7] twice (k.py:9)");
}

}  // namespace
}  // namespace phobos::worker
