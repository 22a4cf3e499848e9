// SPDX-License-Identifier: Apache-2.0
//
// Disks that refuse: full, or read-only. Nothing is lost that is readable, and the store goes on.
// Each test runs in a child process, whose limits and rights are its own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/digest.h"
#include "cache/artifact_store.h"
#include "cache/result_store.h"
#include "cache/sqlite_store.h"
#include "tests/cache/store_rows.h"
#include "tests/status_matchers.h"

namespace phobos::cache {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kSkipped = 77;

// Runs `body` in a child; its failures are this test's, and it may leave with kSkipped.
void InChild(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped)
    GTEST_SKIP() << "no right to mount here";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see the child's messages above";
}

// From now on no file of this process grows beyond `bytes`.
void LimitFiles(rlim_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

// Gives up root's right to pass over permission bits.
void ObeyPermissions() {
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct sets[2] = {};
  ASSERT_EQ(syscall(SYS_capget, &header, sets), 0);
  for (const int capability : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
    sets[0].effective &= ~(1U << capability);
    sets[0].permitted &= ~(1U << capability);
  }
  ASSERT_EQ(syscall(SYS_capset, &header, sets), 0);
}

bool HasN(ResultStore& store, int64_t n) {
  const absl::StatusOr<std::optional<Generation>> found = store.Find(AddKey(n).digest);
  EXPECT_OK(found);
  return found.ok() && found->has_value();
}

// Appends until the store has a problem; returns the N of the first generation that went to memory.
int64_t FillUp(ResultStore& store) {
  for (int64_t n = 1; n < 5000; ++n) {
    EXPECT_OK(store.Append(AddKey(n), GenerationAt(n, 20000)));
    if (!store.Health().problem.empty()) return n;
  }
  ADD_FAILURE() << "the disk never refused";
  return 0;
}

// What must hold on a disk that has just refused the generation of N = `refused`.
void ExpectGoesOn(ResultStore& store, int64_t refused, const std::string& path) {
  EXPECT_THAT(store.Health().problem, AllOf(HasSubstr("memory only"), HasSubstr(path)));
  for (int64_t n = 1; n <= refused; ++n) EXPECT_TRUE(HasN(store, n)) << n;
  EXPECT_THAT(store.Append(AddKey(1), GenerationAt(1, 20000)), testing::IsOkAndHolds(2))
      << "numbers go on from the disk's";
  EXPECT_THAT(store.Append(AddKey(1), GenerationAt(1, 20000)), testing::IsOkAndHolds(3));
  EXPECT_OK(store.Remember("kind", "name", std::string(100000, 'v')));
  ASSERT_OK_AND_ASSIGN(const std::optional<std::string> fact, store.Recall("kind", "name"));
  EXPECT_TRUE(fact.has_value());
  std::string token;
  int64_t listed = 0;
  do {
    ASSERT_OK_AND_ASSIGN(const Page page, store.List({}, 7, token));
    listed += static_cast<int64_t>(page.rows.size());
    token = page.next_token;
  } while (!token.empty());
  EXPECT_EQ(listed, refused) << "each key once, from disk or from memory";
}

TEST(FullDisk, KeepsOnAndSavesLater) {
  const std::string path = TestFolder() + "/results.db";
  InChild([&] {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ResultStore> store, OpenSqliteStore(path));
    LimitFiles(1500000);
    const int64_t refused = FillUp(*store);
    EXPECT_GT(refused, 5);
    ExpectGoesOn(*store, refused, path);
    LimitFiles(RLIM_INFINITY);  // room again
    EXPECT_OK(store->Remember("kind", "name", "newer"));
    EXPECT_THAT(store->Recall("kind", "name"),
                testing::IsOkAndHolds(std::optional<std::string>("newer")));
    EXPECT_THAT(store->Append(AddKey(1), GenerationAt(4)), testing::IsOkAndHolds(4));
    EXPECT_EQ(store->Health().problem, "");
    for (int64_t n = 1; n <= refused; ++n) EXPECT_TRUE(HasN(*store, n)) << n;
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ResultStore> again, OpenSqliteStore(path));
    EXPECT_TRUE(HasN(*again, refused)) << "what was refused is on disk now";
    ASSERT_OK_AND_ASSIGN(const std::optional<Generation> first, again->Find(AddKey(1).digest));
    EXPECT_EQ(first->number, 4);
  });
}

