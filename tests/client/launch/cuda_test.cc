// SPDX-License-Identifier: Apache-2.0
//
// The driver's table, cards, kernels and errors, on the stand-in driver of tests/gpu/fake_driver.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>

#include "client/launch/cuda/card.h"
#include "client/launch/cuda/cubin.h"
#include "client/launch/cuda/driver.h"
#include "client/launch/cuda/kernel.h"
#include "tests/gpu/fake_driver/in_process.h"

namespace phobos::launch::cuda {
namespace {

using fake::InProcess;
using fake::Ptx;

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::shared_ptr<const CudaDriver> LoadWithContext() {
  auto driver = CudaDriver::Load();
  EXPECT_TRUE(driver.ok()) << driver.status().message();
  Context context = nullptr;
  EXPECT_EQ((**driver)->retain_context(&context, 0), kSuccess);
  EXPECT_EQ((**driver)->push_context(context), kSuccess);
  return *driver;
}

TEST(CudaDriverTest, SaysThatThereIsNone) {
  setenv("PHOBOS_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
  const auto driver = CudaDriver::Load();
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), Code::kUnavailable);
  EXPECT_TRUE(Has(driver.status().message(), "no NVIDIA driver")) << driver.status().message();
  EXPECT_TRUE(Has(driver.status().message(), "install")) << driver.status().message();
}

TEST(CudaDriverTest, AnotherLibraryIsNoDriver) {
  setenv("PHOBOS_CUDA_LIBRARY", fake::FromRoot("tests/daemon/artifacts/kernels.so").c_str(), 1);
  const auto driver = CudaDriver::Load();
  ASSERT_FALSE(driver.ok());
  EXPECT_TRUE(Has(driver.status().message(), "no CUDA driver")) << driver.status().message();
}

TEST(CudaDriverTest, SaysThatItIsTooOld) {
  InProcess("version 11080", [] {
    const auto driver = CudaDriver::Load();
    ASSERT_FALSE(driver.ok());
    EXPECT_EQ(driver.status().code(), Code::kUnavailable);
    EXPECT_TRUE(Has(driver.status().message(), "CUDA 11.8")) << driver.status().message();
    EXPECT_TRUE(Has(driver.status().message(), "CUDA 12.0")) << driver.status().message();
  });
}

TEST(CudaDriverTest, SaysThatThereIsNoDevice) {
  InProcess("cards 0", [] {
    const auto driver = CudaDriver::Load();
    ASSERT_FALSE(driver.ok());
    EXPECT_EQ(driver.status().code(), Code::kUnavailable);
    EXPECT_TRUE(Has(driver.status().message(), "no NVIDIA GPU")) << driver.status().message();
    if (access("/dev/nvidiactl", F_OK) != 0) {
      EXPECT_TRUE(Has(driver.status().message(), "/dev/nvidiactl is missing"));
    }
  });
}

TEST(CudaDriverTest, AnErrorOfInitIsUnavailable) {
  InProcess("fail cuInit 1 803", [] {
    const auto driver = CudaDriver::Load();
    ASSERT_FALSE(driver.ok());
    EXPECT_EQ(driver.status().code(), Code::kUnavailable);
    EXPECT_TRUE(Has(driver.status().message(), "cuInit")) << driver.status().message();
    EXPECT_TRUE(Has(driver.status().message(), "reboot")) << driver.status().message();
  });
}

TEST(CudaDriverTest, ErrorsNameTheCallTheResultAndTheRemedy) {
  InProcess("", [] {
    const auto driver = *CudaDriver::Load();
    struct Case {
      Result result;
      Code code;
      const char* part;
    };
    const Case cases[] = {
        {kOutOfMemory, Code::kResourceExhausted, "nvidia-smi"},
        {kDeviceUnavailable, Code::kUnavailable, "exclusive"},
        {kUnsupportedPtxVersion, Code::kFailedPrecondition, "update the driver"},
        {kInvalidImage, Code::kInvalidArgument, "compiled again"},
        {kNotInitialized, Code::kFailedPrecondition, "spawn"},
        {kIllegalAddress, Code::kAborted, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {kMisalignedAddress, Code::kAborted, "misaligned address"},
        {kInvalidValue, Code::kInternal, "CUDA_ERROR_INVALID_VALUE"},
        {static_cast<Result>(77777), Code::kInternal, "CUresult 77777"},
    };
    for (const Case& c : cases) {
      const Status status = driver->Error("cuCall", c.result, "the log");
      EXPECT_EQ(status.code(), c.code) << c.result;
      EXPECT_EQ(status.message().rfind("cuCall: ", 0), 0u) << status.message();
      EXPECT_TRUE(Has(status.message(), c.part)) << status.message();
      EXPECT_TRUE(Has(status.message(), ": the log")) << status.message();
      EXPECT_EQ(IsSticky(c.result), c.code == Code::kAborted);
    }
    EXPECT_TRUE(driver->Error("cuCall", kSuccess).ok());
  });
}

TEST(CudaCardTest, ChipsByCapability) {
  EXPECT_EQ(ChipOf(7, 0), "");
  EXPECT_EQ(ChipOf(7, 5), "sm_75");
  EXPECT_EQ(ChipOf(8, 0), "sm_80");
  EXPECT_EQ(ChipOf(8, 7), "sm_86");
  EXPECT_EQ(ChipOf(8, 9), "sm_89");
  EXPECT_EQ(ChipOf(9, 0), "sm_90");
  EXPECT_EQ(ChipOf(12, 0), "sm_90");
}

TEST(CudaCardTest, ReadsWhatTheDriverSays) {
  InProcess("cards 2\nname Fake H200\nl2_bytes 4096\nmemory_bytes 12345", [] {
    const auto driver = *CudaDriver::Load();
    const auto cards = ListCards(*driver);
    ASSERT_TRUE(cards.ok()) << cards.status().message();
    ASSERT_EQ(cards->size(), 2u);
    const Card& card = (*cards)[1];
    EXPECT_EQ(card.name, "Fake H200");
    EXPECT_EQ(card.uuid, "GPU-f0f1f2f3-f4f5-f6f7-f0f1-f2f3f4f5f601");
    EXPECT_EQ(card.card_uuid, card.uuid);
    EXPECT_EQ(card.chip, "sm_90");
    EXPECT_EQ(card.unusable, "");
    EXPECT_EQ(card.l2_bytes, 4096);
    EXPECT_EQ(card.memory_bytes, 12345);
    EXPECT_EQ(FindCard(*driver, card.uuid)->device, 1);
    const auto missing = FindCard(*driver, "GPU-0");
    EXPECT_EQ(missing.status().code(), Code::kNotFound);
    EXPECT_TRUE(Has(missing.status().message(), card.uuid)) << missing.status().message();
  });
}

TEST(CudaCardTest, SaysThatACardIsTooOld) {
  InProcess("capability 6 1", [] {
    const auto cards = ListCards(**CudaDriver::Load());
    ASSERT_TRUE(cards.ok());
    EXPECT_EQ(cards->front().chip, "");
    EXPECT_TRUE(Has(cards->front().unusable, "capability 6.1")) << cards->front().unusable;
  });
}

TEST(CudaCardTest, ACardThatCannotBeReadHidesNoOther) {
  InProcess("cards 3\nfail cuDeviceTotalMem_v2 2 999\nfail cuDeviceGet 3 101", [] {
    const auto driver = *CudaDriver::Load();
    const auto cards = ListCards(*driver);
    ASSERT_TRUE(cards.ok()) << cards.status().message();
    ASSERT_EQ(cards->size(), 3u);
    EXPECT_EQ((*cards)[0].unusable, "");
    EXPECT_TRUE(Has((*cards)[1].unusable, "GPU 1 cannot be read: cuDeviceTotalMem"))
        << (*cards)[1].unusable;
    EXPECT_EQ((*cards)[1].uuid, "GPU-f0f1f2f3-f4f5-f6f7-f0f1-f2f3f4f5f601");
    EXPECT_TRUE(Has((*cards)[2].unusable, "GPU 2 cannot be read: cuDeviceGet"))
        << (*cards)[2].unusable;
  });
}

TEST(CudaCardTest, ACardThatCannotBeReadIsNoOther) {
  InProcess("cards 3\nfail cuDeviceGet 3 101\nfail cuDeviceGetUuid 4 999", [] {
    const auto cards = ListCards(**CudaDriver::Load());
    ASSERT_TRUE(cards.ok()) << cards.status().message();
    ASSERT_EQ(cards->size(), 3u);
    EXPECT_EQ((*cards)[1].device, 1);
    EXPECT_EQ((*cards)[1].uuid, "");
    EXPECT_EQ((*cards)[1].card_uuid, "");
    EXPECT_EQ((*cards)[2].device, -1);
    EXPECT_EQ((*cards)[2].uuid, "");
  });
  InProcess("cards 2\nfail cuDeviceGetUuid 1 999", [] {
    const auto none = FindCard(**CudaDriver::Load(), "");
    EXPECT_EQ(none.status().code(), Code::kNotFound);
    EXPECT_TRUE(Has(none.status().message(), "there are: GPU-f0f1f2f3-f4f5-f6f7-f0f1-f2f3f4f5f601"))
        << none.status().message();
  });
}

TEST(CubinTest, EveryDamageIsSeen) {
  const std::string cubin("\0a cubin\0", 9);
  const std::string sealed = SealCubin(cubin);
  EXPECT_EQ(UnsealCubin(sealed), cubin);
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string damaged = sealed;
    damaged[i] ^= 1;
    EXPECT_EQ(UnsealCubin(damaged), "") << i;
    EXPECT_EQ(UnsealCubin(sealed.substr(0, i)), "") << i;
  }
  EXPECT_EQ(UnsealCubin(sealed + "a"), "");
}

TEST(CudaKernelTest, RefusesWhatCannotRun) {
  InProcess("kernel greedy max_threads 256\nkernel future link 222", [] {
    const auto driver = LoadWithContext();
    const auto load = [&](const std::string& image, const KernelShape& shape) {
      return CudaKernel::Load(driver, image, shape).status();
    };
    const Status greedy = load(Ptx("greedy", 0, ""), {"kernel", 512, 0});
    EXPECT_EQ(greedy.code(), Code::kFailedPrecondition);
    EXPECT_TRUE(Has(greedy.message(), "512")) << greedy.message();
    EXPECT_TRUE(Has(greedy.message(), "256")) << greedy.message();
    const Status future = load(Ptx("future", 0, ""), {"kernel", 128, 0});
    EXPECT_EQ(future.code(), Code::kFailedPrecondition);
    EXPECT_TRUE(Has(future.message(), "the script says so")) << future.message();  // the log
    EXPECT_EQ(load(Ptx("a", 0, ""), {"other", 128, 0}).code(), Code::kNotFound);
    EXPECT_EQ(load("no image", {"kernel", 128, 0}).code(), Code::kInvalidArgument);
    const Status shared = load(Ptx("a", 0, ""), {"kernel", 128, 300 << 10});
    EXPECT_EQ(shared.code(), Code::kFailedPrecondition);
    EXPECT_TRUE(Has(shared.message(), "307200")) << shared.message();
    EXPECT_TRUE(load(Ptx("a", 0, ""), {"kernel", 128, 200 << 10}).ok());
    // The driver takes an int: these would be 4 KiB and 0 there.
    for (const int64_t bytes : {(int64_t{1} << 32) + 4096, int64_t{1} << 32}) {
      const Status huge = load(Ptx("a", 0, ""), {"kernel", 128, bytes});
      EXPECT_EQ(huge.code(), Code::kFailedPrecondition);
      EXPECT_TRUE(Has(huge.message(), std::to_string(bytes))) << huge.message();
    }
    EXPECT_EQ(load(Ptx("a", 0, ""), {"kernel", 128, -1}).code(), Code::kInvalidArgument);
    EXPECT_TRUE(load(Ptx("greedy", 0, ""), {"kernel", 256, 0}).ok());
  });
}

TEST(CudaKernelTest, ALaunchIsOneCallOfTheDriver) {
  const auto calls = InProcess("", [] {
    const auto driver = LoadWithContext();
    const auto kernel = CudaKernel::Load(driver, Ptx("a", 1, ""), {"kernel", 128, 0});
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    EXPECT_EQ((*kernel)->registers(), 32);
    const uint64_t slot = 1;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ((*kernel)->Launch(&slot, 1, {1, 1, 1}, nullptr), kSuccess);
    }
  });
  const std::string launch = "cuLaunchKernel // phobos-tuner: a";
  const auto first = std::find(calls.begin(), calls.end(), launch);
  ASSERT_GE(calls.end() - first, 4);
  EXPECT_EQ(std::vector<std::string>(first, first + 4),
            (std::vector<std::string>{launch, launch, launch, "cuModuleUnload"}));
}

}  // namespace
}  // namespace phobos::launch::cuda
