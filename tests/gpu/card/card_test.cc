// SPDX-License-Identifier: Apache-2.0
//
// The GPU's device on a real card: what the stand-in driver cannot tell. Prints what it measures,
// a line beginning with "FIGURE" each. Without a card everything is skipped.
#include "client/launch/cuda/card.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/launch/cuda/kernel.h"
#include "daemon/device/cuda/linker.h"
#include "daemon/device/cuda/nvml.h"
#include "daemon/device/device.h"
#include "daemon/device/open.h"
#include "tests/status_matchers.h"

namespace phobos::device {
namespace {

using ::testing::HasSubstr;

namespace cuda = launch::cuda;
using SteadyClock = std::chrono::steady_clock;

void Ignore(size_t) {}

double Microseconds(SteadyClock::time_point since) {
  return std::chrono::duration<double, std::micro>(SteadyClock::now() - since).count();
}

void Figure(const std::string& name, double value, const char* unit) {
  absl::PrintF("FIGURE %-52s %12.3f %s\n", name, value, unit);
}

// A kernel of slots x, y, out, n with that body; %rd1..%rd4 are the slots, %r1 the thread's number
// in the grid.
std::string Ptx(const std::string& body, const std::string& comment = "") {
  return absl::StrCat(
      "// ", comment,
      "\n.version 7.0\n.target sm_75\n.address_size 64\n.visible .entry kernel(.param .u64 a, "
      ".param .u64 b, .param .u64 c, .param .u64 d)\n.maxntid 256, 1, 1\n{\n"
      ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<16>; .reg .f32 %f<8>;\n"
      "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; "
      "ld.param.u64 %rd4, [d];\n"
      "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; "
      "mad.lo.u32 %r1, %r2, %r3, %r4; cvt.u64.u32 %rd5, %r1;\n",
      body, "\nret;\n}\n");
}

// out[i] = x[i] + y[i] of f32, 256 a block.
constexpr char kAdd[] =
    "setp.ge.u64 %p1, %rd5, %rd4; @%p1 bra end; shl.b64 %rd6, %rd5, 2;"
    "add.s64 %rd7, %rd1, %rd6; add.s64 %rd8, %rd2, %rd6; add.s64 %rd9, %rd3, %rd6;"
    "ld.global.f32 %f1, [%rd7]; ld.global.f32 %f2, [%rd8]; add.f32 %f3, %f1, %f2;"
    "st.global.f32 [%rd9], %f3; end:";

// Why nothing can be tested here; empty: it can.
std::string WhyNoCard() {
  const auto driver = cuda::CudaDriver::Load();
  return driver.ok() ? "" : driver.status().message();
}

class CardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoCard(); !why.empty()) GTEST_SKIP() << why;
    auto opened = Open("cuda:0");
    ASSERT_OK(opened);
    device_ = *std::move(opened);
    folder_ = ::testing::TempDir();
  }

  void Reserve(int64_t elements) {
    elements_ = elements;
    ASSERT_OK_AND_ASSIGN(base_, device_->Reserve(3 * elements * 4 + 4096, true));
    const std::vector<float> x(static_cast<size_t>(elements), 1.5f);
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(device_->Copy(Tensor(i), reinterpret_cast<const std::byte*>(x.data()), Bytes()));
    }
    ASSERT_OK(device_->Finish(Ignore));
  }

  std::byte* Tensor(int index) const { return base_ + index * Bytes(); }
  int64_t Bytes() const { return elements_ * 4; }

  KernelFile File(const std::string& ptx) {
    KernelFile file;
    file.path = absl::StrCat(folder_, "/", ++files_, ".", getpid(), ".ptx");
    std::ofstream(file.path) << ptx;
    file.artifact.set_entry("kernel");
    file.artifact.set_threads(256);
    return file;
  }

  std::unique_ptr<Kernel> Load(const std::string& body) {
    auto kernel = device_->Load(File(Ptx(body)));
    EXPECT_OK(kernel);
    return *std::move(kernel);
  }

  absl::Status Launch(const Kernel& kernel) {
    tuner::v1::Grid grid;
    grid.set_x((elements_ + 255) / 256), grid.set_y(1), grid.set_z(1);
    const uint64_t slots[] = {
        reinterpret_cast<uint64_t>(Tensor(0)), reinterpret_cast<uint64_t>(Tensor(1)),
        reinterpret_cast<uint64_t>(Tensor(2)), static_cast<uint64_t>(elements_)};
    return device_->Launch(kernel, slots, grid);
  }

  // The fastest of some launches.
  int64_t Best(const Kernel& kernel, bool flush, int launches = 100) {
    for (int i = 0; i < launches; ++i) {
      if (flush) EXPECT_OK(device_->Flush());
      EXPECT_OK(Launch(kernel));
    }
    auto outcome = device_->Finish(Ignore);
    EXPECT_OK(outcome);
    return *std::min_element(outcome->samples_ns.begin(), outcome->samples_ns.end());
  }

  std::unique_ptr<Device> device_;
  std::byte* base_ = nullptr;
  int64_t elements_ = 0;
  std::string folder_;
  int files_ = 0;
};

