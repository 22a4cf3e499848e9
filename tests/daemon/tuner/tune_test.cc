// SPDX-License-Identifier: Apache-2.0
//
// The tuner's decisions, against a worker in memory that answers as it is told.
#include "daemon/tuner/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "daemon/tuner/field.h"
#include "tests/daemon/tuner/add_kernel.h"
#include "tests/daemon/tuner/scripted_worker.h"
#include "tests/status_matchers.h"

namespace phobos::tuner {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class TuneTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::Result> Tune() {
    failed_.clear();
    return tuner::Tune(
        kernel_.spec, kernel_.space, *kernel_.arguments, worker_, measuring_,
        [this](const v1::Progress& progress) { progress_.push_back(progress); }, stop_, &failed_);
  }

  // What was asked, without `kind`s that are not looked at.
  std::vector<std::string> Calls(const std::string& kind) const {
    std::vector<std::string> calls;
    for (const std::string& call : worker_.calls) {
      if (call.rfind(kind, 0) == 0) calls.push_back(call);
    }
    return calls;
  }

  void CompileAs(int variant, compiler::v1::VariantStatus status, const std::string& reason) {
    compiler::v1::Variant& compiled = kernel_.space.variants[static_cast<size_t>(variant)].variant;
    compiled.set_status(status);
    compiled.set_reason(reason);
  }

  AddKernel kernel_{64, 3};
  ScriptedWorker worker_;
  Measuring measuring_;
  std::atomic<bool> stop_ = false;
  std::vector<v1::Progress> progress_;
  std::vector<v1::VariantResult> failed_;
};

TEST_F(TuneTest, ChecksThenWarmsUpThenTakesRotatingRounds) {
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  std::vector<std::string> want = {"begin",   "load 0",  "load 1",  "load 2",
                                   "check 0", "check 1", "check 2", "warm 0,1,2"};
  for (int round = 0; round < 20; ++round) {
    want.push_back(
        std::vector<std::string>{"round 0,1,2", "round 1,2,0", "round 2,0,1"}[round % 3]);
  }
  want.push_back("check 0");
  want.push_back("end");
  EXPECT_EQ(worker_.calls, want);
  EXPECT_TRUE(worker_.flushed);
  EXPECT_EQ(std::set<uint64_t>(worker_.seeds.begin(), worker_.seeds.end()).size(), 4u);
}

// What a GPU's linker found out is in the Result, in place of what the compiler could not know.
TEST_F(TuneTest, UsageIsWhatTheDeviceLoaded) {
  worker_.usage.set_registers(40);
  worker_.usage.set_shared_memory_bytes(1024);
  worker_.usage.set_spill_bytes(16);
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(worker_.expected, 3);
  for (const v1::VariantResult& variant : result.variants()) {
    EXPECT_EQ(variant.registers(), 40);
    EXPECT_EQ(variant.shared_memory_bytes(), 1024);
    EXPECT_EQ(variant.spill_bytes(), 16);
  }
}

TEST_F(TuneTest, ResultTellsAll) {
  worker_.sample = [](int variant, int round) { return 1000 + 100 * variant + round; };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.kernel(), "add");
  EXPECT_EQ(result.source_digest(), "digest");
  EXPECT_EQ(result.compiler_fingerprint(), "test compiler");
  EXPECT_EQ(result.extents(0).value(), 64);
  EXPECT_EQ(result.winner(), 0);
  EXPECT_EQ(result.winner_settings(0).int_value(), 0);
  EXPECT_EQ(result.best_ns(), 1001);
  EXPECT_THAT(result.ties(), ElementsAre(0));
  EXPECT_EQ(result.rounds(), 20);
  EXPECT_EQ(result.repeated_rounds(), 0);
  EXPECT_EQ(result.warm_up_launches(), 10);
  EXPECT_EQ(result.timer_resolution_ns(), 1);
  EXPECT_FALSE(result.contended());
  EXPECT_TRUE(result.options().flush_l2());
  EXPECT_GT(result.finished_unix_ms(), 0);
  ASSERT_EQ(result.variants_size(), 3);
  const v1::VariantResult& variant = result.variants(2);
  EXPECT_EQ(variant.index(), 2);
  EXPECT_EQ(variant.status(), v1::VARIANT_STATUS_TIMED);
  EXPECT_EQ(variant.reason(), "");
  EXPECT_THAT(variant.samples_ns(), SizeIs(20));
  EXPECT_EQ(variant.best_ns(), 1201);
  EXPECT_EQ(variant.median_ns(), 1210);
  EXPECT_NEAR(variant.spread(), 19.0 / 1201, 1e-9);
  EXPECT_EQ(variant.grid().x(), 1);
}

