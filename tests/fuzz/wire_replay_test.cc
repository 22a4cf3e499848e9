// SPDX-License-Identifier: Apache-2.0
//
// The wire's fuzzer without libFuzzer: its seeds, each cut at every length and with bytes changed.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "tests/fuzz/wire_input.h"

namespace phobos::testing {
namespace {

TEST(Wire, SeedsAndWhatIsNearThem) {
  const std::string folder = std::string(getenv("TEST_SRCDIR")) + "/" + getenv("TEST_WORKSPACE") +
                             "/tests/fuzz/wire_seeds";
  std::mt19937 random(1);
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string seed(std::istreambuf_iterator<char>(file), {});
    ++seeds;
    TakeWireInput(seed);
    for (size_t length = 0; length < seed.size(); ++length) TakeWireInput(seed.substr(0, length));
    for (int i = 0; i < 300; ++i) {
      std::string changed = seed;
      for (int k = 0; k <= i % 4; ++k) {
        changed[1 + random() % (changed.size() - 1)] = static_cast<char>(random());
      }
      TakeWireInput(changed);
    }
  }
  EXPECT_GE(seeds, 14);
}

}  // namespace
}  // namespace phobos::testing