TEST_F(CardTest, Describes) {
  const tuner::v1::Device& device = device_->description().device;
  absl::PrintF("card %s %s %s driver %s L2 %d bytes\n", device.uuid(), device.card_name(),
               device.chip(), device.driver(), device.flush_bytes());
  EXPECT_THAT(device.uuid(), HasSubstr("GPU-"));
  EXPECT_THAT(device.driver(), HasSubstr("."));
  EXPECT_GT(device.flush_bytes(), 1 << 20);
  Figure("timer resolution", static_cast<double>(device_->description().timer_resolution_ns), "ns");
  Figure("timer floor", static_cast<double>(device_->description().timer_floor_ns), "ns");
}

TEST_F(CardTest, AddIsRightAndColdIsSlowerThanWarm) {
  Reserve(1 << 20);  // fits the cache
  const auto add = Load(kAdd);
  EXPECT_GT(add->usage.registers, 0);
  const int64_t cold = Best(*add, true), warm = Best(*add, false);
  Figure("add of 2^20, inputs from memory", static_cast<double>(cold), "ns");
  Figure("add of 2^20, inputs in the cache", static_cast<double>(warm), "ns");
  EXPECT_GT(static_cast<double>(cold), 1.2 * static_cast<double>(warm));
  ASSERT_OK_AND_ASSIGN(const std::byte* bytes, device_->Read(Tensor(2), Bytes()));
  const auto* out = reinterpret_cast<const float*>(bytes);
  EXPECT_EQ(std::count(out, out + elements_, 3.0f), elements_);
  Reserve(1 << 24);
  Figure("scalar add of 2^24", static_cast<double>(Best(*add, true)), "ns");
}

