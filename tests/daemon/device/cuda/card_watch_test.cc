// SPDX-License-Identifier: Apache-2.0
//
// What counts as a disturbance, and what NVML is asked for it.
#include "daemon/device/cuda/card_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace phobos::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr unsigned kOwn = 7;
constexpr int64_t kMillisecond = 1'000'000;

int64_t now_ns = 0;
int64_t Now() { return now_ns; }

// Says each time that `process` used half of the card.
class OneUser : public Nvml {
 public:
  OneUser(unsigned process, int* asked) : process_(process), asked_(asked) {}
  std::string Driver() override { return ""; }
  tuner::v1::CardState Read() override { return {}; }
  std::vector<unsigned> Processes() override { return {}; }
  absl::StatusOr<std::vector<CardUse>> NewUses(int64_t) override {
    ++*asked_;
    return std::vector<CardUse>{{process_, 50}};
  }

 private:
  const unsigned process_;
  int* const asked_;
};

struct Watched {
  int asked = 0;
  CardWatch watch;

  explicit Watched(unsigned user) : watch(std::make_unique<OneUser>(user, &asked), kOwn, &Now) {}
  std::string Look(int64_t span_ns, int64_t late_ns = 0) {
    now_ns += kMillisecond;
    return watch.Look({5, 5, span_ns, late_ns});
  }
};

TEST(CardWatchTest, WhatTheCallerDidBeforeDisturbsNoRound) {
  Watched watched(/*user=*/1);
  for (int i = 0; i < 60; ++i) EXPECT_THAT(watched.Look(kMillisecond, 50'000), IsEmpty());
  EXPECT_EQ(watched.asked, 1);
}

TEST(CardWatchTest, AnotherProcessShowsInWhatARoundTakes) {
  Watched watched(/*user=*/1);
  EXPECT_THAT(watched.Look(kMillisecond), IsEmpty());
  EXPECT_THAT(watched.Look(1'115'000), IsEmpty());
  EXPECT_THAT(watched.Look(1'200'000), AllOf(HasSubstr("1.20 ms"), HasSubstr("process 1 used 50")));
  EXPECT_THAT(watched.Look(kMillisecond, 400'000),
              AllOf(HasSubstr("0.40 ms late"), HasSubstr("process 1 used 50")));
}

TEST(CardWatchTest, AloneOnlyAMultipleIsADisturbance) {
  Watched watched(/*user=*/kOwn);
  EXPECT_THAT(watched.Look(kMillisecond), IsEmpty());
  EXPECT_THAT(watched.Look(1'590'000, 400'000), IsEmpty());
  EXPECT_THAT(watched.Look(1'610'000), HasSubstr("1.61 ms"));
  watched.watch.Reset();
  EXPECT_THAT(watched.Look(2 * kMillisecond), IsEmpty());
}

TEST(OwnProcessTest, OnTheMachineItselfItIsKnown) {
  EXPECT_EQ(OwnProcess(7u, {1}, {1, 2, 7}), 7u);
  EXPECT_EQ(OwnProcess(7u, {}, {}), 7u);
}

// A getpid() of 1, say, in a container is not the machine's process 1, though that has the card.
TEST(OwnProcessTest, InAContainerItIsTheOneThatCame) {
  EXPECT_EQ(OwnProcess(std::nullopt, {1, 5}, {5, 1, 4711}), 4711u);
  EXPECT_EQ(OwnProcess(std::nullopt, {1}, {1}), std::nullopt);
  EXPECT_EQ(OwnProcess(std::nullopt, {1}, {1, 2, 3}), std::nullopt);
}

// Uses this and that in each period.
class Script : public Nvml {
 public:
  std::string Driver() override { return ""; }
  tuner::v1::CardState Read() override { return state; }
  std::vector<unsigned> Processes() override { return {}; }
  absl::StatusOr<std::vector<CardUse>> NewUses(int64_t) override {
    if (asked == failing) return absl::UnavailableError("error 3");
    return asked < uses.size() ? uses[asked++] : std::vector<CardUse>();
  }
  size_t asked = 0;
  size_t failing = 100;  // the number of the question that fails
  std::vector<std::vector<CardUse>> uses;
  tuner::v1::CardState state;
};

void DoNotSleep(int64_t) {}

std::string Look(Nvml& nvml) {
  const absl::StatusOr<std::string> found = LookAtCard(nvml, &DoNotSleep);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.value_or("");
}

TEST(LookAtCardTest, WhatRanBeforeDoesNotCount) {
  Script nvml;
  nvml.uses = {{{1, 90}}, {{1, 70}}, {{1, 4}, {2, 3}}};
  EXPECT_THAT(Look(nvml), IsEmpty());
  EXPECT_EQ(nvml.asked, 3u);
}

TEST(LookAtCardTest, WhatRunsOrThrottlesIsSaid) {
  Script nvml;
  nvml.uses = {{}, {}, {{1, 4}, {2, 30}}};
  EXPECT_THAT(Look(nvml), HasSubstr("process 2 used 30 %"));
  nvml.state.set_throttling("heat");
  EXPECT_THAT(Look(nvml), HasSubstr("held down by heat"));
}

TEST(LookAtCardTest, WhatCannotBeToldIsNotQuiet) {
  for (size_t failing = 0; failing < 3; ++failing) {
    Script nvml;
    nvml.uses = {{}, {}, {}};
    nvml.failing = failing;
    EXPECT_TRUE(absl::IsUnavailable(LookAtCard(nvml, &DoNotSleep).status())) << failing;
  }
}

}  // namespace
}  // namespace phobos::device
