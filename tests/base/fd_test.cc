// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

namespace phobos {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }

int Opened() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(Fd, ClosesWhatItOwns) {
  int number = -1;
  {
    const Fd fd(Opened());
    number = fd.get();
    EXPECT_TRUE(fd.ok());
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
  EXPECT_FALSE(Fd().ok());
}

TEST(Fd, MovesAndLetsGo) {
  Fd first(Opened());
  const int number = first.get();
  Fd second(std::move(first));
  EXPECT_FALSE(first.ok());  // NOLINT(bugprone-use-after-move): a moved-from Fd owns nothing
  EXPECT_EQ(second.get(), number);

  Fd third(Opened());
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_FALSE(IsOpen(replaced));
  EXPECT_EQ(third.get(), number);

  EXPECT_EQ(third.Release(), number);
  EXPECT_FALSE(third.ok());
  EXPECT_TRUE(IsOpen(number)) << "the caller's now";

  third.Reset(number);
  third.Reset();
  EXPECT_FALSE(IsOpen(number));
}

}  // namespace
}  // namespace phobos
