// SPDX-License-Identifier: Apache-2.0
#include "daemon/compile/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/base/unended.h"
#include "tests/status_matchers.h"

namespace phobos::compile {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::HasSubstr;

Command Shell(const std::string& script) {
  Command command;
  command.argv = {"/bin/sh", "-c", script};
  command.keep_output = true;
  command.limit = absl::Seconds(30);
  return command;
}

TEST(Command, GivesWhatItSaid) {
  CommandRunner runner;
  Command command = Shell("cat; echo bad >&2; exit 3");
  command.input = std::string(300'000, 'x');  // more than any pipe holds at once
  ASSERT_OK_AND_ASSIGN(const Ended ended, runner.Run(command));
  EXPECT_EQ(ended.exit_status, 3);
  EXPECT_EQ(ended.how, "exit status 3");
  EXPECT_EQ(ended.output, command.input);
  EXPECT_EQ(ended.errors, "bad\n");
  EXPECT_FALSE(ended.timed_out);
}

TEST(Command, InputThatNobodyReadsIsNoError) {
  CommandRunner runner;
  Command command = Shell("exit 0");
  command.input = std::string(1 << 20, 'x');
  ASSERT_OK_AND_ASSIGN(const Ended ended, runner.Run(command));
  EXPECT_EQ(ended.exit_status, 0);
}

TEST(Command, EndlessErrorsAreCut) {
  CommandRunner runner;
  ASSERT_OK_AND_ASSIGN(const Ended ended,
                       runner.Run(Shell("head -c 1000000 /dev/zero >&2; echo done")));
  EXPECT_EQ(ended.errors.size(), 64u << 10);
  EXPECT_EQ(ended.output, "done\n");
}

TEST(Command, SignalsAreNamed) {
  CommandRunner runner;
  ASSERT_OK_AND_ASSIGN(const Ended ended, runner.Run(Shell("kill -SEGV $$")));
  EXPECT_EQ(ended.exit_status, -1);
  EXPECT_EQ(ended.signal, SIGSEGV);
  EXPECT_EQ(ended.how, "signal 11 (Segmentation fault)");
}

// What a command started goes with it, though it holds the streams open.
TEST(Command, LimitKillsTheGroup) {
  CommandRunner runner;
  const std::string mark = absl::StrCat(::testing::TempDir(), "/child-", getpid());
  Command command = Shell(absl::StrCat("(sleep 1; echo alive > ", mark, ") & sleep 60"));
  command.limit = absl::Milliseconds(200);
  const absl::Time start = absl::Now();
  ASSERT_OK_AND_ASSIGN(const Ended ended, runner.Run(command));
  EXPECT_LT(absl::Now() - start, absl::Seconds(1));
  EXPECT_TRUE(ended.timed_out);
  EXPECT_EQ(ended.signal, 0);
  EXPECT_EQ(ended.how, "ran longer than 0.2 s");
  absl::SleepFor(absl::Milliseconds(1300) - (absl::Now() - start));
  EXPECT_NE(access(mark.c_str(), F_OK), 0);
}

// One that hangs in a call of the system keeps nobody waiting, and is collected by a later run.
TEST(Command, OneThatDoesNotEndIsLeft) {
  testing::Unended unended;
  CommandRunner runner(absl::Milliseconds(100));
  Command command;
  command.argv = unended.command();
  command.limit = absl::Seconds(30);
  const absl::Status status = runner.Run(command).status();
  if (!unended.problem().empty()) GTEST_SKIP() << unended.problem();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("has not ended")));
  const pid_t pid = testing::Unended::ProcessIn(std::string(status.message()));
  EXPECT_EQ(kill(pid, 0), 0) << "its number is still its own";
  unended.Release();
  EXPECT_TRUE(testing::Unended::Goes(pid, [&] { EXPECT_OK(runner.Run(Shell("exit 0"))); }));
}

TEST(Command, MemoryIsLimited) {
  CommandRunner runner;
  Command command = Shell("exec /usr/bin/python3 -c 'bytearray(1 << 31)'");
  command.address_space_bytes = int64_t{1} << 30;
  ASSERT_OK_AND_ASSIGN(const Ended ended, runner.Run(command));
  EXPECT_NE(ended.exit_status, 0);
  EXPECT_THAT(ended.errors, HasSubstr("MemoryError"));
}

TEST(Command, WhatIsNotThereIsSaid) {
  CommandRunner runner;
  Command command;
  command.argv = {"/nowhere/compiler"};
  EXPECT_THAT(runner.Run(command),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/compiler")));
}

// A pause stops what runs, keeps new ones from starting, and does not count as running.
TEST(Command, Pause) {
  CommandRunner runner;
  const std::string log = absl::StrCat(::testing::TempDir(), "/ticks-", getpid());
  Command ticking = Shell(
      absl::StrCat("for i in 1 2 3 4 5 6 7 8 9 10; do echo x >> ", log, "; sleep 0.02; done"));
  ticking.limit = absl::Seconds(1);
  const auto ticks = [&log] {
    std::ifstream file(log);
    return std::count(std::istreambuf_iterator<char>(file), {}, 'x');
  };
  absl::StatusOr<Ended> ended;
  std::thread first([&] { ended = runner.Run(ticking); });
  while (ticks() < 2) absl::SleepFor(absl::Milliseconds(1));
  runner.Pause();
  runner.Pause();
  const auto before = ticks();
  absl::StatusOr<Ended> late;
  std::thread second([&] { late = runner.Run(Shell("echo late")); });
  runner.Resume();  // one of two: still paused
  absl::SleepFor(absl::Milliseconds(1200));
  EXPECT_LE(ticks(), before + 1);
  EXPECT_LT(ticks(), 10);
  runner.Resume();
  first.join();
  second.join();
  ASSERT_OK(ended);
  EXPECT_FALSE(ended->timed_out);
  EXPECT_EQ(ticks(), 10);
  ASSERT_OK(late);
  EXPECT_EQ(late->output, "late\n");
}

TEST(Command, AShortOneRunsInPauses) {
  CommandRunner runner;
  runner.Pause();
  Command command = Shell("echo now");
  command.runs_in_pauses = true;
  const absl::StatusOr<Ended> ended = runner.Run(command);
  ASSERT_OK(ended);
  EXPECT_EQ(ended->output, "now\n");
  // Its limit counts the pause.
  command = Shell("sleep 100");
  command.runs_in_pauses = true;
  command.limit = absl::Milliseconds(50);
  const absl::StatusOr<Ended> late = runner.Run(command);
  ASSERT_OK(late);
  EXPECT_TRUE(late->timed_out);
  runner.Resume();
}

// Whether it runs, is suspended or waits for the end of a pause.
TEST(Command, StopEndsAllAndLetsNoneStart) {
  CommandRunner runner;
  const std::string mark = absl::StrCat(::testing::TempDir(), "/started-", getpid());
  Command command = Shell(absl::StrCat("echo x > ", mark, "; sleep 100"));
  absl::Status suspended, waiting;
  std::thread first([&] { suspended = runner.Run(command).status(); });
  while (access(mark.c_str(), F_OK) != 0) absl::SleepFor(absl::Milliseconds(1));
  runner.Pause();
  std::thread second([&] { waiting = runner.Run(command).status(); });
  runner.Stop();
  first.join();
  second.join();
  EXPECT_THAT(suspended, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(waiting, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(runner.Run(command), StatusIs(absl::StatusCode::kUnavailable));
  runner.Resume();
}

}  // namespace
}  // namespace phobos::compile
