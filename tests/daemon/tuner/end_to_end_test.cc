// SPDX-License-Identifier: Apache-2.0
//
// Whole tunes over a real worker process, on the host chip with hand-written artifacts and on the
// scripted device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/tuner/tune.h"
#include "daemon/worker/supervisor.h"
#include "tests/daemon/tuner/add_kernel.h"
#include "tests/status_matchers.h"

namespace phobos::tuner {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Runfile(const std::string& path) {
  return absl::StrCat(getenv("TEST_SRCDIR"), "/", getenv("TEST_WORKSPACE"), "/", path);
}

std::unique_ptr<worker::Supervisor> Worker(const std::string& device) {
  worker::SupervisorOptions options;
  options.command = {Runfile("tests/daemon/worker/worker_main"), "--worker=" + device};
  return worker::Supervisor::Create(options);
}

class EndToEndTest : public ::testing::Test {
 protected:
  EndToEndTest() {
    measuring_.warm_up = absl::Milliseconds(5);
    measuring_.rounds = 5;
    measuring_.most_rounds = 15;
    measuring_.longest_launch_limit = absl::Seconds(1);
    measuring_.shortest_launch_limit = absl::Milliseconds(300);
  }

  // The add in one variant an entry, on the host chip.
  absl::StatusOr<v1::Result> TuneOnHost(const std::vector<std::string>& entries, int64_t n = 3000) {
    kernel_ = std::make_unique<AddKernel>(n, static_cast<int>(entries.size()));
    for (size_t i = 0; i < entries.size(); ++i) {
      compile::CompiledVariant& variant = kernel_->space.variants[i];
      variant.artifact_path = Runfile("tests/daemon/artifacts/kernels.so");
      variant.variant.mutable_artifact()->set_entry(entries[i]);
      variant.variant.mutable_artifact()->set_scratch_bytes(64);
    }
    if (!recording_.empty()) {
      kernel_->LeaveUnproven(0);
      compile::CompiledVariant& unproven = kernel_->space.variants[0];
      unproven.recording_path = Runfile(recording_file_);
      unproven.variant.mutable_recording()->mutable_artifact()->set_entry(recording_);
    }
    kernel_->spec.options.set_flush_l2(flush_l2_);
    if (worker_ == nullptr) worker_ = Worker("cpu");
    return Run();
  }

  // The add, not proved free of races, with this race-recording form, beside a proved one.
  absl::StatusOr<v1::Result> TuneRecorded(const std::string& recording, int64_t n = 3000) {
    recording_ = recording;
    return TuneOnHost({"add", "add_slowly"}, n);
  }

  // The add in variants that do what a script says.
  absl::StatusOr<v1::Result> TuneByScript(const std::string& script, int variants,
                                          int64_t n = 100) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/script-", getpid());
    std::ofstream(path) << script;
    kernel_ = std::make_unique<AddKernel>(n, variants);
    if (!recording_.empty()) kernel_->LeaveUnproven(0);
    worker_ = Worker("fake:" + path);
    return Run();
  }

  absl::StatusOr<v1::Result> Run() {
    const std::atomic<bool> stop = false;
    failed_.clear();
    return Tune(kernel_->spec, kernel_->space, *kernel_->arguments, *worker_, measuring_, nullptr,
                stop, &failed_);
  }

  // The verdict on one guilty entry, beside a right one.
  v1::VariantResult Verdict(const std::string& entry) {
    const auto result = TuneOnHost({entry, "add"});
    EXPECT_OK(result);
    if (!result.ok()) return {};
    EXPECT_EQ(result->winner(), 1);
    return result->variants(0);
  }

  Measuring measuring_;
  bool flush_l2_ = true;
  std::string recording_file_ = "tests/daemon/artifacts/kernels.so";
  std::string recording_;  // entry of variant 0's race-recording form; empty: it is proved
  std::unique_ptr<AddKernel> kernel_;
  std::unique_ptr<worker::Supervisor> worker_;
  std::vector<v1::VariantResult> failed_;
};

TEST_F(EndToEndTest, TheFastestWins) {
  ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneOnHost({"add_slowly", "add", "with_scratch"}));
  EXPECT_NE(result.winner(), 0);
  EXPECT_GT(result.variants(0).best_ns(), 2'000'000);
  EXPECT_LT(result.best_ns(), 2'000'000);
  EXPECT_THAT(result.variants(1).samples_ns(), SizeIs(5));
  EXPECT_GT(result.warm_up_launches(), 0);
  EXPECT_GT(result.timer_resolution_ns(), 0);
  EXPECT_GT(result.split().timing_ns(), 0);
  EXPECT_EQ(worker_->deaths(), 0);
}

