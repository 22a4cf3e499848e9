// SPDX-License-Identifier: Apache-2.0
#include "daemon/compile/runner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/fd.h"
#include "cache/artifact_store.h"
#include "cache/memory_store.h"
#include "daemon/error/error.h"
#include "tests/sanitizer.h"
#include "tests/status_matchers.h"

namespace phobos::compile {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StrEq;

std::string Runfile(const std::string& path) {
  return absl::StrCat(getenv("TEST_SRCDIR"), "/", getenv("TEST_WORKSPACE"), "/", path);
}

// The stand-in compiler (stand_in.py) does what the source's comments say.
class RunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(::testing::TempDir(), "/runner-", getpid(), "-",
                           absl::ToUnixNanos(absl::Now()));
    std::filesystem::create_directories(folder_);
    auto artifacts = cache::ArtifactStore::Open(folder_ + "/kernels");
    ASSERT_OK(artifacts);
    artifacts_ = std::make_unique<cache::ArtifactStore>(*std::move(artifacts));
    store_ = cache::MakeMemoryStore();
    Start(absl::Seconds(60));
  }

  void Start(absl::Duration limit) {
    // A copy, so that a test can take it away.
    compiler_ = folder_ + "/phobos-compile";
    std::filesystem::copy_file(Runfile("tests/daemon/compile/stand_in.py"), compiler_,
                               std::filesystem::copy_options::overwrite_existing);
    Options options;
    options.compiler = compiler_;
    options.work_folder = folder_ + "/work";
    options.limit = limit;
    auto runner = Runner::Start(options);
    ASSERT_OK(runner);
    runner_ = *std::move(runner);
  }

  absl::StatusOr<CompiledSpace> Compile(const std::string& comments) {
    source_.text = absl::StrCat("# log ", folder_, "/log\n", comments);
    source_.file_name = "add.py";
    source_.kernel = "add";
    auto description = runner_->Describe(source_, *store_);
    if (!description.ok()) return description.status();
    description_ = *std::move(description);
    return runner_->CompileAll(source_, description_, "x86-64-v3", *store_, *artifacts_);
  }

  // One line a run of the compiler.
  std::vector<std::string> Log() const {
    std::vector<std::string> lines;
    std::ifstream file(folder_ + "/log");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  static std::string Statuses(const CompiledSpace& space) {
    return absl::StrJoin(space.variants, " ", [](std::string* out, const CompiledVariant& v) {
      absl::StrAppend(out, compiler::v1::VariantStatus_Name(v.variant.status()).substr(15));
    });
  }

  std::string folder_;
  std::string compiler_;
  std::unique_ptr<cache::ArtifactStore> artifacts_;
  std::unique_ptr<cache::ResultStore> store_;
  std::unique_ptr<Runner> runner_;
  Source source_;
  compiler::v1::KernelDescription description_;
};

