// SPDX-License-Identifier: Apache-2.0
//
// What the linker keeps, on disk and of answers that nobody takes, on the stand-in driver.
#include "daemon/device/cuda/linker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cache/artifact_store.h"
#include "client/launch/cuda/driver.h"
#include "tests/gpu/fake_driver/in_process.h"
#include "tests/status_matchers.h"

namespace phobos::device {
namespace {

namespace cuda = launch::cuda;
namespace fs = std::filesystem;
using ::phobos::testing::StatusIs;

// Links one after the other.
struct Bench {
  std::shared_ptr<const cuda::CudaDriver> driver = *cuda::CudaDriver::Load();
  cuda::Context context = Retain();
  Linker linker{driver, context, 1};

  cuda::Context Retain() {
    cuda::Context taken = nullptr;
    EXPECT_EQ((*driver)->retain_context(&taken, 0), cuda::kSuccess);
    return taken;
  }
};

// A file of PTX with so many bytes on top.
std::string WritePtx(const std::string& path, size_t bytes = 0) {
  std::ofstream(path) << fake::Ptx("add", 0, "") << "// " << std::string(bytes, 'x') << "\n";
  return path;
}

TEST(LinkerTest, AnswersThatNobodyTakesAreLetGo) {
  const auto calls = fake::InProcess("", [] {
    Bench bench;
    std::vector<std::string> paths;
    for (int i = 0; i < 40; ++i) {
      paths.push_back(WritePtx(fake::Temporary(std::to_string(i) + ".ptx"), 1 << 20));
      bench.linker.Expect(paths.back(), "");
    }
    ASSERT_OK(bench.linker.Take(paths.back(), ""));  // all are linked now
    EXPECT_OK(bench.linker.Take(paths[20], ""));     // one that is there yet
    EXPECT_OK(bench.linker.Take(paths[0], ""));      // one that is not
    for (const std::string& path : paths) remove(path.c_str());
  });
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuLinkComplete"), 41);
}

TEST(LinkerTest, AnErrorThatNobodyTookIsLookedIntoAgain) {
  fake::InProcess("", [] {
    Bench bench;
    const std::string late = fake::Temporary("late.ptx");
    const std::string other = WritePtx(fake::Temporary("other.ptx"));
    bench.linker.Expect(late, "");
    bench.linker.Expect(other, "");
    ASSERT_OK(bench.linker.Take(other, ""));
    WritePtx(late);
    bench.linker.Expect(late, "");
    EXPECT_OK(bench.linker.Take(late, ""));
    EXPECT_THAT(bench.linker.Take("/nowhere/kernel.ptx", ""),
                StatusIs(absl::StatusCode::kNotFound));
    // It can be opened, and not read.
    EXPECT_THAT(bench.linker.Take(::testing::TempDir(), ""),
                StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr("Is a directory")));
  });
}

// Links, and is killed by the system in the middle of writing the cubin.
[[noreturn]] void DieWriting(const std::string& ptx, const std::string& cubin) {
  unsetenv("PHOBOS_FAKE_CUDA_TRACE");
  Bench bench;
  const rlimit few = {100, 100};
  setrlimit(RLIMIT_FSIZE, &few);
  signal(SIGXFSZ, SIG_DFL);
  bench.linker.Take(ptx, cubin).IgnoreError();
  _exit(0);
}

TEST(LinkerTest, WhatADyingProcessLeavesIsCleanedUp) {
  std::string folder = ::testing::TempDir() + "/kernels-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  fake::InProcess("", [&] {
    const std::string ptx = WritePtx(folder + "/kernel.ptx");
    const pid_t dying = fork();
    if (dying == 0) DieWriting(ptx, folder + "/kernel.cubin");
    int status = 0;
    ASSERT_EQ(waitpid(dying, &status, 0), dying);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
  });
  int left = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    ++left;
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  ASSERT_EQ(left, 2) << "the PTX, and what was begun";
  ASSERT_OK(cache::ArtifactStore::Open(folder));
  std::vector<std::string> names;
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    names.push_back(file.path().filename().string());
  }
  EXPECT_EQ(names, std::vector<std::string>{"kernel.ptx"});
}

}  // namespace
}  // namespace phobos::device
