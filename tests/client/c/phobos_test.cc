// SPDX-License-Identifier: Apache-2.0
#include "client/c/phobos.h"

#include <gtest/gtest.h>

#include "tests/client/c/use_phobos.h"
#include "tests/client/cpp/fake_tuner.h"

namespace {

TEST(Phobos, UsedFromC) {
  phobos::testing::FakeTuner tuner;
  EXPECT_EQ(UsePhobos(tuner.socket().c_str(), phobos::testing::kAddSource), 0);
}

}  // namespace