TEST_F(CardTest, EmptyKernelFloor) {
  Reserve(256);
  const auto nothing = Load("");
  const int64_t flushed = Best(*nothing, true), fed = Best(*nothing, false);
  const int64_t floor = device_->description().timer_floor_ns;
  Figure("empty kernel after a flush", static_cast<double>(flushed), "ns");
  Figure("empty kernel, stream kept fed", static_cast<double>(fed), "ns");
  // The floor that the device found at its start is what such a kernel takes; a stream that ran dry
  // would have the host's microseconds in it.
  EXPECT_GT(fed, 0);
  EXPECT_LT(fed, 2 * floor);
  EXPECT_GT(2 * fed, floor);
  EXPECT_LT(fed, 10'000);
  EXPECT_LT(flushed, 10'000);
}

TEST_F(CardTest, RoundsAreQuick) {
  Reserve(1 << 24);
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (int i = 0; i < 5; ++i) kernels.push_back(Load(kAdd));
  Best(*kernels[0], true, 2000);  // warm
  const auto start = SteadyClock::now();
  int disturbed = 0;
  for (int round = 0; round < 20; ++round) {
    for (const auto& kernel : kernels) {
      ASSERT_OK(device_->Flush());
      ASSERT_OK(Launch(*kernel));
    }
    ASSERT_OK_AND_ASSIGN(const Outcome outcome, device_->Finish(Ignore));
    if (outcome.disturbed) {
      ++disturbed;
      absl::PrintF("disturbed: %s\n", outcome.disturbance);
    }
  }
  Figure("20 rounds of 5 launches with flush, 2^24", Microseconds(start) / 1000, "ms");
  Figure("disturbed rounds of 20", disturbed, "");
  EXPECT_LE(disturbed, 2);
}

TEST_F(CardTest, FirstDifference) {
  Reserve(1 << 24);
  std::vector<uint8_t> zeros(1);
  for (const int64_t at : {int64_t{0}, int64_t{5}, Bytes() / 3, Bytes() - 1}) {
    const auto before = *device_->Read(Tensor(1) + at, 1);
    const std::byte old = *before, changed = old ^ std::byte{1};
    ASSERT_OK(device_->Copy(Tensor(1) + at, &changed, 1));
    EXPECT_THAT(*device_->FirstDifference(Tensor(0), Tensor(1), Bytes()), at);
    ASSERT_OK(device_->Copy(Tensor(1) + at, &old, 1));
  }
  const auto start = SteadyClock::now();
  EXPECT_EQ(*device_->FirstDifference(Tensor(0), Tensor(1), Bytes()), std::nullopt);
  Figure("comparing 64 MiB on the card", Microseconds(start), "us");
  const auto read = SteadyClock::now();
  ASSERT_OK(device_->Read(Tensor(0), Bytes()));
  Figure("reading 64 MiB, with its first pinning", Microseconds(read), "us");
  const auto again = SteadyClock::now();
  ASSERT_OK(device_->Read(Tensor(0), Bytes()));
  Figure("reading 64 MiB", Microseconds(again), "us");
  std::vector<std::byte> host(static_cast<size_t>(Bytes()));
  const auto upload = SteadyClock::now();
  ASSERT_OK(device_->Copy(Tensor(0), host.data(), Bytes()));
  ASSERT_OK(device_->Finish(Ignore));
  Figure("uploading 64 MiB of pageable memory", Microseconds(upload), "us");
}

TEST_F(CardTest, LinksInParallel) {
  std::vector<KernelFile> files;
  for (int i = 0; i < 32; ++i) files.push_back(File(Ptx(kAdd, absl::StrCat("number ", i))));
  const auto start = SteadyClock::now();
  device_->Expect(files);
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const KernelFile& file : files) {
    auto kernel = device_->Load(file);
    ASSERT_OK(kernel);
    kernels.push_back(*std::move(kernel));
  }
  Figure("linking and loading 32 variants", Microseconds(start) / 1000, "ms");
  kernels.clear();
  const auto again = SteadyClock::now();
  for (const KernelFile& file : files) {
    auto kernel = device_->Load(file);
    ASSERT_OK(kernel);
    kernels.push_back(*std::move(kernel));
  }
  Figure("loading 32 kept cubins", Microseconds(again) / 1000, "ms");
}

// Runs the body in a new process that opens the card itself: it loses the card.
void InChild(const std::function<int()>& body) {
  // Not a fork of this one, which has a driver.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(exit(body()), ::testing::ExitedWithCode(0), "");
}

class FaultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoCard(); !why.empty()) GTEST_SKIP() << why;
  }

  // Launches right, then the body, then right; gives the guilty launch and the error.
  static std::pair<size_t, absl::Status> Break(const std::string& body) {
    auto device = *Open("cuda:0");
    const std::string folder = ::testing::TempDir();
    std::vector<std::unique_ptr<Kernel>> kernels;
    for (const std::string& text : {std::string(kAdd), body}) {
      KernelFile file;
      file.path = absl::StrCat(folder, "/f", kernels.size(), ".", getpid(), ".ptx");
      std::ofstream(file.path) << Ptx(text);
      file.artifact.set_entry("kernel");
      file.artifact.set_threads(256);
      kernels.push_back(*device->Load(file));
    }
    std::byte* base = *device->Reserve(3 << 20, true);
    tuner::v1::Grid grid;
    grid.set_x(4), grid.set_y(1), grid.set_z(1);
    const auto at = reinterpret_cast<uint64_t>(base);
    const uint64_t slots[] = {at, at + 4096, at + 8192, 1024};
    for (const int which : {0, 0, 1, 0}) {
      device->Flush().IgnoreError();
      const absl::Status launched =
          device->Launch(*kernels[static_cast<size_t>(which)], slots, grid);
      if (!launched.ok()) return {99, launched};
    }
    size_t guilty = 99;
    const absl::Status status = device->Finish([&](size_t launch) { guilty = launch; }).status();
    return {guilty, status};
  }
};

TEST_F(FaultTest, IllegalAddress) {
  InChild([] {
    const auto [guilty, status] = Break("mov.u64 %rd7, 16; st.global.u32 [%rd7], %r1;");
    absl::PrintF("%d %s\n", guilty, std::string(status.message()));
    return guilty == 2 && absl::IsAborted(status) ? 0 : 1;
  });
}