// More Results than wait for the disk: the oldest are not saved later, and must not be lost either.
TEST(FullDisk, WhatWasNotSavedStaysInMemory) {
  const std::string path = TestFolder() + "/results.db";
  constexpr int64_t kKeys = 1003;
  InChild([&] {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ResultStore> store, OpenSqliteStore(path));
    LimitFiles(1);
    ASSERT_OK(store->Remember("kind", "name", "value"));
    // Large enough that a save fails after a few of them, not after all.
    for (int64_t n = 1; n <= kKeys; ++n)
      ASSERT_OK(store->Append(AddKey(n), GenerationAt(n, 70000)));
    LimitFiles(RLIM_INFINITY);
    EXPECT_THAT(store->Append(AddKey(kKeys), GenerationAt(1)), testing::IsOkAndHolds(2));
    EXPECT_EQ(store->Health().problem, "");
    EXPECT_THAT(store->Recall("kind", "name"),
                testing::IsOkAndHolds(std::optional<std::string>("value")));
    for (int64_t n = 1; n <= kKeys; ++n) EXPECT_TRUE(HasN(*store, n)) << n;
    {
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ResultStore> again, OpenSqliteStore(path));
      EXPECT_FALSE(HasN(*again, 1)) << "it was saved, so this test shows nothing";
      EXPECT_TRUE(HasN(*again, kKeys));
    }
    EXPECT_THAT(store->Append(AddKey(1), GenerationAt(2)), testing::IsOkAndHolds(2))
        << "numbers go on from those in memory";
    ASSERT_OK_AND_ASSIGN(const StoreStats stats, store->Stats());
    EXPECT_EQ(stats.keys, kKeys);
  });
}

TEST(FullDisk, ATinyFileSystem) {
  const std::string folder = TestFolder();
  InChild([&] {
    // In a mount namespace of its own, so that the mount ends with the child.
    if (unshare(CLONE_NEWNS) != 0 || mount("none", folder.c_str(), "tmpfs", 0, "size=1m") != 0)
      _exit(kSkipped);
    const std::string path = folder + "/results.db";
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ResultStore> store, OpenSqliteStore(path));
    const int64_t refused = FillUp(*store);
    EXPECT_GT(refused, 5);
    ExpectGoesOn(*store, refused, path);
    EXPECT_THAT(store->Health().problem, HasSubstr("full"));
    EXPECT_FALSE(store->Health().is_remembering);
    ASSERT_EQ(mount("none", folder.c_str(), "tmpfs", MS_REMOUNT, "size=16m"), 0);
    EXPECT_OK(store->Append(AddKey(1), GenerationAt(4)));
    EXPECT_EQ(store->Health().problem, "");
    EXPECT_TRUE(store->Health().is_remembering);
    EXPECT_TRUE(HasN(*store, refused));
  });
}

TEST(FullDisk, FromTheStart) {
  const std::string path = TestFolder() + "/results.db";
  InChild([&] {
    LimitFiles(0);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ResultStore> store, OpenSqliteStore(path));
    EXPECT_THAT(store->Health().problem, HasSubstr("memory only"));
    EXPECT_OK(store->Append(AddKey(1), GenerationAt(1)));
    EXPECT_TRUE(HasN(*store, 1));
  });
}

