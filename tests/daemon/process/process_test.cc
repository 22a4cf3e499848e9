// SPDX-License-Identifier: Apache-2.0
//
// Sockets, the cache's folder and lock, readiness, the card's lock.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/process/cache_folder.h"
#include "daemon/process/ready.h"
#include "daemon/process/self.h"
#include "daemon/process/socket.h"
#include "daemon/process/timing_lock.h"
#include "tests/status_matchers.h"

namespace phobos::process {
namespace {

using ::phobos::testing::IsOk;
using ::phobos::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest() {
    folder_ = "/tmp/phobos-process-XXXXXX";  // short: a socket's path has 107 bytes at most
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~ProcessTest() override { std::filesystem::remove_all(folder_); }

  static mode_t ModeOf(const std::string& path) {
    struct stat found = {};
    EXPECT_EQ(lstat(path.c_str(), &found), 0) << path;
    return found.st_mode & 07777;
  }

  std::string folder_;
};

TEST_F(ProcessTest, APrivateFolderIsMadeForTheUserAlone) {
  const std::string path = folder_ + "/mine";
  ASSERT_THAT(PreparePrivateFolder(path, "go"), IsOk());
  EXPECT_EQ(ModeOf(path), 0700);
  EXPECT_THAT(PreparePrivateFolder(path, "go"), IsOk());
}

TEST_F(ProcessTest, AFolderOpenToOthersIsRefusedWithTheRemedy) {
  const std::string ours = absl::StrCat(folder_, "/phobos-", geteuid());
  ASSERT_EQ(mkdir(ours.c_str(), 0700), 0);
  for (const mode_t mode : {0750, 0701, 01777}) {
    ASSERT_EQ(chmod(ours.c_str(), mode), 0);
    EXPECT_THAT(PreparePrivateFolder(ours, "go"),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr(absl::StrCat("; run: chmod 700 ", ours, ", or go"))));
  }
}

// /tmp, say, of which the rights are everybody's to need.
TEST_F(ProcessTest, AFolderThatOthersMayNeedIsNotToBeChanged) {
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  EXPECT_THAT(PreparePrivateFolder(folder_, "go"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("is open to other users; go"), Not(HasSubstr("chmod")))));
  EXPECT_THAT(
      Listen(folder_ + "/s", /*is_private=*/true),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("mkdir -m 700 DIR"), HasSubstr("PHOBOS_SOCKET=DIR/tuner.sock"))));
  chmod(folder_.c_str(), 0700);
}

TEST_F(ProcessTest, ALinkOrAFileIsNoFolder) {
  ASSERT_EQ(symlink(folder_.c_str(), (folder_ + "/link").c_str()), 0);
  EXPECT_THAT(PreparePrivateFolder(folder_ + "/link", "go"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  std::ofstream(folder_ + "/file") << "x";
  EXPECT_THAT(PreparePrivateFolder(folder_ + "/file", "go"),
              StatusIs(absl::StatusCode::kFailedPrecondition, Not(HasSubstr("remove"))));
}

TEST_F(ProcessTest, SomebodyElsesFolderIsRefused) {
  // Root can give a folder away, but not in a sandbox of its own.
  const bool is_given = chown(folder_.c_str(), 12345, 12345) == 0;
  const std::string theirs = is_given ? folder_ : "/usr";
  struct stat found = {};
  ASSERT_EQ(stat(theirs.c_str(), &found), 0);
  if (found.st_uid == geteuid()) GTEST_SKIP() << "no folder of another user is here";
  EXPECT_THAT(
      PreparePrivateFolder(theirs, "go"),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr(absl::StrCat("uid ", found.st_uid)), Not(HasSubstr("remove")))));
}

TEST_F(ProcessTest, ListensForTheUserAlone) {
  const std::string path = folder_ + "/s";
  const absl::StatusOr<Fd> listener = Listen(path, /*is_private=*/true);
  ASSERT_THAT(listener, IsOk());
  EXPECT_EQ(ModeOf(path), 0600);
  EXPECT_EQ(BoundPath(listener->get()), path);
  EXPECT_TRUE(IsServed(path));
  EXPECT_THAT(Listen(path, true), StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(path)));
}

TEST_F(ProcessTest, ASystemSocketIsForTheGroup) {
  const std::string path = folder_ + "/s";
  ASSERT_THAT(Listen(path, /*is_private=*/false), IsOk());
  EXPECT_EQ(ModeOf(path), 0660);
}

TEST_F(ProcessTest, AStaleSocketIsReplaced) {
  const std::string path = folder_ + "/s";
  { ASSERT_THAT(Listen(path, true), IsOk()); }
  EXPECT_EQ(access(path.c_str(), F_OK), 0);  // the file is left behind, as by a killed daemon
  EXPECT_FALSE(IsServed(path));
  EXPECT_THAT(Listen(path, true), IsOk());
}