TEST_F(RunnerTest, CompilesTheSpaceInOneRun) {
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space, Compile("# space 5"));
  EXPECT_EQ(Statuses(space), "COMPILED COMPILED COMPILED COMPILED COMPILED");
  EXPECT_EQ(space.compiler_fingerprint, "stand-in 1");
  EXPECT_EQ(runner_->fingerprint(), "stand-in 1");
  EXPECT_THAT(space.slots, ElementsAre("x", "y", "out", "extent:N"));
  EXPECT_EQ(space.runs, 1);
  EXPECT_GT(space.cpu_time, absl::ZeroDuration());
  EXPECT_THAT(Log(), ElementsAre("0 1 2 3 4"));
  for (const CompiledVariant& variant : space.variants) {
    EXPECT_EQ(access(variant.artifact_path.c_str(), R_OK), 0) << variant.artifact_path;
    EXPECT_THAT(variant.artifact_path, HasSubstr(folder_ + "/kernels/"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/work"));
}

TEST_F(RunnerTest, TheSecondTimeNothingIsCompiled) {
  ASSERT_OK(Compile("# space 3\n# error 1 wrong"));
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space, Compile("# space 3\n# error 1 wrong"));
  EXPECT_EQ(space.runs, 0);
  EXPECT_EQ(space.cpu_time, absl::ZeroDuration());
  EXPECT_EQ(Statuses(space), "COMPILED COMPILE_ERROR COMPILED");
  EXPECT_THAT(space.slots, ElementsAre("x", "y", "out", "extent:N"));
  EXPECT_NE(space.variants[0].artifact_path, "");
  EXPECT_EQ(Log().size(), 1u);
}

// Another text with the same canonical source: the same variants. But what quotes the text, or
// names its lines and its file, is said of this one.
TEST_F(RunnerTest, PlacesAreThoseOfTheTextThatWasGiven) {
  ASSERT_OK(Compile("# space 3"));
  ASSERT_OK_AND_ASSIGN(const CompiledSpace same, Compile("# space 3\n# a comment"));
  EXPECT_EQ(same.runs, 0);
  ASSERT_OK(Compile("# space 3\n# canonical other\n# error 1 in line 3"));
  ASSERT_OK_AND_ASSIGN(const CompiledSpace moved,
                       Compile("# space 3\n# canonical other\n#\n# error 1 in line 4"));
  EXPECT_EQ(moved.runs, 1);
  EXPECT_EQ(moved.variants[1].variant.reason(), "in line 4");
  source_.file_name = "other.py";
  ASSERT_OK_AND_ASSIGN(
      const CompiledSpace renamed,
      runner_->CompileAll(source_, description_, "x86-64-v3", *store_, *artifacts_));
  EXPECT_EQ(renamed.runs, 1);
  ASSERT_OK_AND_ASSIGN(
      const CompiledSpace again,
      runner_->CompileAll(source_, description_, "x86-64-v3", *store_, *artifacts_));
  EXPECT_EQ(again.runs, 0);
}

// What the outcome hangs on, each changed alone.
TEST_F(RunnerTest, AnotherSourceChipOrCompilerCompilesAnew) {
  ASSERT_OK(Compile("# space 2"));
  ASSERT_OK_AND_ASSIGN(const CompiledSpace source, Compile("# space 2\n# canonical changed"));
  EXPECT_EQ(source.runs, 1);
  ASSERT_OK_AND_ASSIGN(
      const CompiledSpace chip,
      runner_->CompileAll(source_, description_, "x86-64-v4", *store_, *artifacts_));
  EXPECT_EQ(chip.runs, 1);
  ASSERT_OK_AND_ASSIGN(const CompiledSpace settings, Compile("# space 3\n# canonical changed"));
  EXPECT_EQ(settings.runs, 1);
  EXPECT_EQ(Log().back(), "2");  // the other two are known
}

TEST_F(RunnerTest, AMissingArtifactIsMadeAgain) {
  ASSERT_OK_AND_ASSIGN(const CompiledSpace first, Compile("# space 3"));
  std::filesystem::remove(first.variants[1].artifact_path);
  ASSERT_OK_AND_ASSIGN(const CompiledSpace again, Compile("# space 3"));
  EXPECT_EQ(again.runs, 1);
  EXPECT_EQ(Log().back(), "1");
  EXPECT_EQ(again.variants[1].artifact_path, first.variants[1].artifact_path);
}

TEST_F(RunnerTest, OutcomesArePassedOn) {
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space,
                       Compile("# space 6\n# error 0 bad line\n# race 1 blocks 0 and 1\n"
                               "# unsupported 2 too much\n# unproven 3 out[idx]\n"
                               "# exclude 4 BLOCK != 4"));
  EXPECT_EQ(Statuses(space), "COMPILE_ERROR RACE UNSUPPORTED COMPILED EXCLUDED COMPILED");
  EXPECT_EQ(space.variants[0].variant.reason(), "bad line");
  EXPECT_EQ(space.variants[3].variant.race_verdict(), compiler::v1::RACE_VERDICT_UNPROVEN);
  EXPECT_EQ(space.variants[3].variant.race_detail(), "out[idx]");
  EXPECT_EQ(space.variants[4].variant.reason(), "BLOCK != 4");
  EXPECT_EQ(space.runs, 1);
}

TEST_F(RunnerTest, RecordingFormsAreKeptBesideTheirVariants) {
  const std::string source =
      "# space 3\n# unproven 1 out[idx]\n# shadow 1 out\n# unproven 2 x\n# shadow 2 N";
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space, Compile(source));
  EXPECT_EQ(space.variants[0].recording_path, "");
  const CompiledVariant& recorded = space.variants[1];
  EXPECT_TRUE(std::filesystem::exists(recorded.recording_path));
  EXPECT_NE(recorded.recording_path, recorded.artifact_path);
  EXPECT_EQ(recorded.variant.recording().shadows(0).parameter(), "out");
  // A shadow of what is no tensor.
  EXPECT_EQ(space.variants[2].variant.status(), compiler::v1::VARIANT_STATUS_COMPILE_ERROR);
  EXPECT_THAT(space.variants[2].variant.reason(), HasSubstr("a shadow of \"N\""));
  // Remembered with its variant, and made again with it.
  ASSERT_OK_AND_ASSIGN(const CompiledSpace again, Compile(source));
  EXPECT_EQ(again.runs, 0);
  EXPECT_EQ(again.variants[1].recording_path, recorded.recording_path);
  std::filesystem::remove(recorded.recording_path);
  ASSERT_OK_AND_ASSIGN(const CompiledSpace anew, Compile(source));
  EXPECT_EQ(Log().back(), "1");
  EXPECT_TRUE(std::filesystem::exists(anew.variants[1].recording_path));
}