TEST(FullDisk, AnArtifactIsRefusedWhole) {
  const std::string folder = TestFolder();
  const std::string bytes(100000, 'a');
  std::ofstream(folder + "/built.so") << bytes;
  InChild([&] {
    ASSERT_OK_AND_ASSIGN(ArtifactStore store, ArtifactStore::Open(folder + "/kernels"));
    LimitFiles(50000);
    EXPECT_FALSE(store.Adopt(folder + "/built.so", Sha256Hex(bytes), "so").ok());
    EXPECT_THAT(store.Find(Sha256Hex(bytes), "so"), testing::StatusIs(absl::StatusCode::kNotFound));
    EXPECT_TRUE(fs::is_empty(folder + "/kernels")) << "half a file is left";
    LimitFiles(RLIM_INFINITY);
    EXPECT_OK(store.Adopt(folder + "/built.so", Sha256Hex(bytes), "so"));
  });
}

// A folder that may be read only, with a database that was closed properly or whose daemon was
// killed.
class ReadOnlyFolder : public ::testing::TestWithParam<bool> {};

TEST_P(ReadOnlyFolder, IsReadAndGoesOnInMemory) {
  const bool killed = GetParam();
  const std::string folder = TestFolder();
  const std::string path = folder + "/results.db";
  InChild([&] {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<ResultStore> store, OpenSqliteStore(path));
    for (int64_t n = 1; n <= 3; ++n) ASSERT_OK(store->Append(AddKey(n), GenerationAt(n)));
    if (killed) _exit(::testing::Test::HasFailure() ? 1 : 0);
    store.reset();
  });
  EXPECT_EQ(fs::exists(path + "-wal"), killed);
  for (const auto& entry : fs::directory_iterator(folder))
    ASSERT_EQ(chmod(entry.path().c_str(), 0444), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  InChild([&] {
    ObeyPermissions();
    ASSERT_EQ(open((folder + "/probe").c_str(), O_CREAT | O_WRONLY, 0644), -1)
        << "the folder can be written to after all";
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ResultStore> store, OpenSqliteStore(path));
    EXPECT_THAT(
        store->Health().problem,
        AllOf(HasSubstr("memory only"), AnyOf(HasSubstr("read-only"), HasSubstr("readonly"))));
    EXPECT_FALSE(store->Health().is_remembering);
    ExpectGoesOn(*store, 3, path);
  });
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  for (const auto& entry : fs::directory_iterator(folder))
    ASSERT_EQ(chmod(entry.path().c_str(), 0644), 0);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ResultStore> store, OpenSqliteStore(path));
  EXPECT_EQ(store->Health().problem, "");
  EXPECT_TRUE(HasN(*store, 3));
}

INSTANTIATE_TEST_SUITE_P(Databases, ReadOnlyFolder, ::testing::Bool(), [](const auto& info) {
  return info.param ? "AfterAKill" : "ClosedProperly";
});

TEST(ReadOnlyDisk, WithoutADatabase) {
  const std::string folder = TestFolder();
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  InChild([&] {
    ObeyPermissions();
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ResultStore> store,
                         OpenSqliteStore(folder + "/results.db"));
    EXPECT_THAT(store->Health().problem, HasSubstr("memory only"));
    EXPECT_THAT(store->Append(AddKey(1), GenerationAt(1)), testing::IsOkAndHolds(1));
    EXPECT_TRUE(HasN(*store, 1));
    EXPECT_FALSE(HasN(*store, 2));
  });
  chmod(folder.c_str(), 0755);
}

TEST(ReadOnlyDisk, AnArtifactIsStillFound) {
  const std::string folder = TestFolder();
  const std::string bytes = "artifact";
  std::ofstream(folder + "/built.so") << bytes;
  ASSERT_OK_AND_ASSIGN(ArtifactStore store, ArtifactStore::Open(folder + "/kernels"));
  ASSERT_OK(store.Adopt(folder + "/built.so", Sha256Hex(bytes), "so"));
  ASSERT_EQ(chmod((folder + "/kernels").c_str(), 0555), 0);
  InChild([&] {
    ObeyPermissions();
    EXPECT_OK(store.Find(Sha256Hex(bytes), "so"));
    EXPECT_FALSE(store.Adopt(folder + "/built.so", Sha256Hex("other"), "so").ok());
  });
  chmod((folder + "/kernels").c_str(), 0755);
}

}  // namespace
}  // namespace phobos::cache
