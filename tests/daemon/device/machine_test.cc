// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cpu/machine.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/status_matchers.h"

namespace phobos::device {
namespace {

using ::phobos::testing::StatusIs;

class MachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_.path = absl::StrCat(::testing::TempDir(), "/machine-", getpid());
    std::filesystem::remove_all(root_.path);
    Write("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\n");
    Write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some  CPU   @ 3 GHz\n");
  }

  void Write(const std::string& path, const std::string& text) {
    const std::string whole = root_.path + path;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    std::ofstream(whole) << text;
  }

  void WriteCache(int index, const std::string& level, const std::string& type,
                  const std::string& size) {
    const std::string folder = absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    Write(folder + "level", level + "\n");
    Write(folder + "type", type + "\n");
    Write(folder + "size", size + "\n");
  }

  MachineRoot root_;
};

TEST_F(MachineTest, LastLevelCacheIsTheHighestThatHoldsData) {
  EXPECT_EQ(LastLevelCacheBytes(root_), std::nullopt);
  WriteCache(0, "1", "Data", "48K");
  WriteCache(1, "1", "Instruction", "32K");
  WriteCache(2, "2", "Unified", "1024K");
  EXPECT_EQ(LastLevelCacheBytes(root_), 1 << 20);
  WriteCache(3, "3", "Unified", "32M");
  WriteCache(4, "4", "Unified", "unknown");
  EXPECT_EQ(LastLevelCacheBytes(root_), 32 << 20);
}

TEST_F(MachineTest, Memory) {
  ASSERT_OK_AND_ASSIGN(const Memory memory, ReadMemory(root_));
  EXPECT_EQ(memory.total_bytes, 1000 << 10);
  EXPECT_EQ(memory.available_bytes, 600 << 10);
  Write("/proc/meminfo", "nothing\n");
  EXPECT_THAT(ReadMemory(root_), StatusIs(absl::StatusCode::kUnavailable));
}

// Of 1000 kB, 600 are free on the machine.
TEST_F(MachineTest, AGroupsLimitCountsWhereItIsSmaller) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  const std::string group = "/sys/fs/cgroup/a";
  Write(group + "/b/memory.max", "max\n");
  Write(group + "/b/memory.current", "1000\n");
  ASSERT_OK_AND_ASSIGN(Memory memory, ReadMemory(root_));
  EXPECT_EQ(memory.available_bytes, 600 << 10);
  // A limit of the group above; of its pages 50000 are files' that nobody uses.
  Write(group + "/memory.max", "500000\n");
  Write(group + "/memory.current", "400000\n");
  Write(group + "/memory.stat", "anon 1\ninactive_file 50000\n");
  ASSERT_OK_AND_ASSIGN(memory, ReadMemory(root_));
  EXPECT_EQ(memory.total_bytes, 500000);
  EXPECT_EQ(memory.available_bytes, 150000);
  // Over its limit already.
  Write(group + "/memory.current", "600000\n");
  ASSERT_OK_AND_ASSIGN(memory, ReadMemory(root_));
  EXPECT_EQ(memory.available_bytes, 0);
}

TEST_F(MachineTest, AGroupOfVersion1InAContainer) {
  Write("/proc/self/cgroup", "5:devices:/\n4:hugetlb,memory:/docker/abc\n0::/\n");
  // The folder is the container's own: the path is not below it.
  const std::string folder = "/sys/fs/cgroup/memory";
  Write(folder + "/memory.limit_in_bytes", "9223372036854771712\n");
  Write(folder + "/memory.usage_in_bytes", "1000\n");
  ASSERT_OK_AND_ASSIGN(Memory memory, ReadMemory(root_));
  EXPECT_EQ(memory.total_bytes, 1000 << 10);
  EXPECT_EQ(memory.available_bytes, 600 << 10);
  Write(folder + "/memory.limit_in_bytes", "300000\n");
  Write(folder + "/memory.stat", "inactive_file 7\ntotal_inactive_file 500\n");
  ASSERT_OK_AND_ASSIGN(memory, ReadMemory(root_));
  EXPECT_EQ(memory.available_bytes, 300000 - 500);
}

TEST_F(MachineTest, ProcessorName) {
  EXPECT_EQ(ProcessorName(root_), "Some CPU @ 3 GHz");
  Write("/proc/cpuinfo", "processor : 0\n");
  EXPECT_EQ(ProcessorName(root_), "unknown processor");
}

TEST_F(MachineTest, FlushIsTwiceTheCacheUpToACap) {
  EXPECT_EQ(FlushBytes(32 << 20, 1 << 20), 64 << 20);
  EXPECT_EQ(FlushBytes(int64_t{1} << 30, 1 << 20), 256 << 20);
}

// A small cache is flushed too, an odd one whole.
TEST_F(MachineTest, FlushIsWholeBlocks) {
  EXPECT_EQ(FlushBytes(256 << 10, 1 << 20), 1 << 20);
  EXPECT_EQ(FlushBytes((1 << 20) + (1 << 18), 1 << 20), 3 << 20);
}

// On a machine that tells both ways they agree.
TEST(RealMachine, SysfsAndCpuidAgree) {
  const auto sysfs = LastLevelCacheBytes(MachineRoot());
  const auto cpuid = LastLevelCacheBytesByCpuid();
  if (!sysfs.has_value() || !cpuid.has_value()) GTEST_SKIP() << "this machine does not tell";
  EXPECT_EQ(*sysfs, *cpuid);
}

}  // namespace
}  // namespace phobos::device