TEST_F(RunnerTest, ACrashCostsItsVariantAlone) {
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space, Compile("# space 8\n# crash 5"));
  EXPECT_EQ(Statuses(space),
            "COMPILED COMPILED COMPILED COMPILED COMPILED COMPILE_ERROR COMPILED COMPILED");
  EXPECT_THAT(space.variants[5].variant.reason(),
              HasSubstr("signal 11 (Segmentation fault)\nabout to crash"));
  EXPECT_THAT(Log(),
              ElementsAre("0 1 2 3 4 5 6 7", "0 1 2 3", "4 5 6 7", "4 5", "4", "5", "5", "6 7"));
  // Remembered with the compiler.
  ASSERT_OK_AND_ASSIGN(const CompiledSpace again, Compile("# space 8\n# crash 5"));
  EXPECT_EQ(again.runs, 0);
  EXPECT_EQ(again.variants[5].variant.status(), compiler::v1::VARIANT_STATUS_COMPILE_ERROR);
}

TEST_F(RunnerTest, AVariantWhoseCompilerDiedIsTriedOnceMore) {
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space,
                       Compile(absl::StrCat("# space 1\n# kill 0 ", folder_, "/killed")));
  EXPECT_EQ(Statuses(space), "COMPILED");
  EXPECT_THAT(Log(), ElementsAre("0", "0"));
}

TEST_F(RunnerTest, ADescriptionWhoseCompilerDiedIsTriedOnceMore) {
  ASSERT_OK(Compile(absl::StrCat("# kill describe ", folder_, "/killed")));
  EXPECT_THAT(Compile("# kill describe"),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("signal 9 (Killed)")));
}

TEST_F(RunnerTest, WhatAKilledDaemonLeftInTheWorkFolderIsRemoved) {
  std::filesystem::create_directories(std::filesystem::path(folder_) / "work/compile-left/deep");
  Start(absl::Seconds(60));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(folder_) / "work/compile-left"));
  EXPECT_OK(Compile("# space 1"));
}

// Whoever killed the compiler may have had reasons that do not last.
TEST_F(RunnerTest, AKillFromOutsideIsNotRemembered) {
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space, Compile("# space 2\n# kill 1"));
  EXPECT_EQ(Statuses(space), "COMPILED COMPILE_ERROR");
  EXPECT_THAT(space.variants[1].variant.reason(), HasSubstr("signal 9 (Killed)"));
  EXPECT_THAT(Log(), ElementsAre("0 1", "0", "1", "1"));
  ASSERT_OK_AND_ASSIGN(const CompiledSpace again, Compile("# space 2\n# no more kills"));
  EXPECT_EQ(Statuses(again), "COMPILED COMPILED");
  EXPECT_EQ(Log().back(), "1");
}

TEST_F(RunnerTest, AHangCostsItsVariantAlone) {
  Start(absl::Seconds(2));
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space, Compile("# space 2\n# hang 0"));
  EXPECT_EQ(Statuses(space), "COMPILE_ERROR COMPILED");
  EXPECT_THAT(space.variants[0].variant.reason(), HasSubstr("ran longer than 1.0 s"));
}

TEST_F(RunnerTest, TooMuchMemoryCostsItsVariantAlone) {
  if (RunsUnder("asan") || RunsUnder("tsan")) {
    GTEST_SKIP() << "a compiler with this sanitizer reserves more memory than any limit allows";
  }
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space, Compile("# space 2\n# memory 1"));
  EXPECT_EQ(Statuses(space), "COMPILED COMPILE_ERROR");
  EXPECT_THAT(space.variants[1].variant.reason(), HasSubstr("signal 6 (Aborted)"));
}

