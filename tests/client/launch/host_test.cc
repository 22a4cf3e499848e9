// SPDX-License-Identifier: Apache-2.0
#include "client/launch/host.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/sanitizer.h"

namespace phobos::launch {
namespace {

std::string ArtifactPath() {
  return std::string(getenv("TEST_SRCDIR")) + "/" + getenv("TEST_WORKSPACE") +
         "/tests/client/launch/artifact.so";
}

std::unique_ptr<HostKernel> LoadKernel(const std::string& entry, int64_t scratch_bytes = 0) {
  auto kernel = HostKernel::Load(ArtifactPath(), entry, scratch_bytes, {});
  EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  return *std::move(kernel);
}

// One launch of `count`: how often each block ran and on which thread.
struct Counted {
  std::vector<int32_t> counts;
  std::vector<int64_t> threads;

  bool EachOnce() const {
    for (const int32_t count : counts) {
      if (count != 1) return false;
    }
    return true;
  }
  std::set<int64_t> Threads() const { return {threads.begin(), threads.end()}; }
};

Counted Count(HostPool& pool, const HostKernel& kernel, const Grid& grid, int64_t block_ns = 0) {
  const size_t blocks = static_cast<size_t>(*BlockCount(grid));
  Counted counted = {std::vector<int32_t>(blocks), std::vector<int64_t>(blocks)};
  const uint64_t slots[3] = {reinterpret_cast<uint64_t>(counted.counts.data()),
                             reinterpret_cast<uint64_t>(counted.threads.data()),
                             static_cast<uint64_t>(block_ns)};
  pool.Run(kernel, slots, grid);
  return counted;
}

TEST(BlockCount, MultipliesAndRefuses) {
  EXPECT_EQ(*BlockCount({3, 4, 5}), 60);
  EXPECT_EQ(*BlockCount({0, 4, 5}), 0);
  EXPECT_EQ(*BlockCount({1, 65535, 65535}), int64_t{65535} * 65535);
  EXPECT_EQ(*BlockCount({(int64_t{1} << 31) - 1, 65535, 65535}),
            ((int64_t{1} << 31) - 1) * 65535 * 65535);
  for (const Grid& grid : {Grid{-1, 1, 1}, Grid{1, -1, 1}, Grid{1, 65536, 1}, Grid{1, 1, 65536},
                           Grid{int64_t{1} << 31, 1, 1}}) {
    const auto blocks = BlockCount(grid);
    ASSERT_FALSE(blocks.ok());
    EXPECT_EQ(blocks.status().code(), Code::kInvalidArgument);
    EXPECT_NE(blocks.status().message().find(std::to_string(grid.x)), std::string::npos);
  }
}

TEST(HostKernel, LoadFailuresNameTheCause) {
  const auto no_file = HostKernel::Load("/nonexistent/kernel.so", "count", 0, {});
  EXPECT_EQ(no_file.status().code(), Code::kNotFound);
  EXPECT_NE(no_file.status().message().find("/nonexistent/kernel.so"), std::string::npos);

  const auto no_symbol = HostKernel::Load(ArtifactPath(), "absent", 0, {});
  EXPECT_EQ(no_symbol.status().code(), Code::kNotFound);
  EXPECT_NE(no_symbol.status().message().find("absent"), std::string::npos);

  EXPECT_EQ(HostKernel::Load("/proc/self/stat", "count", 0, {}).status().code(), Code::kInternal);
}

TEST(HostKernel, ChecksProcessorFeatures) {
  EXPECT_TRUE(HostKernel::Load(ArtifactPath(), "count", 0, {"sse4.2", "64bit", "cmov"}).ok());
  // Everything that an artifact for x86-64-v3 lists; every machine that we run on has it.
  const auto v3 = HostKernel::Load(ArtifactPath(), "count", 0,
                                   {"avx", "avx2", "bmi", "bmi2", "crc32", "f16c", "fma", "lzcnt",
                                    "movbe", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"});
  EXPECT_TRUE(v3.ok()) << v3.status().message();
  const auto lacking = HostKernel::Load(ArtifactPath(), "count", 0, {"sse4.2", "warp-drive"});
  ASSERT_FALSE(lacking.ok());
  EXPECT_EQ(lacking.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(lacking.status().message().find("warp-drive"), std::string::npos);
  EXPECT_EQ(lacking.status().message().find("sse4.2"), std::string::npos);
}

TEST(DefaultThreads, ObeysTheEnvironment) {
  unsetenv("PHOBOS_THREADS");
  const int own = DefaultThreads();
  EXPECT_GE(own, 1);
  setenv("PHOBOS_THREADS", "7", 1);
  EXPECT_EQ(DefaultThreads(), 7);
  setenv("PHOBOS_THREADS", "many", 1);
  EXPECT_EQ(DefaultThreads(), own);
  unsetenv("PHOBOS_THREADS");
}

TEST(HostPool, RunsEveryBlockOnce) {
  const auto kernel = LoadKernel("count");
  for (const int threads : {1, 2, 3, 8}) {
    HostPool pool(threads);
    for (const Grid& grid : {Grid{1, 1, 1}, Grid{2, 1, 1}, Grid{3, 1, 1}, Grid{7, 5, 3},
                             Grid{64, 1, 1}, Grid{1000, 1, 1}, Grid{100003, 1, 1}}) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        EXPECT_TRUE(Count(pool, *kernel, grid).EachOnce()) << threads << " threads, x=" << grid.x;
      }
    }
  }
}

TEST(HostPool, HandsTheGridToTheKernel) {
  const auto kernel = LoadKernel("sides");
  HostPool pool(2);
  std::vector<int64_t> sides(3);
  const uint64_t slots[1] = {reinterpret_cast<uint64_t>(sides.data())};
  pool.Run(*kernel, slots, {4, 3, 2});
  EXPECT_EQ(sides, (std::vector<int64_t>{4, 3, 2}));
}

TEST(HostPool, OneBlockRunsOnTheCaller) {
  const auto kernel = LoadKernel("count");
  HostPool pool(4);
  EXPECT_EQ(Count(pool, *kernel, {1, 1, 1}).Threads(), std::set<int64_t>{syscall(SYS_gettid)});
}

TEST(HostPool, LongBlocksAreShared) {
  const auto kernel = LoadKernel("count");
  HostPool pool(4);
  const Counted counted = Count(pool, *kernel, {16, 1, 1}, 5000000);
  EXPECT_TRUE(counted.EachOnce());
  EXPECT_GE(counted.Threads().size(), 2u);
}

TEST(HostPool, TinyLaunchesWakeNobody) {
  const auto kernel = LoadKernel("count");
  HostPool pool(4);
  Count(pool, *kernel, {8, 1, 1});
  // A loaded machine may make one launch look long; then the next is shared. Most must not be.
  int alone = 0;
  for (int i = 0; i < 200; ++i) {
    const Counted counted = Count(pool, *kernel, {8, 1, 1});
    EXPECT_TRUE(counted.EachOnce());
    if (counted.Threads() == std::set<int64_t>{syscall(SYS_gettid)}) ++alone;
  }
  EXPECT_GE(alone, 150);
}

TEST(HostPool, ALaunchThatTurnsOutLongIsShared) {
  const auto kernel = LoadKernel("count");
  HostPool pool(4);
  for (int i = 0; i < 20; ++i) Count(pool, *kernel, {16, 1, 1});
  const Counted counted = Count(pool, *kernel, {16, 1, 1}, 5000000);
  EXPECT_TRUE(counted.EachOnce());
  EXPECT_GE(counted.Threads().size(), 2u);
}

TEST(HostPool, ScratchIsEachParticipantsOwn) {
  const auto kernel = LoadKernel("scratch", 256);
  HostPool pool(4);
  int32_t faults = 0;
  const uint64_t slots[1] = {reinterpret_cast<uint64_t>(&faults)};
  for (int i = 0; i < 50; ++i) pool.Run(*kernel, slots, {1 + i * 7, 1, 1});
  EXPECT_EQ(faults, 0);
}

TEST(HostPool, LaunchesFromManyThreadsTakeTurns) {
  const auto kernel = LoadKernel("count");
  const auto with_scratch = LoadKernel("scratch", 256);
  HostPool pool(3);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      int32_t faults = 0;
      const uint64_t slots[1] = {reinterpret_cast<uint64_t>(&faults)};
      for (int i = 0; i < 200; ++i) {
        if (!Count(pool, *kernel, {1 + (caller * 31 + i) % 97, 1, 1}).EachOnce()) ++wrong;
        pool.Run(*with_scratch, slots, {1 + i % 5, 1, 1});
      }
      if (faults != 0) ++wrong;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(HostPool, ForkedChildStartsItsOwnThreads) {
  if (RunsUnder("tsan")) {
    GTEST_SKIP() << "threads after a fork of a threaded process are beyond ThreadSanitizer";
  }
  const auto kernel = LoadKernel("count");
  HostPool pool(4);
  std::atomic<bool> stop = false;
  // The parent is inside a launch, with the pool's lock held, at most forks.
  std::thread busy([&] {
    while (!stop) Count(pool, *kernel, {64, 1, 1}, 10000);
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const Counted counted = Count(pool, *kernel, {16, 1, 1}, 1000000);
      _exit(counted.EachOnce() && counted.Threads().size() >= 2 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
  EXPECT_TRUE(Count(pool, *kernel, {64, 1, 1}).EachOnce());
}

}  // namespace
}  // namespace phobos::launch
