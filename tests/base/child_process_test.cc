// SPDX-License-Identifier: Apache-2.0
//
// What is known of children that have ended, and of those that could not start for want of
// descriptors; how they are started else is daemon/compile's test.
#include "base/child_process.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/resource.h>
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

// In a process of its own, whose limit of open files it lowers to `spare` more than are open.
[[noreturn]] void StartWithDescriptors(int spare) {
  const int lowest_free = dup(0);
  close(lowest_free);
  const auto limit = static_cast<rlim_t>(lowest_free + spare);
  const rlimit files = {limit, limit};
  setrlimit(RLIMIT_NOFILE, &files);
  ChildOptions options;
  options.argv = {"/bin/true"};
  const absl::StatusOr<pid_t> child = StartChild(options);
  fprintf(stderr, "%s\n", child.status().ToString().c_str());
  _exit(child.ok() ? 1 : 0);
}

TEST(StartChildTest, WithoutADescriptorToSpareItTellsThatNothingWasStarted) {
  for (const int spare : {1, 2, 3}) {
    EXPECT_EXIT(StartWithDescriptors(spare), testing::ExitedWithCode(0),
                "RESOURCE_EXHAUSTED: cannot start /bin/true: Too many open files")
        << spare;
  }
}

}  // namespace
}  // namespace phobos
