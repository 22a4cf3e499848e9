// SPDX-License-Identifier: Apache-2.0
//
// Looks by a script instead of phobosd.
#include "daemon/main/card_looks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/base/unended.h"

namespace phobos {
namespace {

using ::testing::ElementsAre;

// A program that notes what it was asked, then does `commands`.
struct Program {
  explicit Program(const std::string& commands) {
    const std::string name = ::testing::TempDir() + "/look-" + std::to_string(getpid()) + "-" +
                             std::to_string(absl::ToUnixNanos(absl::Now()));
    path = name + ".sh";
    log = name + ".log";
    std::ofstream(path) << "#!/bin/sh\necho $1 >> " << log << "\n" << commands << "\n";
    chmod(path.c_str(), 0700);
  }
  std::vector<std::string> Asked() const {
    std::vector<std::string> lines;
    std::ifstream file(log);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  std::string path;
  std::string log;
};

TEST(CardLooksTest, TheExitStatusSaysIt) {
  EXPECT_EQ(CardLooks(Program("exit 0").path).IsQuiet("GPU-1"), true);
  EXPECT_EQ(CardLooks(Program("exit 10").path).IsQuiet("GPU-1"), false);
  EXPECT_EQ(CardLooks(Program("exit 1").path).IsQuiet("GPU-1"), std::nullopt);
  EXPECT_EQ(CardLooks("/nowhere/phobosd").IsQuiet("GPU-1"), std::nullopt);
}

TEST(CardLooksTest, ManyWhoAskAtOnceCostOneLookACard) {
  const Program program("sleep 0.2; [ $1 = --look-at-card=GPU-1 ]");
  CardLooks looks(program.path, absl::Seconds(30), absl::Hours(1));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(looks.IsQuiet("GPU-1"), true); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(program.Asked(), ElementsAre("--look-at-card=GPU-1"));
  EXPECT_EQ(looks.IsQuiet("GPU-2"), std::nullopt);
  EXPECT_THAT(program.Asked(), ElementsAre("--look-at-card=GPU-1", "--look-at-card=GPU-2"));
}

TEST(CardLooksTest, WhatWasSeenHoldsForAWhile) {
  const Program program("exit 10");
  CardLooks looks(program.path, absl::Seconds(30), absl::ZeroDuration());
  EXPECT_EQ(looks.IsQuiet("GPU-1"), false);
  EXPECT_EQ(looks.IsQuiet("GPU-1"), false);
  EXPECT_EQ(program.Asked().size(), 2u);
}

TEST(CardLooksTest, WhileALookHasNotEndedThereIsNoOther) {
  testing::Unended unended;
  std::string command = "exec";
  for (const std::string& word : unended.command()) command += " " + word;
  const Program program(command);
  CardLooks looks(program.path, absl::Seconds(30), absl::ZeroDuration());
  EXPECT_EQ(looks.IsQuiet("GPU-1"), false);
  if (!unended.problem().empty()) GTEST_SKIP() << unended.problem();
  EXPECT_EQ(looks.IsQuiet("GPU-1"), false);
  EXPECT_EQ(program.Asked().size(), 1u);
  unended.Release();
  for (int i = 0; i < 1000 && program.Asked().size() == 1; ++i) {
    absl::SleepFor(absl::Milliseconds(5));
    looks.IsQuiet("GPU-1");
  }
  EXPECT_EQ(program.Asked().size(), 2u);
}

}  // namespace
}  // namespace phobos