TEST_F(FaultTest, MisalignedAddress) {
  InChild([] {
    const auto [guilty, status] = Break("add.s64 %rd7, %rd3, 1; st.global.u32 [%rd7], %r1;");
    absl::PrintF("%d %s\n", guilty, std::string(status.message()));
    return guilty == 2 && absl::IsAborted(status) ? 0 : 1;
  });
}

TEST_F(FaultTest, Trap) {
  InChild([] {
    const auto [guilty, status] = Break("trap;");
    absl::PrintF("%d %s\n", guilty, std::string(status.message()));
    return guilty == 2 && absl::IsAborted(status) ? 0 : 1;
  });
}

// Host time of a launch: ours beside cuLaunchKernel with an array of pointers.
TEST(LaunchTest, HostTime) {
  if (const std::string why = WhyNoCard(); !why.empty()) GTEST_SKIP() << why;
  const auto driver = *cuda::CudaDriver::Load();
  cuda::Context context = nullptr;
  ASSERT_EQ((*driver)->retain_context(&context, 0), cuda::kSuccess);
  ASSERT_EQ((*driver)->push_context(context), cuda::kSuccess);
  cuda::Stream stream = nullptr;
  ASSERT_EQ((*driver)->create_stream(&stream, cuda::kStreamNonBlocking), cuda::kSuccess);
  const std::string ptx = Ptx("");
  const auto ours = cuda::CudaKernel::Load(driver, ptx, {"kernel", 256, 0});
  ASSERT_TRUE(ours.ok()) << ours.status().message();
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  ASSERT_EQ((*driver)->load_module(&module, ptx.c_str(), 0, nullptr, nullptr), cuda::kSuccess);
  ASSERT_EQ((*driver)->module_function(&function, module, "kernel"), cuda::kSuccess);
  uint64_t slots[] = {1, 2, 3, 4};
  void* pointers[] = {&slots[0], &slots[1], &slots[2], &slots[3]};
  const auto time = [&](const std::function<void()>& launch) {
    double best = 1e9;
    for (int batch = 0; batch < 200; ++batch) {
      const auto start = SteadyClock::now();
      for (int i = 0; i < 100; ++i) launch();
      best = std::min(best, Microseconds(start) / 100);
      EXPECT_EQ((*driver)->synchronize_stream(stream), cuda::kSuccess);
    }
    return best;
  };
  for (int turn = 0; turn < 2; ++turn) {
    Figure("cuLaunchKernel itself, host time", time([&] {
             (*driver)->launch(function, 1, 1, 1, 256, 1, 1, 0, stream, pointers, nullptr);
           }),
           "us");
    Figure("CudaKernel::Launch, host time", time([&] {
             (void)(*ours)->Launch(slots, 4, {1, 1, 1}, stream);
           }),
           "us");
  }
}

TEST(NvmlTest, AnswersAndWhatTheyCost) {
  if (const std::string why = WhyNoCard(); !why.empty()) GTEST_SKIP() << why;
  const auto driver = *cuda::CudaDriver::Load();
  const auto cards = cuda::ListCards(*driver);
  ASSERT_TRUE(cards.ok());
  auto nvml = Nvml::Open(cards->front().uuid);
  ASSERT_OK(nvml);
  const tuner::v1::CardState state = (*nvml)->Read();
  absl::PrintF("card now: %s\n", state.ShortDebugString());
  EXPECT_GT(state.sm_clock_mhz(), 0);
  EXPECT_GT(state.temperature_c(), 0);
  const auto cost = [](const char* name, const std::function<void()>& ask) {
    ask();
    const auto start = SteadyClock::now();
    for (int i = 0; i < 20; ++i) ask();
    Figure(name, Microseconds(start) / 20, "us");
  };
  cost("NVML: state of the card", [&] { (*nvml)->Read(); });
  cost("NVML: uses by processes", [&] { EXPECT_TRUE((*nvml)->NewUses(1).ok()); });
  cost("NVML: processes", [&] { (*nvml)->Processes(); });
  absl::PrintF("processes on the card: %d; this one is %d\n", (*nvml)->Processes().size(),
               getpid());
}

}  // namespace
}  // namespace phobos::device
