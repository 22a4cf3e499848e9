// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cpu/cpu_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/device/open.h"
#include "tests/status_matchers.h"

namespace phobos::device {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::HasSubstr;

KernelFile Kernel(const std::string& entry) {
  KernelFile file;
  file.path = absl::StrCat(getenv("TEST_SRCDIR"), "/", getenv("TEST_WORKSPACE"),
                           "/tests/daemon/artifacts/kernels.so");
  file.artifact.set_entry(entry);
  return file;
}

class CpuDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = Open("cpu");
    ASSERT_OK(device);
    device_ = *std::move(device);
  }

  // x, y and out of n floats each, one behind the other.
  std::vector<uint64_t> Tensors(int64_t n) {
    auto base = device_->Reserve(3 * n * 4, /*flush=*/true);
    EXPECT_OK(base);
    std::vector<float> ones(static_cast<size_t>(n), 1.0f);
    std::vector<uint64_t> slots;
    for (int64_t i = 0; i < 3; ++i) {
      std::byte* tensor = *base + i * n * 4;
      EXPECT_OK(device_->Copy(tensor, reinterpret_cast<const std::byte*>(ones.data()), n * 4));
      slots.push_back(reinterpret_cast<uint64_t>(tensor));
    }
    EXPECT_OK(device_->Finish([](size_t) {}));
    slots.push_back(static_cast<uint64_t>(n));
    return slots;
  }

  static tuner::v1::Grid Blocks(int64_t n) {
    tuner::v1::Grid grid;
    grid.set_x((n + 1023) / 1024);
    grid.set_y(1);
    grid.set_z(1);
    return grid;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(CpuDeviceTest, DescribesTheHost) {
  const tuner::v1::Device& device = device_->description().device;
  EXPECT_EQ(device.uuid(), "host");
  EXPECT_THAT(device.card_name(), HasSubstr(absl::StrCat(", ", device.threads(), " thread")));
  EXPECT_THAT(device.chip(), HasSubstr("x86-64-v"));
  EXPECT_GT(device.flush_bytes(), 1 << 20);
  EXPECT_GT(device.memory_bytes(), int64_t{1} << 28);
  EXPECT_THAT(device.driver(), HasSubstr("Linux "));
  EXPECT_GT(device_->description().timer_resolution_ns, 0);
  EXPECT_LT(device_->description().timer_resolution_ns, 100'000);
}

TEST_F(CpuDeviceTest, LaunchesAndTimes) {
  constexpr int64_t kN = 100'000;
  const std::vector<uint64_t> slots = Tensors(kN);
  ASSERT_OK_AND_ASSIGN(const auto kernel, device_->Load(Kernel("add")));
  ASSERT_OK(device_->Launch(*kernel, slots, Blocks(kN)));
  ASSERT_OK(device_->Launch(*kernel, slots, Blocks(kN)));
  ASSERT_OK_AND_ASSIGN(const Outcome outcome, device_->Finish([](size_t) {}));
  ASSERT_EQ(outcome.samples_ns.size(), 2u);
  EXPECT_GT(outcome.samples_ns[0], 0);
  ASSERT_OK_AND_ASSIGN(const std::byte* bytes,
                       device_->Read(reinterpret_cast<const std::byte*>(slots[2]), kN * 4));
  const auto* out = reinterpret_cast<const float*>(bytes);
  EXPECT_EQ(std::count(out, out + kN, 2.0f), kN);
  ASSERT_OK_AND_ASSIGN(const Outcome nothing, device_->Finish([](size_t) {}));
  EXPECT_TRUE(nothing.samples_ns.empty());
}

// Inputs that fit the cache are read from memory after a flush: much slower than without one.
TEST_F(CpuDeviceTest, FlushEmptiesTheCache) {
  constexpr int64_t n = 40'000;  // 480 kB: within one core's own cache
  const std::vector<uint64_t> slots = Tensors(n);
  ASSERT_OK_AND_ASSIGN(const auto kernel, device_->Load(Kernel("add")));
  int64_t cold = INT64_MAX, warm = INT64_MAX;
  // So many rounds that each is seen at its best, also on a busy machine.
  for (int i = 0; i < 60; ++i) {
    ASSERT_OK(device_->Flush());
    for (int k = 0; k < 3; ++k) ASSERT_OK(device_->Launch(*kernel, slots, Blocks(n)));
    ASSERT_OK_AND_ASSIGN(const Outcome outcome, device_->Finish([](size_t) {}));
    cold = std::min(cold, outcome.samples_ns[0]);
    warm = std::min({warm, outcome.samples_ns[1], outcome.samples_ns[2]});
  }
  RecordProperty("cold_ns", static_cast<int>(cold));
  RecordProperty("warm_ns", static_cast<int>(warm));
  EXPECT_GT(static_cast<double>(cold), 1.5 * static_cast<double>(warm));
}

TEST_F(CpuDeviceTest, ReserveRefusesWhatDoesNotFit) {
  EXPECT_THAT(device_->Reserve(int64_t{1} << 50, false),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1125899906842624 bytes")));
  EXPECT_THAT(device_->Flush(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// A second job of no more than the first one's size gets the same, warm memory.
TEST_F(CpuDeviceTest, ReserveKeepsMemory) {
  ASSERT_OK_AND_ASSIGN(std::byte * first, device_->Reserve(8 << 20, true));
  first[123] = std::byte{77};
  ASSERT_OK_AND_ASSIGN(std::byte * second, device_->Reserve(1 << 20, true));
  EXPECT_EQ(second, first);
  EXPECT_EQ(second[123], std::byte{77});
  ASSERT_OK_AND_ASSIGN(std::byte * third, device_->Reserve(16 << 20, true));
  memset(third, 1, 16 << 20);
}

TEST_F(CpuDeviceTest, MemoryHasGuards) {
  ASSERT_OK_AND_ASSIGN(std::byte * base, device_->Reserve(2 << 20, false));
  EXPECT_DEATH(*static_cast<volatile std::byte*>(base - 1) = std::byte{1}, "");
  EXPECT_DEATH(*static_cast<volatile std::byte*>(base + (2 << 20)) = std::byte{1}, "");
}

TEST_F(CpuDeviceTest, LoadErrorsAreTold) {
  KernelFile file = Kernel("add");
  file.artifact.add_cpu_features("no-such-feature");
  EXPECT_THAT(device_->Load(file),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no-such-feature")));
  EXPECT_THAT(device_->Load(Kernel("missing")), StatusIs(absl::StatusCode::kNotFound));
  file = Kernel("add");
  file.artifact.set_scratch_bytes(int64_t{1} << 50);
  EXPECT_THAT(device_->Load(file), StatusIs(absl::StatusCode::kResourceExhausted));
}

// The names that LLVM gives to what every x86-64-v3 processor has, under which Linux lists some
// otherwise.
TEST_F(CpuDeviceTest, TheChipsOwnFeaturesAreThere) {
  KernelFile file = Kernel("add");
  for (const char* feature : {"avx", "avx2", "bmi", "bmi2", "crc32", "f16c", "fma", "lzcnt",
                              "movbe", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}) {
    file.artifact.add_cpu_features(feature);
  }
  EXPECT_OK(device_->Load(file));
}

TEST_F(CpuDeviceTest, ScratchIsThere) {
  const std::vector<uint64_t> slots = Tensors(5000);
  KernelFile file = Kernel("with_scratch");
  file.artifact.set_scratch_bytes(64);
  ASSERT_OK_AND_ASSIGN(const auto kernel, device_->Load(file));
  EXPECT_OK(device_->Launch(*kernel, slots, Blocks(5000)));
}

TEST(Open, Names) {
  EXPECT_OK(Open("cpu:1048576"));
  for (const char* name : {"", "gpu", "cpu:", "cpu:x", "cpu:-1"}) {
    EXPECT_THAT(Open(name), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
  }
  EXPECT_THAT(Open("fake:/no/such/file"), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace phobos::device