TEST_F(TuneTest, WhatTheCompilerLeavesOutIsReported) {
  for (int i = 3; i < 7; ++i) kernel_.AddVariant(i, 64);
  CompileAs(0, compiler::v1::VARIANT_STATUS_COMPILE_ERROR, "bad");
  CompileAs(1, compiler::v1::VARIANT_STATUS_RACE, "blocks 0 and 1");
  CompileAs(2, compiler::v1::VARIANT_STATUS_UNSUPPORTED, "too large");
  kernel_.space.variants[3].variant.set_race_verdict(compiler::v1::RACE_VERDICT_UNPROVEN);
  kernel_.space.variants[3].variant.set_race_detail("out[idx] at line 9");
  kernel_.space.variants[4].variant.set_race_verdict(compiler::v1::RACE_VERDICT_UNSPECIFIED);
  kernel_.spec.description.mutable_variants(5)->set_excluded_reason("BLOCK < 5");
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.winner(), 6);
  const v1::VariantStatus want[] = {v1::VARIANT_STATUS_COMPILE_ERROR,
                                    v1::VARIANT_STATUS_RACE,
                                    v1::VARIANT_STATUS_UNSUPPORTED,
                                    v1::VARIANT_STATUS_RACE_CHECK_FAILED,
                                    v1::VARIANT_STATUS_RACE_CHECK_FAILED,
                                    v1::VARIANT_STATUS_EXCLUDED,
                                    v1::VARIANT_STATUS_TIMED};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(result.variants(i).status(), want[i]) << i;
  EXPECT_EQ(result.variants(1).reason(), "blocks 0 and 1");
  EXPECT_EQ(result.variants(3).reason(),
            "could not be proved free of races: out[idx] at line 9; and there is no race-recording "
            "form of it: the compiler made none");
  EXPECT_THAT(Calls("load"), ElementsAre("load 6"));
}

TEST_F(TuneTest, StatusesThatTheCompilerMayInventLater) {
  CompileAs(0, static_cast<compiler::v1::VariantStatus>(77), "");
  kernel_.space.variants[1].variant.set_race_verdict(static_cast<compiler::v1::RaceVerdict>(9));
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_COMPILE_ERROR);
  EXPECT_THAT(result.variants(0).reason(), HasSubstr("77"));
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  EXPECT_EQ(result.winner(), 2);
}

TEST_F(TuneTest, GridsThatAreNone) {
  kernel_.spec.grids[0].set_error("ZeroDivisionError: division by zero");
  kernel_.spec.grids[1].mutable_grid()->set_y(2);
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_GRID_ERROR);
  EXPECT_EQ(result.variants(0).reason(), "ZeroDivisionError: division by zero");
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_GRID_ERROR);
  EXPECT_EQ(result.winner(), 2);
}

TEST_F(TuneTest, KnownGuiltyAreNotTriedAgain) {
  v1::VariantResult& guilty = kernel_.spec.guilty.emplace_back();
  guilty.set_index(1), guilty.set_status(v1::VARIANT_STATUS_CRASHED),
      guilty.set_reason("signal 11");
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_CRASHED);
  EXPECT_THAT(Calls("load"), ElementsAre("load 0", "load 2"));
}

TEST_F(TuneTest, WhatFailsItsCheckIsNotTimed) {
  worker_.on_check = [](int variant, int) {
    worker::CheckOutcome outcome = ScriptedWorker::Passed();
    if (variant == 0) {
      outcome.set_status(v1::VARIANT_STATUS_WRONG_RESULT);
      outcome.set_reason("out[5] is 1");
    }
    return outcome;
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.winner(), 1);
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_EQ(result.variants(0).reason(), "out[5] is 1");
  EXPECT_THAT(result.variants(0).samples_ns(), SizeIs(0));
  EXPECT_THAT(Calls("round"), Each(Not(HasSubstr("0"))));
}

