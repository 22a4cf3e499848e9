// SPDX-License-Identifier: Apache-2.0
#include "daemon/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/status_matchers.h"

namespace phobos::options {
namespace {

using ::phobos::testing::IsOk;
using ::phobos::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() {
    here_.environment = [this](const char* name) { return environment_[name]; };
    here_.uid = 1000;
    here_.home = "/h/from-passwd";
    here_.program = "/opt/phobos/bin/phobosd";
    here_.folder = "/w/here";
    here_.cpus = 12;
    here_.memory_bytes = int64_t{64} << 30;
    here_.is_executable = [this](const std::string& path) { return path == executable_; };
  }

  absl::StatusOr<Command> Read(std::vector<const char*> flags) {
    flags.insert(flags.begin(), "phobosd");
    return Parse(static_cast<int>(flags.size()), flags.data(), here_);
  }

  std::map<std::string, std::string> environment_;
  std::string executable_ = "/opt/phobos/bin/phobos-compile";
  Surroundings here_;
};

TEST_F(OptionsTest, DefaultsOfAUser) {
  const absl::StatusOr<Command> command = Read({});
  ASSERT_THAT(command, IsOk());
  const Options& options = command->options;
  EXPECT_EQ(options.socket, "/tmp/phobos-1000/tuner.sock");
  EXPECT_EQ(options.cache_dir, "/h/from-passwd/.phobos/kernel-cache");
  EXPECT_EQ(options.compiler, "/opt/phobos/bin/phobos-compile");
  EXPECT_EQ(options.program, "/opt/phobos/bin/phobosd");
  EXPECT_EQ(options.compile_jobs, 12);
  EXPECT_EQ(options.segment_bytes, int64_t{32} << 30);
  EXPECT_EQ(options.idle_exit, absl::Minutes(15));
  EXPECT_EQ(options.rounds, 20);
  EXPECT_EQ(options.warm_up, absl::Milliseconds(300));
  EXPECT_THAT(options.devices, ElementsAre("cuda", "cpu"));
}

TEST_F(OptionsTest, SocketByTheRules) {
  environment_["XDG_RUNTIME_DIR"] = "/run/user/1000";
  EXPECT_EQ(Read({})->options.socket, "/run/user/1000/phobos/tuner.sock");
  environment_["PHOBOS_SOCKET"] = "/a/b.sock";
  EXPECT_EQ(Read({})->options.socket, "/a/b.sock");
  EXPECT_EQ(Read({"--socket=/c/d.sock"})->options.socket, "/c/d.sock");
}

TEST_F(OptionsTest, RootsOwnDaemonIsTheSystems) {
  here_.uid = 0;
  EXPECT_EQ(Read({})->options.socket, "/run/phobos/tuner.sock");
  EXPECT_EQ(Read({})->options.cache_dir, "/var/cache/phobos");
  environment_["HOME"] = "/h/root";
  EXPECT_EQ(Read({"--private"})->options.socket, "/tmp/phobos-0/tuner.sock");
  EXPECT_EQ(Read({"--private"})->options.cache_dir, "/h/root/.phobos/kernel-cache");
}

TEST_F(OptionsTest, CacheByTheRules) {
  environment_["HOME"] = "/h/me";
  EXPECT_EQ(Read({})->options.cache_dir, "/h/me/.phobos/kernel-cache");
  environment_["PHOBOS_KERNEL_CACHE_DIR"] = "/fast/cache";
  EXPECT_EQ(Read({})->options.cache_dir, "/fast/cache");
  EXPECT_EQ(Read({"--cache-dir", "/other"})->options.cache_dir, "/other");
}

TEST_F(OptionsTest, CompilerBesideOrOnThePath) {
  executable_ = "/usr/bin/phobos-compile";
  environment_["PATH"] = "/nothing:/usr/bin";
  EXPECT_EQ(Read({})->options.compiler, "/usr/bin/phobos-compile");
  executable_ = "";
  EXPECT_EQ(Read({})->options.compiler,
            "/opt/phobos/bin/phobos-compile");  // the error will name it
  EXPECT_EQ(Read({"--compiler=/mine"})->options.compiler, "/mine");
  // As Bazel lays out what it builds: each program in the folder of its room.
  here_.program = "/tree/bazel-bin/daemon/main/phobosd";
  here_.is_executable = [](const std::string& path) {
    return path == "/tree/bazel-bin/daemon/main/../../compiler/main/phobos-compile" ||
           path == "/usr/bin/phobos-compile";
  };
  EXPECT_EQ(Read({})->options.compiler, "/tree/bazel-bin/compiler/main/phobos-compile");
  EXPECT_EQ(Read({"--compiler=bin/mine"})->options.compiler, "/w/here/bin/mine");
}

TEST_F(OptionsTest, RelativePathsAreOfTheWorkingFolder) {
  environment_["PHOBOS_SOCKET"] = "run/s";
  environment_["PHOBOS_KERNEL_CACHE_DIR"] = "./cache";
  EXPECT_EQ(Read({})->options.socket, "/w/here/run/s");
  EXPECT_EQ(Read({})->options.cache_dir, "/w/here/cache");
  EXPECT_EQ(Read({"--socket=../s"})->options.socket, "/w/s");
  EXPECT_EQ(Read({"--cache-dir", "c"})->options.cache_dir, "/w/here/c");
  here_.folder = "";  // it was removed
  EXPECT_THAT(Read({"--socket=/s"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'cache'")));
}

// A limit of half of nothing would refuse every tune.
TEST_F(OptionsTest, WhereTheMemoryIsUnknownTheFlagsMustSayIt) {
  here_.memory_bytes = 0;
  EXPECT_THAT(Read({"--segment-bytes=64K"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--segment-bytes"), HasSubstr("--copy-bytes"))));
  const absl::StatusOr<Command> command = Read({"--segment-bytes=64K", "--copy-bytes=123"});
  ASSERT_THAT(command, IsOk());
  EXPECT_EQ(command->options.copy_bytes, 123);
  EXPECT_THAT(Read({"--version"}), IsOk());
  EXPECT_THAT(Read({"--help"}), IsOk());
}

TEST_F(OptionsTest, EveryFlagSetsItsOption) {
  const absl::StatusOr<Command> command =
      Read({"--private", "--background", "--ready-fd=7", "--idle-exit=90s",
            "--devices=cpu,cuda,fake:/x", "--tie-break=first-within-noise", "--compile-jobs=3",
            "--compile-limit=2m", "--llc-bytes=8M", "--worker-idle=1s", "--artifact-bytes=1G",
            "--segment-bytes=64K", "--copy-bytes=123", "--connections-per-uid=5",
            "--calls-per-uid=6", "--jobs-per-uid=7", "--rounds=2", "--warm-up=0"});
  ASSERT_THAT(command, IsOk());
  const Options& options = command->options;
  EXPECT_TRUE(options.is_private);
  EXPECT_TRUE(options.background);
  EXPECT_EQ(options.ready_fd, 7);
  EXPECT_EQ(options.idle_exit, absl::Seconds(90));
  EXPECT_THAT(options.devices, ElementsAre("cuda", "fake:/x", "cpu"));
  EXPECT_EQ(options.tie_break, tuner::v1::TIE_BREAK_FIRST_WITHIN_NOISE);
  EXPECT_EQ(options.compile_jobs, 3);
  EXPECT_EQ(options.compile_limit, absl::Minutes(2));
  EXPECT_EQ(options.llc_bytes, 8 << 20);
  EXPECT_EQ(options.worker_idle, absl::Seconds(1));
  EXPECT_EQ(options.artifact_bytes, 1 << 30);
  EXPECT_EQ(options.segment_bytes, 64 << 10);
  EXPECT_EQ(options.copy_bytes, 123);
  EXPECT_EQ(options.connections_per_uid, 5);
  EXPECT_EQ(options.calls_per_uid, 6);
  EXPECT_EQ(options.jobs_per_uid, 7);
  EXPECT_EQ(options.rounds, 2);
  EXPECT_EQ(options.warm_up, absl::ZeroDuration());
}

TEST_F(OptionsTest, BadFlagsAreNamed) {
  const std::pair<const char*, const char*> bad[] = {
      {"--nope", "--nope"},
      {"word", "'word'"},
      {"--idle-exit=soon", "--idle-exit: 'soon'"},
      {"--idle-exit=-1s", "--idle-exit"},
      {"--artifact-bytes=4X", "--artifact-bytes: '4X'"},
      {"--artifact-bytes=9999999999G", "--artifact-bytes"},
      {"--rounds=0", "--rounds: '0'"},
      {"--rounds=99999999999", "--rounds"},
      {"--devices=gpu", "'gpu'"},
      {"--devices=cpu,cpu", "'cpu' is there twice"},
      {"--devices=cuda:GPU-1,cpu,cuda", "'cuda:GPU-1' is there twice"},
      {"--tie-break=random", "'random'"},
      {"--socket=", "--socket"},
      {"--socket", "--socket"},
      {"--worker=cpu", "--worker-socket"},
  };
  for (const auto& [flag, named] : bad) {
    const absl::StatusOr<Command> command = Read({flag});
    EXPECT_THAT(command, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(named))) << flag;
  }
}

TEST_F(OptionsTest, KindsOfCommand) {
  EXPECT_EQ(Read({})->kind, Command::Kind::kServe);
  EXPECT_EQ(Read({"--help"})->kind, Command::Kind::kHelp);
  EXPECT_EQ(Read({"--version"})->kind, Command::Kind::kVersion);
  const absl::StatusOr<Command> worker = Read({"--worker=cpu", "--worker-socket=3"});
  ASSERT_THAT(worker, IsOk());
  EXPECT_EQ(worker->kind, Command::Kind::kWorker);
  EXPECT_EQ(worker->worker_device, "cpu");
  EXPECT_EQ(worker->worker_socket, 3);
}

TEST_F(OptionsTest, HelpShowsWhatUsersNeed) {
  EXPECT_THAT(Help(), HasSubstr("--cache-dir=FOLDER"));
  EXPECT_THAT(Help(), HasSubstr("PHOBOS_SOCKET"));
  EXPECT_THAT(Help(), HasSubstr("--rounds=N"));
  EXPECT_THAT(Help(), HasSubstr("--warm-up=TIME"));
  const absl::StatusOr<Command> look = Read({"--look-at-card=GPU-1"});
  ASSERT_TRUE(look.ok());
  EXPECT_EQ(look->kind, Command::Kind::kLook);
  EXPECT_EQ(look->card, "GPU-1");
  EXPECT_THAT(Help(), ::testing::Not(HasSubstr("--look-at-card")));
  EXPECT_THAT(Help(), ::testing::Not(HasSubstr("--worker=")));  // the daemon's own word to itself
}

}  // namespace
}  // namespace phobos::options
