// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/supervisor.h"

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/fd.h"
#include "tests/base/unended.h"
#include "tests/status_matchers.h"

namespace phobos::worker {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int64_t kElements = 64;

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/", name, "-", getpid());
  std::ofstream(path) << text;
  return path;
}

SupervisorOptions Options(const std::string& script) {
  SupervisorOptions options;
  options.command = {absl::StrCat(getenv("TEST_SRCDIR"), "/", getenv("TEST_WORKSPACE"),
                                  "/tests/daemon/worker/worker_main"),
                     absl::StrCat("--worker=fake:", WriteFile("script", script))};
  return options;
}

class SupervisorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_.Reset(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(memory_.get(), 4096), 0);
    ASSERT_EQ(fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  }

  void Start(const std::string& script) { supervisor_ = Supervisor::Create(Options(script)); }

  // x, y, out of zeros, and the expected sum, zeros too.
  absl::Status Begin() {
    JobSetup setup;
    for (const char* name : {"x", "y", "out"}) {
      TensorSetup& tensor = *setup.add_tensors();
      tensor.set_parameter(name);
      tensor.set_bytes(kElements * 4);
      tensor.set_dtype(compiler::v1::DTYPE_F32);
      tensor.set_expected_memory(-1);
      setup.add_slots()->set_tensor(setup.tensors_size() - 1);
    }
    setup.mutable_tensors(2)->set_is_written(true);
    setup.mutable_tensors(2)->set_expected_memory(0);
    setup.add_slots()->set_tensor(-1);
    setup.mutable_slots(3)->set_value(kElements);
    setup.set_flush(true);
    return supervisor_->Begin(setup, {{memory_.get(), 4096}});
  }

  absl::Status Load(int variant) {
    VariantSetup setup;
    setup.set_variant(variant);
    setup.mutable_grid()->set_x(1);
    return supervisor_->Load(setup).status();
  }

  Fd memory_;
  std::unique_ptr<Supervisor> supervisor_;
};