TEST_F(TuneTest, NoVariantPassed) {
  worker_.on_check = [](int, int) {
    worker::CheckOutcome outcome;
    outcome.set_status(v1::VARIANT_STATUS_OUT_OF_BOUNDS);
    outcome.set_reason("wrote outside out");
    return outcome;
  };
  EXPECT_THAT(Tune(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no variant of add")));
  ASSERT_EQ(failed_.size(), 3u);
  for (const v1::VariantResult& variant : failed_) {
    EXPECT_EQ(variant.status(), v1::VARIANT_STATUS_OUT_OF_BOUNDS);
    EXPECT_EQ(variant.reason(), "wrote outside out");
  }
  EXPECT_THAT(Calls("round"), SizeIs(0));
}

TEST_F(TuneTest, ALoadThatFailsCostsItsVariant) {
  worker_.on_load = [](int variant) -> absl::Status {
    if (variant == 0) return absl::FailedPreconditionError("lacks avx512f");
    if (variant == 1) return absl::ResourceExhaustedError("needs 9 bytes of scratch");
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_UNSUPPORTED);
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_OUT_OF_MEMORY);
  EXPECT_EQ(result.winner(), 2);
  worker_.on_load = [](int variant) {
    return variant == 2 ? absl::OkStatus() : absl::InternalError("dlopen");
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result other, Tune());
  EXPECT_EQ(other.variants(0).status(), v1::VARIANT_STATUS_COMPILE_ERROR);
}

TEST_F(TuneTest, TwoDeathsInTheCheckAreEnough) {
  worker_.on_check = [this](int variant, int) -> absl::StatusOr<worker::CheckOutcome> {
    if (variant == 1) return worker_.Die(1);
    return ScriptedWorker::Passed();
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_CRASHED);
  EXPECT_EQ(result.variants(1).reason(), "ended the worker process twice, last by signal 11");
  EXPECT_EQ(result.winner(), 0);
  // After each death the job anew, with what is still running; checks that passed are not done
  // again.
  EXPECT_THAT(worker_.calls, ::testing::IsSupersetOf({"begin", "load 0", "load 1", "load 2"}));
  EXPECT_THAT(Calls("check"), ElementsAre("check 0", "check 1", "check 2", "check 1", "check 0"));
  EXPECT_THAT(Calls("begin"), SizeIs(3));
}

// A variant that hangs costs the longest limit once: its second chance comes when the others are
// known to be fast.
TEST_F(TuneTest, TheSecondChanceHasTheLimitOfTheFastest) {
  worker_.on_check = [this](int variant, int) -> absl::StatusOr<worker::CheckOutcome> {
    if (variant == 0) return worker_.Die(0, /*timed_out=*/true);
    return ScriptedWorker::Passed(30'000'000);
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_TIMED_OUT);
  EXPECT_THAT(Calls("check"), ElementsAre("check 0", "check 1", "check 2", "check 0", "check 1"));
  EXPECT_EQ(worker_.limits[0], absl::Seconds(10));
  EXPECT_EQ(worker_.limits[3], absl::Seconds(3));
}

// Whoever stops a tune kills its worker: no new one is given anything to do.
TEST_F(TuneTest, AStoppedTuneStartsNoWorkerAgain) {
  worker_.on_check = [this](int variant, int) -> absl::StatusOr<worker::CheckOutcome> {
    stop_ = true;
    return worker_.Die(variant);
  };
  EXPECT_THAT(Tune(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Calls("begin"), SizeIs(1));
  EXPECT_TRUE(failed_.empty()) << "nobody is guilty of that";

  worker_.calls.clear();
  stop_ = false;
  worker_.on_load = [this](int variant) {
    stop_ = true;
    return worker_.Die(variant);
  };
  EXPECT_THAT(Tune(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(worker_.calls, ElementsAre("begin", "load 0", "end"));

  worker_.calls.clear();
  stop_ = false;
  worker_.on_expect = [this] {
    stop_ = true;
    return absl::OkStatus();
  };
  EXPECT_THAT(Tune(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Calls("begin"), IsEmpty());
}

// A variant that dies in its own check pays, whatever it wrote into the page that names the guilty.
TEST_F(TuneTest, ADeathInACheckIsNotBlamedOnAnother) {
  worker_.on_check = [this](int variant, int) -> absl::StatusOr<worker::CheckOutcome> {
    if (variant == 1) return worker_.Die(0);
    return ScriptedWorker::Passed();
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_TIMED);
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_CRASHED);
  EXPECT_EQ(result.winner(), 0);
}

TEST_F(TuneTest, OneDeathIsForgiven) {
  worker_.on_check = [this](int variant, int call) -> absl::StatusOr<worker::CheckOutcome> {
    if (call == 1) return worker_.Die(variant, /*timed_out=*/true);
    return ScriptedWorker::Passed();
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_TIMED);
  EXPECT_EQ(result.winner(), 0);
}

TEST_F(TuneTest, AWorkerThatSomebodyKilledIsNoVariantsFault) {
  int kills = 0;
  worker_.on_check = [&](int variant, int) -> absl::StatusOr<worker::CheckOutcome> {
    if (variant != 1 || kills == 2) return ScriptedWorker::Passed();
    ++kills;
    return worker_.Die(1, /*timed_out=*/false, /*killed=*/true);
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(kills, 2);
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_TIMED);
}

TEST_F(TuneTest, TimeoutsAreToldApart) {
  worker_.on_check = [this](int variant, int) -> absl::StatusOr<worker::CheckOutcome> {
    if (variant == 2) return worker_.Die(2, /*timed_out=*/true);
    return ScriptedWorker::Passed();
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(2).status(), v1::VARIANT_STATUS_TIMED_OUT);
  EXPECT_EQ(result.variants(2).reason(), "ran longer than 1.0 s, twice");
}

// A variant that faults in a round, twice: out; the broken rounds leave no samples; the others warm
// up again and go on.
TEST_F(TuneTest, DeathsInRounds) {
  worker_.on_round = [this](int round) -> absl::Status {
    const bool has_one = worker_.calls.back().find('1') != std::string::npos;
    return round >= 5 && has_one ? worker_.Die(1) : absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_CRASHED);
  EXPECT_THAT(result.variants(1).samples_ns(), SizeIs(0));
  EXPECT_THAT(result.variants(0).samples_ns(), SizeIs(20));
  EXPECT_THAT(result.variants(2).samples_ns(), SizeIs(20));
  EXPECT_EQ(result.rounds(), 20);
  EXPECT_EQ(result.repeated_rounds(), 2);
  EXPECT_THAT(Calls("warm"), ElementsAre("warm 0,1,2", "warm 0,1,2", "warm 0,2"));
  EXPECT_THAT(Calls("round"), SizeIs(22));
}

TEST_F(TuneTest, DeathsThatNobodyCausedEndTheTune) {
  worker_.on_warm_up = [this](int) { return worker_.Die(-1); };
  EXPECT_THAT(Tune(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("3 times by no variant")));
}

TEST_F(TuneTest, DisturbedRoundsAreDoneAgain) {
  worker_.disturbed = [](int round) { return round == 7 || round == 8; };
  worker_.sample = [](int variant, int round) {
    return round == 7 || round == 8 ? 1 : 1000 + variant * 100;
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.rounds(), 20);
  EXPECT_EQ(result.repeated_rounds(), 2);
  EXPECT_FALSE(result.contended());
  EXPECT_THAT(result.variants(0).samples_ns(), Each(1000));
}

TEST_F(TuneTest, WhatStaysDisturbedIsLabelled) {
  worker_.disturbed = [](int round) { return round > 5; };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_TRUE(result.contended());
  EXPECT_EQ(result.rounds(), 20);
  EXPECT_EQ(result.repeated_rounds(), 40);
  EXPECT_THAT(Calls("round"), SizeIs(60));
  EXPECT_THAT(result.variants(2).samples_ns(), SizeIs(20));
}

TEST_F(TuneTest, SamplesThatAreNotPositiveAreVoid) {
  worker_.sample = [](int variant, int round) {
    return variant == 1 && round % 4 == 0 ? -5 : 1000 + variant;
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.rounds(), 20);
  EXPECT_EQ(result.repeated_rounds(), 6);
  EXPECT_THAT(result.variants(1).samples_ns(), Each(1001));
}

TEST_F(TuneTest, AVariantWithoutAnyTimeIsOut) {
  worker_.sample = [](int variant, int) { return variant == 0 ? 0 : 1000 + variant; };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_UNSUPPORTED);
  EXPECT_THAT(result.variants(0).reason(), HasSubstr("none of 60 rounds"));
  EXPECT_EQ(result.winner(), 1);
  EXPECT_FALSE(result.contended());
}

// A pause before a round warms up again; a round that takes long, and a pause that is short, do
// not.
TEST_F(TuneTest, AGapWarmsUpAgain) {
  absl::Time now = absl::UnixEpoch();
  measuring_.clock = [&now] { return now; };
  worker_.on_round = [&now](int round) {
    now += round == 4 ? absl::Seconds(2) : absl::Milliseconds(5);
    return absl::OkStatus();
  };
  const auto pause_after = [&](const v1::Progress& progress) {
    if (progress.phase() != v1::PHASE_TIMING) return;
    if (progress.done() == 9) now += absl::Milliseconds(101);
    if (progress.done() == 12) now += absl::Milliseconds(99);
  };
  ASSERT_OK(tuner::Tune(kernel_.spec, kernel_.space, *kernel_.arguments, worker_, measuring_,
                        pause_after, stop_, nullptr));
  std::vector<std::string> timing;
  for (const std::string& call : worker_.calls) {
    if (call.rfind("warm", 0) == 0 || call.rfind("round", 0) == 0) timing.push_back(call);
  }
  ASSERT_EQ(timing.size(), 22u);
  EXPECT_EQ(timing[0], "warm 0,1,2");
  EXPECT_EQ(timing[10], "warm 0,1,2");
  EXPECT_THAT(Calls("warm"), SizeIs(2));
}

TEST_F(TuneTest, TheWinnerIsCheckedOnceMore) {
  worker_.on_check = [](int variant, int call) {
    worker::CheckOutcome outcome = ScriptedWorker::Passed();
    if (call > 3 && variant == 0) {
      outcome.set_status(v1::VARIANT_STATUS_WRONG_RESULT);
      outcome.set_reason("out[0] is 7");
    }
    return outcome;
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.winner(), 1);
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_EQ(result.variants(0).reason(), "out[0] is 7 (in the check after timing)");
  EXPECT_THAT(result.variants(0).samples_ns(), SizeIs(20));
  EXPECT_THAT(result.ties(), ElementsAre(1));
}

// A canary that changed in a round of several: the next rounds launch them one by one, which finds
// the guilty.
TEST_F(TuneTest, WritesOutOfBoundsWhileTiming) {
  worker_.out_of_bounds = [](const std::vector<int>& order, int round) {
    const bool guilty = std::find(order.begin(), order.end(), 1) != order.end();
    return guilty && round >= 3 ? "wrote outside out" : "";
  };
  ASSERT_OK_AND_ASSIGN(const v1::Result result, Tune());
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_OUT_OF_BOUNDS);
  EXPECT_EQ(result.variants(1).reason(), "wrote outside out (in a timed launch)");
  EXPECT_THAT(result.variants(0).samples_ns(), SizeIs(20));
  EXPECT_THAT(Calls("round"), Contains("round 2"));
}

TEST_F(TuneTest, LaunchLimitFollowsTheFastest) {
  EXPECT_EQ(LaunchLimit(0, measuring_), absl::Seconds(10));
  EXPECT_EQ(LaunchLimit(1000, measuring_), absl::Seconds(1));
  EXPECT_EQ(LaunchLimit(30'000'000, measuring_), absl::Seconds(3));
  EXPECT_EQ(LaunchLimit(500'000'000, measuring_), absl::Seconds(10));
  worker_.on_check = [](int variant, int) {
    return ScriptedWorker::Passed(variant == 0 ? 50'000'000 : 20'000'000);
  };
  worker_.sample = [](int, int) { return 15'000'000; };
  ASSERT_OK(Tune());
  ASSERT_GE(worker_.limits.size(), 5u);
  EXPECT_EQ(worker_.limits[0], absl::Seconds(10));
  EXPECT_EQ(worker_.limits[1], absl::Seconds(5));
  EXPECT_EQ(worker_.limits[2], absl::Seconds(2));
  EXPECT_EQ(worker_.limits.back(), absl::Seconds(1.5));
}

TEST_F(TuneTest, TieBreakIsTheOptions) {
  worker_.sample = [](int variant, int) { return 100'000 - variant; };
  ASSERT_OK_AND_ASSIGN(const v1::Result fastest, Tune());
  EXPECT_EQ(fastest.winner(), 2);
  EXPECT_THAT(fastest.ties(), ElementsAre(0, 1, 2));
  kernel_.spec.options.set_tie_break(v1::TIE_BREAK_FIRST_WITHIN_NOISE);
  ASSERT_OK_AND_ASSIGN(const v1::Result first, Tune());
  EXPECT_EQ(first.winner(), 0);
  EXPECT_EQ(first.best_ns(), 100'000);
  EXPECT_EQ(first.options().tie_break(), v1::TIE_BREAK_FIRST_WITHIN_NOISE);
}

TEST_F(TuneTest, CancelEndsAtTheNextStep) {
  worker_.on_round = [this](int round) {
    if (round == 3) stop_ = true;
    return absl::OkStatus();
  };
  EXPECT_THAT(Tune(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Calls("round"), SizeIs(3));
  EXPECT_EQ(worker_.calls.back(), "end");
}

TEST_F(TuneTest, WhatDoesNotFitIsRefused) {
  worker_.on_begin = [](int) { return absl::ResourceExhaustedError("needs 5 bytes, 4 are there"); };
  EXPECT_THAT(Tune(), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("5 bytes")));
}

TEST_F(TuneTest, JobTellsTheWorkerAll) {
  kernel_.spec.options.set_rtol(0.5);
  kernel_.spec.options.set_flush_l2(false);
  kernel_.spec.description.mutable_parameters(2)->set_is_read(true);
  ASSERT_OK(Tune());
  const worker::JobSetup& job = worker_.job;
  ASSERT_EQ(job.tensors_size(), 3);
  EXPECT_EQ(job.tensors(0).parameter(), "x");
  EXPECT_EQ(job.tensors(0).address_mod_256(), 16);
  EXPECT_EQ(job.tensors(0).expected_memory(), -1);
  EXPECT_FALSE(job.tensors(0).is_written());
  EXPECT_THAT(job.tensors(0).shape(), ElementsAre(64));
  EXPECT_TRUE(job.tensors(2).is_written());
  EXPECT_TRUE(job.tensors(2).is_restored());
  EXPECT_EQ(job.tensors(2).expected_memory(), 1);
  ASSERT_EQ(job.slots_size(), 4);
  EXPECT_EQ(job.slots(2).tensor(), 2);
  EXPECT_EQ(job.slots(3).tensor(), -1);
  EXPECT_EQ(job.slots(3).value(), 64u);
  EXPECT_TRUE(job.has_rtol());
  EXPECT_EQ(job.rtol(), 0.5);
  EXPECT_FALSE(job.has_atol());
  EXPECT_FALSE(job.flush());
  EXPECT_FALSE(worker_.flushed);
}

TEST_F(TuneTest, BrokenPromisesAndMissingValuesAreTheCallers) {
  kernel_.spec.description.mutable_parameters(0)->set_aligned_bytes(64);
  EXPECT_THAT(Tune(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("@ph.aligned")));
  kernel_.spec.description.mutable_parameters(0)->set_aligned_bytes(16);
  EXPECT_OK(Tune());
  kernel_.spec.extents[0].set_value(63);
  EXPECT_THAT(Tune(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("63 elements")));
  kernel_.spec.extents[0].set_value(64);
  kernel_.space.slots.push_back("alpha");
  EXPECT_THAT(Tune(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("alpha")));
  v1::Scalar& alpha = kernel_.spec.scalars.emplace_back();
  alpha.set_name("alpha"), alpha.set_bits(std::string("\xff\x01", 2));
  ASSERT_OK(Tune());
  EXPECT_EQ(worker_.job.slots(4).value(), 0x01ffu);
}

TEST_F(TuneTest, ProgressPhases) {
  ASSERT_OK(Tune());
  std::vector<v1::Phase> phases;
  for (const v1::Progress& progress : progress_) {
    if (phases.empty() || phases.back() != progress.phase()) phases.push_back(progress.phase());
  }
  EXPECT_THAT(phases, ElementsAre(v1::PHASE_CHECK, v1::PHASE_WARM_UP, v1::PHASE_TIMING));
  EXPECT_EQ(progress_.back().total(), 20);
  EXPECT_EQ(progress_.back().done(), 20);
  EXPECT_EQ(progress_.back().best_ns(), 1000);
}

}  // namespace
}  // namespace phobos::tuner