TEST_F(EndToEndTest, WrongResult) {
  const v1::VariantResult verdict = Verdict("wrong");
  EXPECT_EQ(verdict.status(), v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_THAT(verdict.reason(), HasSubstr("out[5] is 8, the reference says 7; 1 of 3000 elements"));
}

TEST_F(EndToEndTest, WriteBeforeATensor) {
  const v1::VariantResult verdict = Verdict("write_before");
  EXPECT_EQ(verdict.status(), v1::VARIANT_STATUS_OUT_OF_BOUNDS);
  EXPECT_THAT(verdict.reason(), HasSubstr("outside out: the byte 1 before"));
}

TEST_F(EndToEndTest, WriteBehindATensor) {
  const v1::VariantResult verdict = Verdict("write_behind");
  EXPECT_EQ(verdict.status(), v1::VARIANT_STATUS_OUT_OF_BOUNDS);
  EXPECT_THAT(verdict.reason(), HasSubstr("outside out: the byte at +0 past its end"));
}

TEST_F(EndToEndTest, WriteFarOutside) {
  EXPECT_EQ(Verdict("write_far").status(), v1::VARIANT_STATUS_CRASHED);
}

TEST_F(EndToEndTest, InputOverwritten) {
  const v1::VariantResult verdict = Verdict("overwrite_input");
  EXPECT_EQ(verdict.status(), v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_THAT(verdict.reason(), HasSubstr("changed its input y[3]"));
}

TEST_F(EndToEndTest, NothingAfterACorrectVariant) {
  ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneOnHost({"add", "nothing"}));
  EXPECT_EQ(result.winner(), 0);
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_THAT(result.variants(1).reason(), HasSubstr("out[0] is -1"));
}

TEST_F(EndToEndTest, Crash) {
  const v1::VariantResult verdict = Verdict("crash");
  EXPECT_EQ(verdict.status(), v1::VARIANT_STATUS_CRASHED);
  EXPECT_THAT(verdict.reason(), HasSubstr("signal 11 (Segmentation fault)"));
  EXPECT_EQ(worker_->deaths(), 2);
}

TEST_F(EndToEndTest, EndlessLoop) {
  ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneOnHost({"add", "endless", "add"}));
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_TIMED_OUT);
  EXPECT_THAT(result.variants(1).reason(), ::testing::MatchesRegex("ran longer than .* s, twice"));
  EXPECT_EQ(result.variants(2).status(), v1::VARIANT_STATUS_TIMED);
}

TEST_F(EndToEndTest, ARecordingWithoutAConflictIsAPass) {
  // 1 element; several pieces of what is looked at at once.
  for (const int64_t n : {int64_t{1}, int64_t{3000}, int64_t{3} << 20}) {
    ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneRecorded("record", n));
    EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_TIMED) << n;
    EXPECT_TRUE(result.variants(0).race_recorded());
    EXPECT_FALSE(result.variants(1).race_recorded());
  }
}

TEST_F(EndToEndTest, ARecordedRaceHasAWitness) {
  ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneRecorded("record_race"));
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_RACE);
  EXPECT_EQ(result.variants(0).reason(),
            "block (0, 0, 0) writes out[0] (add.py:9) and block (2, 0, 0) writes it (add.py:9), "
            "found by its race-recording form on these arguments");
  EXPECT_EQ(result.winner(), 1);
}

TEST_F(EndToEndTest, ARecordingThatFails) {
  const std::pair<const char*, const char*> cases[] = {
      {"crash", "it ended the worker process twice, last by signal 11"},
      {"endless", "it ran longer than 1.0 s"},
      {"record_and_write_before", "it wrote outside out: the byte 1 before"},
      {"no_such_entry", "no_such_entry"},
  };
  for (const auto& [entry, text] : cases) {
    ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneRecorded(entry));
    EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_RACE_CHECK_FAILED) << entry;
    EXPECT_THAT(result.variants(0).reason(), HasSubstr(text));
    EXPECT_EQ(result.winner(), 1);
  }
}

// The variant itself is right, and not charged.
TEST_F(EndToEndTest, ARecordingThatDiesWhenItIsLoaded) {
  recording_file_ = "tests/daemon/artifacts/dies_when_loaded.so";
  ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneRecorded("add"));
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  EXPECT_THAT(result.variants(0).reason(),
              HasSubstr("it ended the worker process twice, last by signal 11"));
  EXPECT_TRUE(result.variants(0).recording_died());
  EXPECT_EQ(result.winner(), 1);
}