TEST_F(SupervisorTest, ServesAJob) {
  Start("variant 1 times 50");
  EXPECT_EQ(supervisor_->pid(), 0);
  EXPECT_EQ(supervisor_->state(), "off");
  ASSERT_OK_AND_ASSIGN(const tuner::v1::Device device, supervisor_->Describe());
  EXPECT_EQ(device.uuid(), "fake");
  EXPECT_GT(supervisor_->pid(), 0);
  EXPECT_EQ(supervisor_->state(), "idle");
  ASSERT_OK(Begin());
  ASSERT_OK(Load(0));
  ASSERT_OK(Load(1));
  ASSERT_OK_AND_ASSIGN(const CheckOutcome check, supervisor_->Check(0, 1));
  EXPECT_EQ(check.status(), tuner::v1::VARIANT_STATUS_TIMED) << check.reason();
  ASSERT_OK_AND_ASSIGN(const int64_t launches, supervisor_->WarmUp({0, 1}, absl::Milliseconds(1)));
  EXPECT_GT(launches, 10);
  ASSERT_OK_AND_ASSIGN(const RoundOutcome round, supervisor_->Round({1, 0}, true));
  EXPECT_EQ(round.samples_ns(0), 50);
  EXPECT_EQ(round.samples_ns(1), 100);
  ASSERT_OK(supervisor_->End());
  EXPECT_THAT(supervisor_->Check(0, 1), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(supervisor_->deaths(), 0);
}

TEST_F(SupervisorTest, CrashNamesTheVariantAndTheNextCallStartsAnew) {
  Start("variant 3 crash 1");
  ASSERT_OK(Begin());
  ASSERT_OK(Load(3));
  EXPECT_THAT(supervisor_->Check(3, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(supervisor_->LastDeath().variant, 3);
  EXPECT_FALSE(supervisor_->LastDeath().timed_out);
  EXPECT_EQ(supervisor_->LastDeath().how, "signal 11 (Segmentation fault)");
  EXPECT_EQ(supervisor_->deaths(), 1);
  EXPECT_EQ(supervisor_->state(), "off");
  // The job went with the process.
  EXPECT_THAT(supervisor_->Check(3, 1), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK(Begin());
  ASSERT_OK(Load(0));
  EXPECT_OK(supervisor_->Check(0, 1));
}

TEST_F(SupervisorTest, EndlessLaunchIsKilledAtItsLimit) {
  Start("variant 2 hang 1");
  supervisor_->SetLaunchLimit(absl::Milliseconds(200));
  ASSERT_OK(Begin());
  ASSERT_OK(Load(2));
  const pid_t pid = supervisor_->pid();
  const absl::Time start = absl::Now();
  EXPECT_THAT(supervisor_->Check(2, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(200));
  EXPECT_TRUE(supervisor_->LastDeath().timed_out);
  EXPECT_EQ(supervisor_->LastDeath().variant, 2);
  EXPECT_EQ(supervisor_->LastDeath().how, "ran longer than 0.2 s");
  EXPECT_EQ(kill(pid, 0), -1);  // gone, and waited for
}

// A launch over its limit that would end by itself is killed too: nothing is timed in a process
// where one was given up.
TEST_F(SupervisorTest, SlowLaunchIsKilledThoughItWouldEnd) {
  Start("variant 0 slow 1 600");
  supervisor_->SetLaunchLimit(absl::Milliseconds(200));
  ASSERT_OK(Begin());
  ASSERT_OK(Load(0));
  EXPECT_THAT(supervisor_->Check(0, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(supervisor_->LastDeath().timed_out);
}

// The limit is a launch's, not a call's: many launches may take longer together.
TEST_F(SupervisorTest, LimitIsALaunchs) {
  Start("variant 0 slow 1 150\nvariant 1 slow 1 150\nvariant 2 slow 1 150");
  supervisor_->SetLaunchLimit(absl::Milliseconds(300));
  ASSERT_OK(Begin());
  for (const int variant : {0, 1, 2}) ASSERT_OK(Load(variant));
  EXPECT_OK(supervisor_->WarmUp({0, 1, 2}, absl::Milliseconds(1)));
}

TEST_F(SupervisorTest, CrashInARoundIsTheLaunchedVariants) {
  Start("variant 1 crash 3");
  ASSERT_OK(Begin());
  ASSERT_OK(Load(0));
  ASSERT_OK(Load(1));
  ASSERT_OK(supervisor_->WarmUp({0, 1}, absl::Nanoseconds(1)));
  ASSERT_OK(supervisor_->Round({0, 1}, true));
  EXPECT_THAT(supervisor_->Round({0, 1}, true), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(supervisor_->LastDeath().variant, 1);
}

// Killed from outside between two calls: a call that starts afresh does not notice, one of the job
// does.
TEST_F(SupervisorTest, DeathBetweenCalls) {
  Start("");
  ASSERT_OK(Begin());
  ASSERT_OK(Load(0));
  kill(supervisor_->pid(), SIGKILL);
  EXPECT_THAT(supervisor_->Check(0, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(supervisor_->LastDeath().variant, -1);
  EXPECT_EQ(supervisor_->LastDeath().how, "signal 9 (Killed)");
  ASSERT_OK(Begin());
  kill(supervisor_->pid(), SIGKILL);
  EXPECT_OK(Begin());
  EXPECT_OK(Load(0));
}

TEST_F(SupervisorTest, EndsWhenIdle) {
  SupervisorOptions options = Options("");
  options.idle_limit = absl::Milliseconds(50);
  supervisor_ = Supervisor::Create(options);
  ASSERT_OK(supervisor_->Describe());
  supervisor_->EndIfIdle();
  EXPECT_GT(supervisor_->pid(), 0);
  absl::SleepFor(absl::Milliseconds(60));
  supervisor_->EndIfIdle();
  EXPECT_EQ(supervisor_->pid(), 0);
  EXPECT_EQ(supervisor_->state(), "off");
  EXPECT_EQ(supervisor_->deaths(), 0);
  EXPECT_OK(supervisor_->Describe());
}

TEST_F(SupervisorTest, StopEndsACallUnderWay) {
  Start("variant 0 hang 1");
  ASSERT_OK(Begin());
  ASSERT_OK(Load(0));
  std::thread stopper([this] {
    while (supervisor_->state() != "checking") absl::SleepFor(absl::Milliseconds(1));
    absl::SleepFor(absl::Milliseconds(20));
    supervisor_->Stop();
  });
  EXPECT_THAT(supervisor_->Check(0, 1), StatusIs(absl::StatusCode::kAborted));
  stopper.join();
  EXPECT_EQ(supervisor_->pid(), 0);
}

// Kill does not wait, is no death of the worker's own, and the next call starts afresh.
TEST_F(SupervisorTest, KillEndsACallUnderWay) {
  Start("variant 0 hang 1");
  supervisor_->Kill();  // nothing runs yet
  ASSERT_OK(Begin());
  ASSERT_OK(Load(0));
  const absl::Time start = absl::Now();
  std::thread killer([this] {
    while (supervisor_->state() != "checking") absl::SleepFor(absl::Milliseconds(1));
    absl::SleepFor(absl::Milliseconds(20));
    supervisor_->Kill();
  });
  EXPECT_THAT(supervisor_->Check(0, 1), StatusIs(absl::StatusCode::kAborted));
  killer.join();
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));  // the limit is 10
  EXPECT_EQ(supervisor_->pid(), 0);
  EXPECT_EQ(supervisor_->deaths(), 0);
  ASSERT_OK(Begin());
  ASSERT_OK(Load(1));
  EXPECT_OK(supervisor_->Check(1, 1));
  kill(supervisor_->pid(), SIGKILL);  // by somebody else
  EXPECT_THAT(supervisor_->Check(1, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(supervisor_->deaths(), 1);
}

// A worker that hangs in a driver's call keeps nobody waiting; it is collected when it has ended.
TEST_F(SupervisorTest, OneThatDoesNotEndIsLeft) {
  testing::Unended unended;
  SupervisorOptions options;
  options.command = unended.command();
  options.end_limit = absl::Milliseconds(100);
  supervisor_ = Supervisor::Create(options);
  const absl::Status status = supervisor_->Describe().status();
  if (!unended.problem().empty()) GTEST_SKIP() << unended.problem();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has not ended")));
  EXPECT_EQ(supervisor_->pid(), 0);
  const pid_t pid = testing::Unended::ProcessIn(
      std::string(status.message().substr(status.message().find("; process "))));
  EXPECT_EQ(kill(pid, 0), 0) << "its number is still its own";
  unended.Release();
  EXPECT_TRUE(testing::Unended::Goes(pid, [&] { supervisor_->EndIfIdle(); }));
}

// What a worker that does not end keeps of the device is waited for by a job that needs it.
class UnendedBeforeTest : public SupervisorTest {
 protected:
  // The first worker does not end. Those after it find no memory, once.
  void StartAfterOne(absl::Duration memory_limit) {
    const std::string name = absl::StrCat(::testing::TempDir(), "/worker-", getpid(), "-",
                                          absl::ToUnixNanos(absl::Now()));
    SupervisorOptions options = Options(absl::StrCat("memory_bytes 1 once ", name, ".refused"));
    std::ofstream(name) << "mkdir " << name << ".first 2>/dev/null && exec "
                        << absl::StrJoin(unended_.command(), " ") << "\nexec \"$@\"\n";
    options.command.insert(options.command.begin(), {"/bin/sh", name});
    options.end_limit = absl::Milliseconds(100);
    options.memory_limit = memory_limit;
    supervisor_ = Supervisor::Create(options);
    const absl::Status status = supervisor_->Describe().status();
    if (!unended_.problem().empty()) GTEST_SKIP() << unended_.problem();
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("; process ")));
    first_ = testing::Unended::ProcessIn(
        std::string(status.message().substr(status.message().find("; process "))));
  }

  testing::Unended unended_;
  pid_t first_ = 0;
};

TEST_F(UnendedBeforeTest, ItsMemoryIsWaitedFor) {
  StartAfterOne(absl::Seconds(60));
  if (IsSkipped()) return;
  std::thread release([this] {
    absl::SleepFor(absl::Milliseconds(300));
    unended_.Release();
  });
  EXPECT_OK(Begin());
  EXPECT_NE(kill(first_, 0), 0) << "it was collected before";
  release.join();
}

TEST_F(UnendedBeforeTest, NotLongerThanTheLimit) {
  StartAfterOne(absl::Milliseconds(100));
  if (IsSkipped()) return;
  EXPECT_THAT(Begin(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(kill(first_, 0), 0);
}

TEST_F(UnendedBeforeTest, AKillEndsTheWait) {
  StartAfterOne(absl::Seconds(60));
  if (IsSkipped()) return;
  std::thread killer([this] {
    while (supervisor_->pid() == 0) absl::SleepFor(absl::Milliseconds(1));
    absl::SleepFor(absl::Milliseconds(300));
    supervisor_->Kill();
  });
  const int64_t deaths = supervisor_->deaths();
  const absl::Time start = absl::Now();
  EXPECT_THAT(Begin(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(supervisor_->deaths(), deaths);
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  EXPECT_EQ(kill(first_, 0), 0);
  killer.join();
}

// The Kill came when the call that it was for had just ended: nothing of it is the next one's.
TEST_F(SupervisorTest, AKillBetweenCallsIsNotTheNextOnes) {
  Start("");
  ASSERT_OK(Begin());
  supervisor_->Kill();
  EXPECT_OK(Begin());
  EXPECT_OK(Load(0));
  EXPECT_OK(supervisor_->Check(0, 1));
  supervisor_->Kill();
  EXPECT_OK(supervisor_->Expect({}));
  EXPECT_EQ(supervisor_->deaths(), 0);
}

// The thread that asked for the worker may end; the worker stays.
TEST_F(SupervisorTest, OutlivesTheThreadThatStartedIt) {
  Start("");
  std::thread([this] { EXPECT_OK(supervisor_->Describe()); }).join();
  const pid_t pid = supervisor_->pid();
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_OK(supervisor_->Describe());
  EXPECT_EQ(supervisor_->pid(), pid);
}

TEST_F(SupervisorTest, DiesWithTheDaemon) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t daemon = fork();
  if (daemon == 0) {
    auto supervisor = Supervisor::Create(Options(""));
    const bool ok = supervisor->Describe().ok();
    const pid_t pid = ok ? supervisor->pid() : -1;
    (void)!write(ends[1], &pid, sizeof(pid));
    pause();
  }
  pid_t worker = 0;
  ASSERT_EQ(read(ends[0], &worker, sizeof(worker)), static_cast<ssize_t>(sizeof(worker)));
  ASSERT_GT(worker, 0);
  kill(daemon, SIGKILL);
  waitpid(daemon, nullptr, 0);
  const absl::Time limit = absl::Now() + absl::Seconds(5);
  // Nobody waits for it but init, so a zombie counts as gone.
  std::string state;
  do {
    std::ifstream stat(absl::StrCat("/proc/", worker, "/stat"));
    std::string pid, name;
    state.clear();
    stat >> pid >> name >> state;
    absl::SleepFor(absl::Milliseconds(2));
  } while (!state.empty() && state != "Z" && absl::Now() < limit);
  EXPECT_TRUE(state.empty() || state == "Z");
}

// Nothing of what the daemon has open goes to the worker.
TEST_F(SupervisorTest, SharesNoDescriptors) {
  const Fd secret(open("/etc/hostname", O_RDONLY));  // not close-on-exec, as a careless library's
  const Fd high(fcntl(secret.get(), F_DUPFD, 200));
  Start("");
  ASSERT_OK(supervisor_->Describe());
  DIR* folder = opendir(absl::StrCat("/proc/", supervisor_->pid(), "/fd").c_str());
  ASSERT_NE(folder, nullptr);
  int open_files = 0;
  while (const dirent* entry = readdir(folder)) {
    char target[256] = {};
    if (entry->d_name[0] == '.') continue;
    ++open_files;
    (void)!readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
    EXPECT_THAT(std::string(target), ::testing::Not(HasSubstr("hostname")));
  }
  closedir(folder);
  EXPECT_LE(open_files, 5);  // 0, 1, 2, the socket, the mark
}

TEST_F(SupervisorTest, StartsInMilliseconds) {
  Start("");
  ASSERT_OK(supervisor_->Describe());
  absl::Duration best = absl::InfiniteDuration();
  for (int i = 0; i < 5; ++i) {
    supervisor_->Stop();
    const absl::Time start = absl::Now();
    ASSERT_OK(supervisor_->Describe());
    best = std::min(best, absl::Now() - start);
  }
  RecordProperty("start_us", static_cast<int>(absl::ToInt64Microseconds(best)));
  EXPECT_LT(best, absl::Milliseconds(200)) << "a quiet machine needs a tenth of this";
}

TEST_F(SupervisorTest, WhatCannotStartIsSaid) {
  SupervisorOptions options;
  options.command = {"/nowhere/phobosd"};
  supervisor_ = Supervisor::Create(options);
  EXPECT_THAT(supervisor_->Describe(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("/nowhere/phobosd")));
  options.command = {"/bin/true"};
  supervisor_ = Supervisor::Create(options);
  EXPECT_THAT(supervisor_->Describe(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("exit status 0")));
  options = Options("nonsense");
  supervisor_ = Supervisor::Create(options);
  EXPECT_THAT(supervisor_->Describe(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cannot read the line")));
}

TEST_F(SupervisorTest, MemoryThatCouldShrinkIsRefused) {
  Start("");
  const Fd unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_THAT(supervisor_->Begin(JobSetup(), {{unsealed.get(), 4096}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace phobos::worker