TEST_F(RunnerTest, LiesAboutAVariantAreItsErrors) {
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space,
                       Compile("# space 6\n# lie 0 missing\n# lie 1 digest\n# lie 2 settings\n"
                               "# lie 3 path\n# lie 4 silent"));
  EXPECT_EQ(Statuses(space),
            "COMPILE_ERROR COMPILE_ERROR COMPILE_ERROR COMPILE_ERROR COMPILE_ERROR COMPILED");
  EXPECT_THAT(space.variants[0].variant.reason(), HasSubstr("variant-0.so"));
  EXPECT_THAT(space.variants[1].variant.reason(), HasSubstr("digest"));
  EXPECT_THAT(space.variants[2].variant.reason(), HasSubstr("other settings"));
  EXPECT_THAT(space.variants[3].variant.reason(), HasSubstr("../../etc/passwd"));
  EXPECT_THAT(space.variants[4].variant.reason(), HasSubstr("said nothing"));
}

TEST_F(RunnerTest, LiesAboutTheRunFailIt) {
  EXPECT_THAT(Compile("# manifest {not json"), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(Compile("# format 99"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("format 99")));
  EXPECT_THAT(Compile("# fingerprint stand-in 2"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("restart it")));
  EXPECT_THAT(Compile("# chip sm_90"), StatusIs(absl::StatusCode::kInternal, HasSubstr("sm_90")));
  EXPECT_THAT(Compile("# unchecked"), StatusIs(absl::StatusCode::kInternal, HasSubstr("races")));
  for (const char* slots : {"x y out", "y x out extent:N", "x y out extent:N extent:N",
                            "extent:N x y out", "x y out extent:M"}) {
    EXPECT_THAT(
        Compile(absl::StrCat("# slots ", slots)),
        StatusIs(absl::StatusCode::kInternal, HasSubstr("instead of \"x, y, out, extent:N\"")));
  }
  EXPECT_THAT(Compile("# description {}"), StatusIs(absl::StatusCode::kInternal));
}

// It can be opened, and not read.
TEST_F(RunnerTest, AFolderInTheManifestsOrAnArtifactsPlaceIsTheCompilersError) {
  EXPECT_THAT(Compile("# manifest-is-folder"),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("manifest.json")));
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space, Compile("# space 2\n# lie 1 folder"));
  EXPECT_EQ(Statuses(space), "COMPILED COMPILE_ERROR");
}

TEST_F(RunnerTest, AWrongSourceIsTheCallersError) {
  EXPECT_THAT(Compile("# refuse unknown name"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("add.py:1:1: unknown name")));
  // The caller sees which kind of error it is, also of a source that is right but for its chip.
  ASSERT_OK(Compile("# space 1"));
  source_.text = "# refuse not here";
  const absl::Status late =
      runner_->CompileAll(source_, description_, "x86-64-v4", *store_, *artifacts_).status();
  EXPECT_THAT(late, StatusIs(absl::StatusCode::kInvalidArgument, StrEq("not here")));
  EXPECT_EQ(error::DetailOf(late).reason(), tuner::v1::ERROR_REASON_BAD_SOURCE);
}

// Not the caller's error, and nothing that is remembered: there may be room the next time.
TEST_F(RunnerTest, ADiskThatRefusesIsToldWithItsFolderAndARemedy) {
  const auto is_told = [](const absl::Status& status, const std::string& folder,
                          const std::string& why) {
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kUnavailable, AllOf(HasSubstr(folder), HasSubstr(why))));
    EXPECT_EQ(error::DetailOf(status).reason(), tuner::v1::ERROR_REASON_MACHINE);
    EXPECT_THAT(error::DetailOf(status).remedy(), HasSubstr("another --cache-dir"));
  };
  is_told(Compile("# space 2\n# full write a.so: No space left on device").status(),
          folder_ + "/work", "write a.so: No space left");
  EXPECT_EQ(runner_->CompileOne(source_, description_, 1, "x86-64-v3", *store_, *artifacts_)
                .status()
                .code(),
            absl::StatusCode::kUnavailable);
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space, Compile("# space 2"));
  EXPECT_EQ(Statuses(space), "COMPILED COMPILED");

  std::filesystem::remove_all(folder_ + "/kernels");
  std::ofstream(folder_ + "/kernels") << "no folder";
  is_told(Compile("# space 3").status(), folder_ + "/kernels", "mkostemp");
  std::filesystem::remove_all(folder_ + "/work");
  std::ofstream(folder_ + "/work") << "no folder";
  is_told(Compile("# space 4").status(), folder_ + "/work", "directory");
}

