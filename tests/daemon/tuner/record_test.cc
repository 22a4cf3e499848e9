// SPDX-License-Identifier: Apache-2.0
//
// What the tuner makes of variants that are not proved free of races, against a worker in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "daemon/tuner/tune.h"
#include "tests/daemon/tuner/add_kernel.h"
#include "tests/daemon/tuner/scripted_worker.h"
#include "tests/status_matchers.h"

namespace phobos::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RecordTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::Result> Tune() {
    const std::atomic<bool> stop = false;
    return tuner::Tune(kernel_.spec, kernel_.space, *kernel_.arguments, worker_, measuring_,
                       nullptr, stop, nullptr);
  }

  std::vector<std::string> Recordings() const {
    std::vector<std::string> calls;
    for (const std::string& call : worker_.calls) {
      if (call.rfind("record", 0) == 0) calls.push_back(call);
    }
    return calls;
  }

  AddKernel kernel_{64, 3};
  ScriptedWorker worker_;
  Measuring measuring_;
};

TEST_F(RecordTest, WhatIsNotProvedIsRecordedOnceBeforeItIsTimed) {
  kernel_.LeaveUnproven(1);
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_THAT(Recordings(), ElementsAre("record 1"));
  const auto& calls = worker_.calls;
  const auto at = [&](const char* call) {
    return std::find(calls.begin(), calls.end(), call) - calls.begin();
  };
  EXPECT_LT(at("check 1"), at("record 1"));
  EXPECT_LT(at("record 1"), at("warm 0,1,2"));
  // Four bytes an element, in two shadows.
  EXPECT_EQ(worker_.job.shadow_bytes(), 2 * 64 * 4);
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_TIMED);
  EXPECT_TRUE(result.variants(1).race_recorded());
  EXPECT_EQ(result.variants(1).race_detail(), "out[idx] at line 9");
  EXPECT_FALSE(result.variants(0).race_recorded());
}

TEST_F(RecordTest, ARecordedRaceExplainsAWrongResult) {
  kernel_.LeaveUnproven(0);
  kernel_.LeaveUnproven(1);
  worker_.on_check = [](int variant, int) {
    worker::CheckOutcome outcome = ScriptedWorker::Passed();
    if (variant < 2) outcome.set_status(v1::VARIANT_STATUS_WRONG_RESULT);
    outcome.set_reason(variant < 2 ? "out[3] is 1" : "");
    return outcome;
  };
  worker_.on_record = [](int variant, int) {
    worker::CheckOutcome outcome = ScriptedWorker::Passed();
    if (variant == 0) outcome.set_status(v1::VARIANT_STATUS_RACE);
    outcome.set_reason(variant == 0 ? "blocks 0 and 1" : "");
    return outcome;
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_RACE);
  EXPECT_EQ(result.variants(0).reason(),
            "blocks 0 and 1, found by its race-recording form on these arguments");
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_EQ(result.variants(1).reason(), "out[3] is 1");
  EXPECT_EQ(result.winner(), 2);
}

TEST_F(RecordTest, WhatCrashesByItselfIsNotRecorded) {
  kernel_.LeaveUnproven(0);
  worker_.on_check = [this](int variant, int) -> absl::StatusOr<worker::CheckOutcome> {
    if (variant == 0) return worker_.Die(0);
    return ScriptedWorker::Passed();
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_THAT(Recordings(), ElementsAre());
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_CRASHED);
}

// A recording is slower than its kernel: it has the longest limit, whatever was seen before.
TEST_F(RecordTest, ARecordingThatDoesNotEndIsNoPass) {
  kernel_.LeaveUnproven(1);
  worker_.on_record = [this](int variant, int) {
    EXPECT_EQ(worker_.limits.back(), measuring_.longest_launch_limit);
    return worker_.Die(variant, /*timed_out=*/true);
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_THAT(Recordings(), ElementsAre("record 1"));
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  EXPECT_TRUE(result.variants(1).recording_died());
  EXPECT_EQ(result.variants(1).reason(),
            "could not be proved free of races, and its race-recording form gave no answer: it ran "
            "longer than 1.0 s");
  EXPECT_EQ(result.variants(2).status(), v1::VARIANT_STATUS_TIMED);
}

TEST_F(RecordTest, ARecordingThatFaultsOnceGetsASecondChance) {
  kernel_.LeaveUnproven(1);
  worker_.on_record = [this](int variant, int call) -> absl::StatusOr<worker::CheckOutcome> {
    if (call == 1) return worker_.Die(variant);
    return ScriptedWorker::Passed();
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_TIMED);
  EXPECT_TRUE(result.variants(1).race_recorded());
}

TEST_F(RecordTest, ARecordingThatCannotBeMadeIsNoPass) {
  for (const int variant : {0, 1}) kernel_.LeaveUnproven(variant);
  worker_.on_record = [](int variant, int) -> absl::StatusOr<worker::CheckOutcome> {
    if (variant == 0) return absl::ResourceExhaustedError("no local memory");
    worker::CheckOutcome outcome;
    outcome.set_status(v1::VARIANT_STATUS_RACE_CHECK_FAILED);
    outcome.set_reason("it needs 4096 bytes for shadows");
    return outcome;
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  EXPECT_FALSE(result.variants(0).recording_died());
  EXPECT_THAT(result.variants(0).reason(), HasSubstr("gave no answer: no local memory"));
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  EXPECT_THAT(result.variants(1).reason(), HasSubstr("it needs 4096 bytes for shadows"));
  EXPECT_EQ(result.winner(), 2);
}

TEST_F(RecordTest, WhatDiedInAnEarlierTuneIsNotTriedAgain) {
  kernel_.LeaveUnproven(1);
  v1::VariantResult& died = kernel_.spec.guilty.emplace_back();
  died.set_index(1);
  died.set_status(v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  died.set_reason("it ran longer than 10.0 s");
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_THAT(Recordings(), ElementsAre());
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  EXPECT_EQ(result.variants(1).reason(), "it ran longer than 10.0 s");
}

}  // namespace
}  // namespace phobos::tuner