TEST_F(EndToEndTest, ShadowsOverTheMemoryThereIs) {
  recording_ = "add";
  // The tensors and their canaries fit, 2 * 4 bytes an element more do not.
  const absl::StatusOr<v1::Result> result = TuneByScript("memory_bytes 38000", 2, 1000);
  ASSERT_OK(result);
  EXPECT_EQ(result->variants(0).status(), v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  EXPECT_THAT(result->variants(0).reason(),
              HasSubstr("it needs 8192 bytes for shadows beside the tensors: "));
  EXPECT_THAT(result->variants(0).reason(),
              HasSubstr("bytes that the tensors leave is the most that shadows may take"));
  EXPECT_EQ(result->winner(), 1);
}

TEST_F(EndToEndTest, AllVariantsFail) {
  EXPECT_THAT(TuneOnHost({"wrong", "crash", "write_before"}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(failed_, SizeIs(3));
  EXPECT_EQ(failed_[0].status(), v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_EQ(failed_[1].status(), v1::VARIANT_STATUS_CRASHED);
  EXPECT_EQ(failed_[2].status(), v1::VARIANT_STATUS_OUT_OF_BOUNDS);
}

// Right when checked, it faults in the warm-up or in a round. The other seven are as without it.
TEST_F(EndToEndTest, FaultsAtLaunch15) {
  const std::vector<std::string> with = {"add", "add", "add", "crash_at_15",
                                         "add", "add", "add", "add"};
  ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneOnHost(with));
  EXPECT_EQ(result.variants(3).status(), v1::VARIANT_STATUS_CRASHED);
  EXPECT_THAT(result.variants(3).samples_ns(), SizeIs(0));
  for (int i = 0; i < 8; ++i) {
    if (i == 3) continue;
    EXPECT_EQ(result.variants(i).status(), v1::VARIANT_STATUS_TIMED) << i;
    EXPECT_THAT(result.variants(i).samples_ns(), SizeIs(5)) << i;
  }
}

TEST_F(EndToEndTest, SeveralJobsOnOneWorker) {
  ASSERT_OK(TuneOnHost({"add"}, 3000));
  const pid_t pid = worker_->pid();
  ASSERT_OK(TuneOnHost({"add"}, 100'000));
  ASSERT_OK(TuneOnHost({"wrong", "add"}, 1));
  EXPECT_EQ(worker_->pid(), pid);
}

// A microsecond more or less in two or three is seen, every time.
TEST_F(EndToEndTest, TinyKernelsRankRight) {
  measuring_.rounds = 20;
  measuring_.most_rounds = 60;
  flush_l2_ = false;
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneOnHost({"add_in_3_us", "add_in_2_us"}, 8));
    EXPECT_EQ(result.winner(), 1) << "tune " << i;
    EXPECT_GE(result.best_ns(), 2000);
  }
}

TEST_F(EndToEndTest, OneElementAndEmptyRemainders) {
  for (const int64_t n : {1, 7, 1023, 1024, 1025}) EXPECT_OK(TuneOnHost({"add"}, n)) << n;
}

TEST_F(EndToEndTest, AMissingArtifact) {
  kernel_ = std::make_unique<AddKernel>(10, 1);
  kernel_->space.variants[0].artifact_path = "/nowhere/kernel.so";
  worker_ = Worker("cpu");
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(failed_, SizeIs(1));
  EXPECT_EQ(failed_[0].status(), v1::VARIANT_STATUS_COMPILE_ERROR);
  EXPECT_THAT(failed_[0].reason(), HasSubstr("/nowhere/kernel.so"));
}

TEST_F(EndToEndTest, OutOfMemory) {
  EXPECT_THAT(TuneByScript("memory_bytes 1000", 2),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1000")));
  ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneByScript("variant 0 no_memory", 2));
  EXPECT_EQ(result.variants(0).status(), v1::VARIANT_STATUS_OUT_OF_MEMORY);
  EXPECT_EQ(result.winner(), 1);
}

TEST_F(EndToEndTest, ScriptedTimesDecide) {
  ASSERT_OK_AND_ASSIGN(const v1::Result result,
                       TuneByScript("variant 0 times 300\nvariant 1 times 200\n"
                                    "variant 2 times 201\nresolution_ns 3",
                                    3));
  EXPECT_EQ(result.winner(), 1);
  EXPECT_EQ(result.best_ns(), 200);
  EXPECT_THAT(result.ties(), ::testing::ElementsAre(1, 2));
  EXPECT_EQ(result.timer_resolution_ns(), 3);
}

TEST_F(EndToEndTest, DisturbedForEverIsContended) {
  ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneByScript("disturbed 1 -1", 2));
  EXPECT_TRUE(result.contended());
  EXPECT_EQ(result.rounds(), 5);
  EXPECT_EQ(result.repeated_rounds(), 10);
}

// The clock ramps for longer than the warm-up lasts: the variants share it, so the order of times
// is right all the same.
TEST_F(EndToEndTest, AClockThatRamps) {
  ASSERT_OK_AND_ASSIGN(const v1::Result result,
                       TuneByScript("ramp_ms 500\nvariant 0 times 1010\nvariant 1 times 1000", 2));
  EXPECT_EQ(result.winner(), 1);
}

TEST_F(EndToEndTest, OneCrashIsForgiven) {
  const std::string mark = absl::StrCat(::testing::TempDir(), "/once-", getpid());
  ASSERT_OK_AND_ASSIGN(const v1::Result result,
                       TuneByScript(absl::StrCat("variant 1 crash 1 once ", mark), 2));
  EXPECT_EQ(worker_->deaths(), 1);
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_TIMED);
}

TEST_F(EndToEndTest, ALaunchOverItsLimitThatWouldEnd) {
  ASSERT_OK_AND_ASSIGN(const v1::Result result, TuneByScript("variant 1 slow 1 900", 2));
  EXPECT_EQ(result.variants(1).status(), v1::VARIANT_STATUS_TIMED_OUT);
  EXPECT_EQ(result.winner(), 0);
}

}  // namespace
}  // namespace phobos::tuner