TEST_F(RunnerTest, WhatACompilerLacksButADiskHasAnotherRemedy) {
  for (const char* word :
       {"memory: Cannot allocate memory", "open /proc/self/fd/3: Too many open files"}) {
    const absl::Status status = Compile(absl::StrCat("# space 2\n# full ", word)).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(word)));
    EXPECT_EQ(error::DetailOf(status).reason(), tuner::v1::ERROR_REASON_MACHINE);
    EXPECT_THAT(error::DetailOf(status).remedy(), Not(HasSubstr("cache-dir")));
  }
  ASSERT_OK_AND_ASSIGN(const CompiledSpace space, Compile("# space 2"));
  EXPECT_EQ(Statuses(space), "COMPILED COMPILED");
}

// What the daemon itself runs out of, here file descriptors, is no error of the source's either.
TEST_F(RunnerTest, ALackOfDescriptorsIsToldWithARemedy) {
  ASSERT_OK(Compile("# space 1"));
  std::vector<Fd> taken;
  for (Fd fd(open("/dev/null", O_RDONLY | O_CLOEXEC)); fd.ok();
       fd = Fd(open("/dev/null", O_RDONLY | O_CLOEXEC))) {
    taken.push_back(std::move(fd));
  }
  taken.resize(taken.size() - 3);  // too few for the streams and the start of a child
  const absl::Status status = runner_->Describe({"# space 2", "add.py", "add"}, *store_).status();
  taken.clear();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("Too many open")));
  EXPECT_NE(error::DetailOf(status).remedy(), "");
}

TEST_F(RunnerTest, AKernelThatIsNotThereIsToldWithThoseThatAre) {
  ASSERT_OK(Compile("# space 1"));
  EXPECT_THAT(runner_->Describe({"# kernels mul sub", "add.py", "add"}, *store_),
              StatusIs(absl::StatusCode::kNotFound,
                       StrEq("the file has no kernel 'add' at its top level; it has mul sub")));
}

// That is not a kernel which the text does not have.
TEST_F(RunnerTest, ACompilerThatIsGoneIsToldWithTheRemedy) {
  ASSERT_OK(Compile("# space 1"));
  std::filesystem::remove(compiler_);
  const auto is_told = StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr(compiler_), HasSubstr("--compiler=PATH")));
  EXPECT_THAT(runner_->Describe({"# space 2", "add.py", "add"}, *store_), is_told);
  source_.text = "# space 3";
  description_.set_source_digest("of another text");
  EXPECT_THAT(runner_->CompileAll(source_, description_, "x86-64-v3", *store_, *artifacts_),
              is_told);
}

TEST_F(RunnerTest, OneVariant) {
  ASSERT_OK(Compile("# space 1"));
  ASSERT_OK_AND_ASSIGN(description_, runner_->Describe({"# space 5", "add.py", "add"}, *store_));
  source_.text = absl::StrCat("# log ", folder_, "/log\n# space 5");
  ASSERT_OK_AND_ASSIGN(
      const CompiledVariant variant,
      runner_->CompileOne(source_, description_, 3, "x86-64-v3", *store_, *artifacts_));
  EXPECT_EQ(variant.variant.index(), 3);
  EXPECT_EQ(Log().back(), "3");
  EXPECT_THAT(runner_->CompileOne(source_, description_, 5, "x86-64-v3", *store_, *artifacts_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(RunnerTest, WhatALookupNeedsRunsInPauses) {
  runner_->Pause();
  source_ = {absl::StrCat("# log ", folder_, "/log\n# space 2"), "add.py", "add"};
  ASSERT_OK_AND_ASSIGN(description_, runner_->Describe(source_, *store_));
  EXPECT_OK(runner_->CompileOne(source_, description_, 1, "x86-64-v3", *store_, *artifacts_));
  EXPECT_EQ(Log().back(), "1");
  runner_->Resume();
}

TEST_F(RunnerTest, NothingStartsAfterStop) {
  ASSERT_OK(Compile("# space 2"));
  runner_->Stop();
  EXPECT_THAT(Compile("# space 3"), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(Runner, ACompilerThatIsNotThereIsSaidAtTheStart) {
  Options options;
  options.compiler = "/nowhere/phobos-compile";
  EXPECT_THAT(Runner::Start(options),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--compiler=PATH")));
  options.compiler = absl::StrCat(::testing::TempDir(), "/silent-", getpid());
  std::ofstream(options.compiler) << "#!/bin/sh\n";
  ASSERT_EQ(chmod(options.compiler.c_str(), 0755), 0);
  EXPECT_THAT(Runner::Start(options),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("printed nothing")));
}

}  // namespace
}  // namespace phobos::compile
