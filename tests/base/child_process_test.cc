// SPDX-License-Identifier: Apache-2.0
//
// What is known of children that have ended; how they are started is daemon/compile's test.
#include "base/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace phobos {
namespace {

pid_t StartThatExits(int status) {
  const pid_t child = fork();
  if (child == 0) _exit(status);
  return child;
}

TEST(CollectChildTest, TellsHowItEnded) {
  const pid_t child = StartThatExits(3);
  ASSERT_TRUE(AwaitChild(child, absl::Seconds(60)));
  const std::optional<ChildEnd> end = CollectChild(child);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(DescribeExit(end->wait_status), "exit status 3");
}

TEST(CollectChildTest, AnUnknownOneHasNotEndedWell) {
  const pid_t child = StartThatExits(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);  // by somebody else
  EXPECT_TRUE(AwaitChild(child, absl::Seconds(60)));
  const std::optional<ChildEnd> end = CollectChild(child);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(DescribeExit(end->wait_status), "exit status 255");
}

}  // namespace
}  // namespace phobos