TEST_F(ProcessTest, WhatIsNoSocketIsLeftAlone) {
  const std::string path = folder_ + "/notes";
  std::ofstream(path) << "x";
  EXPECT_THAT(Listen(path, true), StatusIs(absl::StatusCode::kFailedPrecondition,
                                           AllOf(HasSubstr(path), HasSubstr("is no socket"))));
  EXPECT_EQ(std::filesystem::file_size(path), 1);
  const std::string link = folder_ + "/link";
  std::filesystem::create_symlink(path, link);
  EXPECT_THAT(Listen(link, true), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST_F(ProcessTest, APathThatDoesNotFitIsRefused) {
  EXPECT_THAT(Listen(folder_ + "/" + std::string(200, 's'), false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("longer")));
}

TEST_F(ProcessTest, InheritsSystemdsSockets) {
  const auto none = InheritedSockets([](const char*) { return std::string(); });
  ASSERT_THAT(none, IsOk());
  EXPECT_TRUE(none->empty());
  const auto others = InheritedSockets([](const char*) { return std::string("1"); });
  ASSERT_THAT(others, IsOk());
  EXPECT_TRUE(others->empty());
  // In a child, where descriptor 3 can be what we want.
  const std::string path = folder_ + "/s";
  const auto in_child = [&](bool is_listening) {
    const pid_t child = fork();
    if (child == 0) {
      const absl::StatusOr<Fd> listener = Listen(path, true);
      const int plain = open("/dev/null", O_RDONLY);
      dup2(is_listening ? listener->get() : plain, 3);
      const auto sockets = InheritedSockets([](const char* name) {
        return std::string(name) == "LISTEN_PID" ? absl::StrCat(getpid()) : "1";
      });
      const bool is_good = is_listening ? sockets.ok() && sockets->size() == 1 &&
                                              BoundPath((*sockets)[0].get()) == path
                                        : absl::IsInvalidArgument(sockets.status());
      _exit(is_good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  };
  EXPECT_EQ(in_child(true), 0);
  EXPECT_EQ(in_child(false), 0);
}

TEST_F(ProcessTest, TheCacheIsWhereItWasAskedFor) {
  const auto chosen = ChooseCacheFolder(folder_ + "/a/b", folder_ + "/instead",
                                        [](const std::string&) { return false; });
  ASSERT_THAT(chosen, IsOk());
  EXPECT_EQ(chosen->path, folder_ + "/a/b");
  EXPECT_EQ(chosen->problem, "");
  EXPECT_TRUE(std::filesystem::is_directory(folder_ + "/a/b"));
}

TEST_F(ProcessTest, ACacheThatCannotBeIsToldWithItsCauseAndARemedy) {
  std::ofstream(folder_ + "/file") << "x";
  std::filesystem::create_directory_symlink(folder_, folder_ + "/link");
  EXPECT_THAT(ChooseCacheFolder(folder_ + "/link/cache", ""), IsOk());
  for (const auto& [path, cause] : std::vector<std::pair<std::string, std::string>>{
           {"/proc/x", "mkdir /proc/x: No such file or directory; "},
           {folder_ + "/file", "file: Not a directory; "},
           {folder_ + "/file/x", "file: Not a directory; "}}) {
    EXPECT_THAT(std::string(ChooseCacheFolder(path, "").status().message()),
                AllOf(HasSubstr(cause), HasSubstr("another --cache-dir")));
  }
  const auto taken = CacheLock::Take(folder_ + "/file", "/s", absl::ZeroDuration());
  EXPECT_THAT(std::string(taken.status().message()), HasSubstr("another --cache-dir"));
}

TEST_F(ProcessTest, ANetworkFileSystemIsAvoidedAndSaid) {
  const std::string wanted = folder_ + "/nfs";
  const auto chosen = ChooseCacheFolder(wanted, folder_ + "/instead",
                                        [&](const std::string& path) { return path == wanted; });
  ASSERT_THAT(chosen, IsOk());
  EXPECT_EQ(chosen->path, folder_ + "/instead");
  EXPECT_EQ(ModeOf(folder_ + "/instead"), 0700);
  EXPECT_THAT(chosen->problem, HasSubstr("network file system"));
}

TEST_F(ProcessTest, OneDaemonACache) {
  const std::string served = folder_ + "/s";
  const absl::StatusOr<Fd> listener = Listen(served, true);
  ASSERT_THAT(listener, IsOk());
  auto lock = CacheLock::Take(folder_, served, absl::ZeroDuration());
  ASSERT_THAT(lock, IsOk());
  EXPECT_EQ(OwnerOf(folder_).pid, getpid());
  EXPECT_THAT(CacheLock::Take(folder_, "/other", absl::Seconds(5)),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       AllOf(HasSubstr(served), HasSubstr(absl::StrCat("kill ", getpid())))));
  EXPECT_EQ(OwnerOf(folder_).socket, served);
  // One that did not write its id: "kill 0" would end the reader's own shell.
  std::ofstream(folder_ + "/LOCK") << served << "\n";
  EXPECT_THAT(CacheLock::Take(folder_, "/other", absl::Seconds(5)),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       AllOf(HasSubstr("end it,"), Not(HasSubstr("kill")))));
}

TEST_F(ProcessTest, ADyingDaemonsLockIsWaitedFor) {
  auto lock = CacheLock::Take(folder_, "/nobody/listens/here", absl::ZeroDuration());
  ASSERT_THAT(lock, IsOk());
  EXPECT_THAT(CacheLock::Take(folder_, "/new", absl::Milliseconds(50)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("fuser")));
  std::thread dying([&] {
    absl::SleepFor(absl::Milliseconds(60));
    lock = absl::CancelledError("gone");
  });
  const auto taken = CacheLock::Take(folder_, "/new", absl::Seconds(20));
  dying.join();
  EXPECT_THAT(taken, IsOk());
  EXPECT_EQ(OwnerOf(folder_).socket, "/new");
}

TEST_F(ProcessTest, ReadyIsOneLine) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  SayError(writing, absl::InternalError("first\nsecond"));
  EXPECT_FALSE(writing.ok());
  char buffer[64] = {};
  EXPECT_GT(read(reading.get(), buffer, sizeof(buffer) - 1), 0);
  EXPECT_STREQ(buffer, "error first second\n");
  SayReady(writing, "/s");  // none: nothing happens
}

TEST_F(ProcessTest, TheCardsLockIsAFileWhereTheFolderIs) {
  const std::atomic<bool> go_on = false;
  auto held = TimingLock::Take(folder_, "GPU-1/../x", go_on);
  ASSERT_THAT(held, IsOk());
  EXPECT_EQ(held->kind(), "flock");
  EXPECT_EQ(access((folder_ + "/GPU-1_.._x").c_str(), F_OK), 0);
  const std::atomic<bool> stopped = true;
  EXPECT_THAT(TimingLock::Take(folder_, "GPU-1/../x", stopped),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(TimingLock::Take(folder_, "GPU-2", stopped), IsOk());
  std::thread other([&] {
    absl::SleepFor(absl::Milliseconds(30));
    held = absl::CancelledError("released");
  });
  int told = 0;
  EXPECT_THAT(TimingLock::Take(folder_, "GPU-1/../x", go_on, [&] { ++told; }), IsOk());
  other.join();
  EXPECT_EQ(told, 1);
  EXPECT_THAT(TimingLock::Take(folder_, "GPU-1/../x", go_on, [&] { ++told; }), IsOk());
  EXPECT_EQ(told, 1) << "nobody had it";
}

TEST_F(ProcessTest, TheCardsLockIsANameWhereItIsNot) {
  const std::atomic<bool> go_on = false;
  const std::string card = absl::StrCat("test-", getpid());
  const auto held = TimingLock::Take(folder_ + "/missing", card, go_on);
  ASSERT_THAT(held, IsOk());
  EXPECT_EQ(held->kind(), "abstract");
  const std::atomic<bool> stopped = true;
  EXPECT_THAT(TimingLock::Take(folder_ + "/missing", card, stopped),
              StatusIs(absl::StatusCode::kCancelled));
}

// All processes must take one and the same lock: where others have a file, a name is no substitute.
TEST_F(ProcessTest, TheCardsLockIsNoneWhereItsFileCannotBeOpened) {
  ASSERT_EQ(symlink("x", (folder_ + "/x").c_str()), 0);  // a loop: nobody can open it
  const std::atomic<bool> stopped = true;
  const auto none = TimingLock::Take(folder_, "x", stopped);
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ(none->kind(), "none");
}

TEST_F(ProcessTest, TheCardsLockMayBeOpenedByAllUsers) {
  const mode_t before = umask(077);
  const std::atomic<bool> stopped = true;
  EXPECT_THAT(TimingLock::Take(folder_, "x", stopped), IsOk());
  umask(before);
  EXPECT_EQ(ModeOf(folder_ + "/x"), 0644);
}

TEST_F(ProcessTest, AKilledHolderFreesTheCard) {
  const std::string card = absl::StrCat("killed-", getpid());
  for (const std::string& folder : {folder_, folder_ + "/missing"}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const std::atomic<bool> go_on = false;
      const auto held = TimingLock::Take(folder, card, go_on);
      if (write(ends[1], "x", 1) != 1 || !held.ok()) _exit(1);
      pause();
      _exit(0);
    }
    char byte = 0;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    const std::atomic<bool> stopped = true;
    EXPECT_THAT(TimingLock::Take(folder, card, stopped), StatusIs(absl::StatusCode::kCancelled));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_THAT(TimingLock::Take(folder, card, stopped), IsOk());
    close(ends[0]);
    close(ends[1]);
  }
}

// In a process of its own, for it changes what a process has one of.
TEST_F(ProcessTest, ChildrensEndsAreKnownWhoeverStartedUs) {
  const pid_t daemon = fork();
  if (daemon == 0) {
    signal(SIGCHLD, SIG_IGN);
    if (!BlockStopSignals().ok()) _exit(1);
    const pid_t child = fork();
    if (child == 0) _exit(3);
    int status = 0;
    _exit(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3 ? 0 : 2);
  }
  int status = -1;
  waitpid(daemon, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(ProcessTest, KnowsItself) {
  EXPECT_GT(ResidentBytes(), 100'000);
  EXPECT_GE(RunnableThreads(), 1) << "this thread runs";
}

}  // namespace
}  // namespace phobos::process
