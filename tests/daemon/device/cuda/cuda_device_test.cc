// SPDX-License-Identifier: Apache-2.0
//
// The GPU's device on the stand-in driver of tests/gpu/fake_driver.
#include "daemon/device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/device/open.h"
#include "tests/gpu/fake_driver/in_process.h"
#include "tests/status_matchers.h"

namespace phobos::device {
namespace {

using ::phobos::testing::IsOkAndHolds;
using ::phobos::testing::StatusIs;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using fake::InProcess;

void Ignore(size_t) {}

// A device with 4096 floats of x, y and out in its memory, and kernels of out = x + y.
struct Bench {
  static constexpr int64_t kElements = 4096;
  static constexpr int64_t kBytes = kElements * 4;

  std::unique_ptr<Device> device;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::byte* base = nullptr;
  std::vector<float> x, y;

  Bench() {
    auto opened = Open("cuda:0");
    EXPECT_OK(opened);
    device = *std::move(opened);
    auto reserved = device->Reserve(4 * kBytes, true);
    EXPECT_OK(reserved);
    base = *reserved;
    for (int64_t i = 0; i < kElements; ++i) {
      x.push_back(static_cast<float>(i));
      y.push_back(0.5f);
    }
    EXPECT_OK(device->Copy(base, reinterpret_cast<const std::byte*>(x.data()), kBytes));
    EXPECT_OK(device->Copy(base + kBytes, reinterpret_cast<const std::byte*>(y.data()), kBytes));
    EXPECT_OK(device->Finish(Ignore));
  }

  static KernelFile File(const std::string& header, const std::string& twin, int threads = 128) {
    KernelFile file;
    file.path = fake::Temporary(header.substr(header.find(' ') + 1) + ".ptx");
    std::ofstream(file.path) << fake::Ptx(header, 4, twin, threads);
    file.artifact.set_entry("kernel");
    file.artifact.set_threads(threads);
    return file;
  }
  const Kernel& Load(const std::string& header, const std::string& twin = "add") {
    auto kernel = device->Load(File(header, twin));
    EXPECT_OK(kernel);
    kernels.push_back(*std::move(kernel));
    return *kernels.back();
  }
  absl::Status Launch(const Kernel& kernel) {
    tuner::v1::Grid grid;
    grid.set_x(4), grid.set_y(1), grid.set_z(1);
    const uint64_t slots[] = {Address(0), Address(1), Address(2), kElements};
    return device->Launch(kernel, slots, grid);
  }
  uint64_t Address(int tensor) const { return reinterpret_cast<uint64_t>(base + tensor * kBytes); }
  std::vector<float> Out() {
    auto bytes = device->Read(base + 2 * kBytes, kBytes);
    EXPECT_OK(bytes);
    std::vector<float> out(kElements);
    memcpy(out.data(), *bytes, kBytes);
    return out;
  }
};

TEST(CudaDeviceTest, DescribesTheCard) {
  InProcess("name Fake H200\nl2_bytes 8192\nmemory_bytes 99000000\ncapability 12 0", [] {
    auto device = Open("cuda:0");
    ASSERT_OK(device);
    const tuner::v1::Device& described = (*device)->description().device;
    EXPECT_EQ(described.uuid(), "GPU-f0f1f2f3-f4f5-f6f7-f0f1-f2f3f4f5f600");
    EXPECT_EQ(described.card_name(), "Fake H200");
    EXPECT_EQ(described.chip(), "sm_90");
    EXPECT_EQ(described.flush_bytes(), 8192);
    EXPECT_EQ(described.memory_bytes(), 99000000);
    EXPECT_EQ(described.driver(), "999.99");
    EXPECT_FALSE((*device)->description().has_host_memory);
    EXPECT_OK(Open("cuda:" + described.uuid()));
    EXPECT_THAT(Open("cuda:1"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no GPU 1")));
    EXPECT_THAT(Open("cuda:GPU-1"),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(described.uuid())));
  });
}

TEST(CudaDeviceTest, ASliceTellsItsCard) {
  InProcess("cards 2\nmig", [] {
    ASSERT_OK_AND_ASSIGN(const auto device, Open("cuda:1"));
    const tuner::v1::Device& described = device->description().device;
    EXPECT_EQ(described.uuid(), "MIG-f0f1f2f3-f4f5-f6f7-f0f1-f2f3f4f50101");
    EXPECT_EQ(described.card_uuid(), "GPU-f0f1f2f3-f4f5-f6f7-f0f1-f2f3f4f5f601");
  });
  InProcess("", [] {
    ASSERT_OK_AND_ASSIGN(const auto device, Open("cuda:0"));
    EXPECT_EQ(device->description().device.card_uuid(), device->description().device.uuid());
  });
}

TEST(CudaDeviceTest, SaysWhyACardIsNotUsed) {
  InProcess("capability 7 0", [] {
    EXPECT_THAT(Open("cuda:0"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("7.0")));
  });
  InProcess("fail cuDevicePrimaryCtxRetain 1 46", [] {
    EXPECT_THAT(Open("cuda:0"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("exclusive")));
  });
  InProcess("", [] {
    setenv("PHOBOS_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
    EXPECT_THAT(Open("cuda:0"),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no NVIDIA driver")));
  });
}

TEST(CudaDeviceTest, WorksWithoutNvml) {
  InProcess("version 12040", [] {
    setenv("PHOBOS_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1", 1);
    auto device = Open("cuda:0");
    ASSERT_OK(device);
    EXPECT_EQ((*device)->description().device.driver(), "CUDA 12.4");
  });
}

TEST(CudaDeviceTest, ALookTellsNothingFromWhatItCannotTell) {
  static constexpr char kCard[] = "GPU-f0f1f2f3-f4f5-f6f7-f0f1-f2f3f4f5f600";
  InProcess("no_uses 6", [] { EXPECT_THAT(LookAtGpu(kCard), IsOkAndHolds("")); });
  InProcess("no_uses 3", [] {
    EXPECT_THAT(LookAtGpu(kCard), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("error 3")));
  });
  InProcess("mig", [] {
    EXPECT_THAT(LookAtGpu("MIG-f0f1f2f3-f4f5-f6f7-f0f1-f2f3f4f50100"),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("error 6")));
  });
}

TEST(CudaDeviceTest, LaunchesAndTimes) {
  InProcess("kernel BLOCK=1 times 5000 4000\nkernel BLOCK=2 times 7000", [] {
    Bench bench;
    const Kernel& one = bench.Load("add BLOCK=1");
    const Kernel& two = bench.Load("add BLOCK=2");
    EXPECT_EQ(one.usage.registers, 32);
    for (const Kernel* kernel : {&one, &two, &one}) {
      EXPECT_OK(bench.device->Flush());
      EXPECT_OK(bench.Launch(*kernel));
    }
    std::vector<size_t> runs;
    auto outcome = bench.device->Finish([&](size_t launch) { runs.push_back(launch); });
    ASSERT_OK(outcome);
    EXPECT_THAT(outcome->samples_ns, ElementsAre(5000, 7000, 4000));
    EXPECT_EQ(outcome->state.sm_clock_mhz(), 1980);
    EXPECT_EQ(outcome->state.temperature_c(), 40);
    EXPECT_EQ(outcome->state.throttling(), "");
    EXPECT_FALSE(outcome->disturbed) << outcome->disturbance;
    EXPECT_TRUE(std::is_sorted(runs.begin(), runs.end()));
    const std::vector<float> out = bench.Out();
    for (int64_t i = 0; i < Bench::kElements; ++i) ASSERT_EQ(out[i], bench.x[i] + 0.5f) << i;
  });
}

TEST(CudaDeviceTest, ManyLaunchesAtOnce) {
  InProcess("kernel BLOCK=1 times 1000", [] {
    Bench bench;
    const Kernel& kernel = bench.Load("add BLOCK=1", "nothing");
    for (int i = 0; i < 700; ++i) ASSERT_OK(bench.Launch(kernel));
    auto outcome = bench.device->Finish(Ignore);
    ASSERT_OK(outcome);
    EXPECT_EQ(outcome->samples_ns.size(), 700u);
    EXPECT_THAT(outcome->samples_ns, Each(1000));
  });
}

TEST(CudaDeviceTest, FindsTheFirstDifference) {
  InProcess("", [] {
    Bench bench;
    std::byte* a = bench.base + 3;
    for (const int64_t modulo : {3, 4}) {  // aligned alike, and not
      std::byte* b = bench.base + 2 * Bench::kBytes + modulo;
      for (const int64_t bytes : {1, 12, 13, 29, 30, 5000}) {
        for (const int64_t at : {int64_t{-1}, int64_t{0}, bytes / 2, bytes - 1}) {
          std::vector<std::byte> left(static_cast<size_t>(bytes), std::byte{7});
          std::vector<std::byte> right = left;
          if (at >= 0) right[static_cast<size_t>(at)] = std::byte{8};
          right.push_back(std::byte{9});  // past the end
          ASSERT_OK(bench.device->Copy(a, left.data(), bytes));
          ASSERT_OK(bench.device->Copy(b, right.data(), bytes + 1));
          auto found = bench.device->FirstDifference(a, b, bytes);
          ASSERT_OK(found);
          EXPECT_EQ(found->value_or(-1), at) << modulo << " " << bytes;
        }
      }
    }
  });
}

// No wide loads for these: they are compared on the host, in pieces.
TEST(CudaDeviceTest, FindsTheFirstDifferenceOfMuchThatIsNotAligned) {
  InProcess("", [] {
    constexpr int64_t kBytes = (int64_t{3} << 20) + 5;
    ASSERT_OK_AND_ASSIGN(const auto device, Open("cuda:0"));
    ASSERT_OK_AND_ASSIGN(std::byte* const a, device->Reserve(2 * kBytes + 16, false));
    std::byte* const b = a + kBytes + 16 - kBytes % 16 + 1;
    std::vector<std::byte> left(kBytes, std::byte{7});
    for (const int64_t at : {int64_t{0}, (int64_t{2} << 20) - 1, int64_t{2} << 20, kBytes - 1}) {
      std::vector<std::byte> right = left;
      right[static_cast<size_t>(at)] = std::byte{8};
      ASSERT_OK(device->Copy(a, left.data(), kBytes));
      ASSERT_OK(device->Copy(b, right.data(), kBytes));
      ASSERT_OK_AND_ASSIGN(const auto found, device->FirstDifference(a, b, kBytes));
      EXPECT_EQ(found, at);
      ASSERT_OK(device->Copy(b, left.data(), kBytes));
      ASSERT_OK_AND_ASSIGN(const auto none, device->FirstDifference(a, b, kBytes));
      EXPECT_EQ(none, std::nullopt);
    }
  });
}

TEST(CudaDeviceTest, ReadsAndComparesWhereNoMemoryCanBePinned) {
  constexpr int64_t kBytes = 200'000;  // more than there is from the start
  InProcess("fail cuMemHostAlloc 5 2\nfail cuMemHostAlloc 6 2", [] {
    ASSERT_OK_AND_ASSIGN(const auto device, Open("cuda:0"));
    ASSERT_OK_AND_ASSIGN(std::byte* const a, device->Reserve(2 * kBytes, false));
    std::vector<std::byte> bytes(2 * kBytes, std::byte{7});
    bytes[kBytes + 70'000] = std::byte{8};
    ASSERT_OK(device->Copy(a, bytes.data(), 2 * kBytes));
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK_AND_ASSIGN(const std::byte* read, device->Read(a + kBytes, kBytes));
      EXPECT_EQ(memcmp(read, bytes.data() + kBytes, kBytes), 0);
      ASSERT_OK_AND_ASSIGN(const auto found, device->FirstDifference(a, a + kBytes, kBytes));
      EXPECT_EQ(found, 70'000);
    }
  });
}

TEST(CudaDeviceTest, LargeCopiesGoInPieces) {
  // Odd sizes: below a piece, a bit more than one, several.
  for (const int64_t bytes : {int64_t{1} << 20, (int64_t{8} << 20) + 3, (int64_t{27} << 20) + 77}) {
    InProcess("", [bytes] {
      auto device = Open("cuda:0");
      ASSERT_OK(device);
      auto base = (*device)->Reserve(2 * bytes, false);
      ASSERT_OK(base);
      std::vector<std::byte> sent(static_cast<size_t>(bytes)), got(static_cast<size_t>(bytes));
      for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 4099);
      ASSERT_OK((*device)->Copy(*base + 1, sent.data(), bytes));
      ASSERT_OK((*device)->Copy(got.data(), *base + 1, bytes));
      ASSERT_OK((*device)->Finish(Ignore));
      EXPECT_TRUE(got == sent);
      auto read = (*device)->Read(*base + 1, bytes);
      ASSERT_OK(read);
      EXPECT_EQ(memcmp(*read, sent.data(), sent.size()), 0);
    });
  }
}

// Calls of the driver between two launches' samples, by name.
TEST(CudaDeviceTest, NothingButFlushEventsAndLaunchBetweenSamples) {
  const auto calls = InProcess("", [] {
    Bench bench;
    const Kernel& kernel = bench.Load("add BLOCK=1");
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 5; ++i) {
        EXPECT_OK(bench.device->Copy(bench.base + 2 * Bench::kBytes, bench.base, Bench::kBytes));
        EXPECT_OK(bench.device->Flush());
        EXPECT_OK(bench.Launch(kernel));
      }
      EXPECT_OK(bench.device->Finish(Ignore));
    }
  });
  const auto is_launch = [](const std::string& call) {
    return call == "cuLaunchKernel // phobos-tuner: add BLOCK=1";
  };
  const auto first = std::find_if(calls.begin(), calls.end(), is_launch);
  const auto last = std::find_if(calls.rbegin(), calls.rend(), is_launch).base();
  ASSERT_LT(first, last);
  std::vector<std::string> names;
  for (auto call = first; call != last; ++call) names.push_back(call->substr(0, call->find(' ')));
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuLaunchKernel"), 15);
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuMemsetD32Async"), 14);
  for (const std::string& name : names) {
    EXPECT_THAT((std::vector<std::string>{"cuLaunchKernel", "cuEventRecord", "cuEventElapsedTime",
                                          "cuMemsetD32Async", "cuMemcpyAsync",
                                          "cuStreamWriteValue32_v2", "cuStreamWaitValue32_v2"}),
                Contains(name));
  }
}

// Twice the attribute, on the launch's stream, after the restore and before the start event.
TEST(CudaDeviceTest, FlushIsTwiceTheCacheRightBeforeTheEvents) {
  const auto calls = InProcess("l2_bytes 50000", [] {
    Bench bench;
    const Kernel& kernel = bench.Load("add BLOCK=1");
    EXPECT_OK(bench.device->Copy(bench.base + 2 * Bench::kBytes, bench.base, Bench::kBytes));
    EXPECT_OK(bench.device->Flush());
    EXPECT_OK(bench.Launch(kernel));
    EXPECT_OK(bench.device->Finish(Ignore));
  });
  const auto fill = std::find(calls.begin(), calls.end(), "cuMemsetD32Async 100000");
  ASSERT_LT(fill + 3, calls.end());
  EXPECT_EQ(*(fill - 1), "cuMemcpyAsync 16384");
  EXPECT_EQ(*(fill + 1), "cuEventRecord");
  EXPECT_EQ(*(fill + 2), "cuLaunchKernel // phobos-tuner: add BLOCK=1");
  EXPECT_EQ(*(fill + 3), "cuEventRecord");
}

TEST(CudaDeviceTest, ABrokenContextNamesTheGuiltyLaunch) {
  InProcess("kernel BLOCK=2 lost 2 700", [] {
    Bench bench;
    const Kernel& good = bench.Load("add BLOCK=1");
    const Kernel& bad = bench.Load("add BLOCK=2");
    for (const Kernel* kernel : {&good, &bad}) EXPECT_OK(bench.Launch(*kernel));
    EXPECT_OK(bench.device->Finish(Ignore));
    for (const Kernel* kernel : {&good, &good, &bad, &good}) EXPECT_OK(bench.Launch(*kernel));
    size_t guilty = 99;
    EXPECT_THAT(bench.device->Finish([&](size_t launch) { guilty = launch; }),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS")));
    EXPECT_EQ(guilty, 2u);
    EXPECT_THAT(bench.device->Read(bench.base, 4), StatusIs(absl::StatusCode::kAborted));
  });
}

// What a launch's own call asks the driver for behind the launch: its end, and the word that tells
// that it is over.
constexpr int kCallsBehindALaunch = 2;

// `bad` breaks the context that many calls behind its launch. Where that is before its own call is
// over, this one gives the error, and Finish tells of no launch.
void ExpectTheGuilty(Bench& bench, const Kernel& good, const Kernel& bad, int calls) {
  alarm(30);
  EXPECT_OK(bench.Launch(good));
  const bool is_queued = calls == kCallsBehindALaunch;
  EXPECT_THAT(bench.Launch(bad),
              StatusIs(is_queued ? absl::StatusCode::kOk : absl::StatusCode::kAborted));
  EXPECT_THAT(bench.Launch(good), StatusIs(absl::StatusCode::kAborted));
  size_t guilty = 99;
  EXPECT_THAT(bench.device->Finish([&](size_t launch) { guilty = launch; }),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(guilty, is_queued ? 1u : 99u) << calls;
}

// A kernel's first launch is not held back: it may break the context at any time.
TEST(CudaDeviceTest, ABrokenContextIsNotTheNextLaunchsFault) {
  for (int calls = 0; calls <= kCallsBehindALaunch; ++calls) {
    InProcess("kernel BLOCK=2 lost 1 700\nkernel BLOCK=2 lives " + std::to_string(calls), [calls] {
      Bench bench;
      const Kernel& good = bench.Load("add BLOCK=1");
      const Kernel& bad = bench.Load("add BLOCK=2");
      ExpectTheGuilty(bench, good, bad, calls);
    });
  }
}

// The driver waits for what is queued before it unloads a kernel or frees memory: nothing may be
// left that waits for a Finish.
TEST(CudaDeviceTest, ARefusedLaunchHoldsUpNothing) {
  InProcess("kernel BLOCK=2 refuse 2 2", [] {
    alarm(30);
    Bench bench;
    const Kernel& good = bench.Load("add BLOCK=1");
    const Kernel& bad = bench.Load("add BLOCK=2");
    for (const Kernel* kernel : {&good, &bad}) EXPECT_OK(bench.Launch(*kernel));
    EXPECT_OK(bench.device->Finish(Ignore));
    EXPECT_OK(bench.Launch(good));
    EXPECT_THAT(bench.Launch(bad), StatusIs(absl::StatusCode::kResourceExhausted));
    bench.kernels.clear();
    EXPECT_OK(bench.device->Reserve(8 * Bench::kBytes, true));
  });
}

TEST(CudaDeviceTest, AnErrorOfTheStreamHoldsUpNothing) {
  InProcess("fail cuMemsetD32Async 1 1", [] {
    alarm(30);
    Bench bench;
    const Kernel& good = bench.Load("add BLOCK=1");
    EXPECT_OK(bench.Launch(good));
    EXPECT_OK(bench.device->Finish(Ignore));
    EXPECT_OK(bench.Launch(good));
    EXPECT_THAT(bench.device->Flush(), StatusIs(absl::StatusCode::kAborted));
    bench.kernels.clear();
  });
}

// A driver or card whose streams cannot wait for memory.
constexpr char kNoMemoryOperations[] =
    "fail cuStreamWaitValue32_v2 0 801\nfail cuStreamWriteValue32_v2 0 801\n";

TEST(CudaDeviceTest, WorksWithoutMemoryOperationsOfStreams) {
  const std::string script = kNoMemoryOperations;
  const auto calls = InProcess(script + "kernel BLOCK=1 times 5000", [] {
    Bench bench;
    std::vector<std::byte> much(20 << 20, std::byte{5});  // by way of marks
    ASSERT_OK_AND_ASSIGN(bench.base, bench.device->Reserve(20 << 20, true));
    EXPECT_OK(bench.device->Copy(bench.base, much.data(), 20 << 20));
    ASSERT_OK_AND_ASSIGN(const std::byte* read, bench.device->Read(bench.base, 20 << 20));
    EXPECT_EQ(memcmp(read, much.data(), much.size()), 0);
    const Kernel& one = bench.Load("add BLOCK=1");
    const Kernel& two = bench.Load("add BLOCK=2");
    for (const Kernel* kernel : {&one, &two, &one}) {
      EXPECT_OK(bench.device->Flush());
      EXPECT_OK(bench.Launch(*kernel));
    }
    ASSERT_OK_AND_ASSIGN(const Outcome outcome, bench.device->Finish(Ignore));
    EXPECT_EQ(outcome.samples_ns.size(), 3u);
    EXPECT_EQ(outcome.samples_ns[2], 5000);
  });
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuStreamWaitValue32_v2"), 1);
}

TEST(CudaDeviceTest, ABrokenContextIsTheGuiltysFaultWithoutMemoryOperations) {
  for (int calls = 0; calls <= kCallsBehindALaunch; ++calls) {
    const std::string script = kNoMemoryOperations;
    const std::string rules = "kernel BLOCK=2 lost 2 700\nkernel BLOCK=2 lives ";
    InProcess(script + rules + std::to_string(calls), [calls] {
      Bench bench;
      const Kernel& good = bench.Load("add BLOCK=1");
      const Kernel& bad = bench.Load("add BLOCK=2");
      for (const Kernel* kernel : {&good, &bad}) EXPECT_OK(bench.Launch(*kernel));
      EXPECT_OK(bench.device->Finish(Ignore));
      ExpectTheGuilty(bench, good, bad, calls);
    });
  }
}

TEST(CudaDeviceTest, LinksAheadAndKeepsTheCubin) {
  const auto calls = InProcess("link_ms 100", [] {
    Bench bench;
    std::vector<KernelFile> files;
    for (int i = 0; i < 4; ++i) files.push_back(Bench::File("add BLOCK=" + std::to_string(i), ""));
    bench.device->Expect(files);
    for (const KernelFile& file : files) EXPECT_OK(bench.device->Load(file));
    // The same again, and in another process by the same names: nothing is linked.
    bench.device->Expect(files);
    for (const KernelFile& file : files) EXPECT_OK(bench.device->Load(file));
    // A damaged one is made again.
    std::ofstream(files[0].path.substr(0, files[0].path.size() - 4) + ".cc90.12040.sealed.cubin")
        << "damaged";
    EXPECT_OK(bench.device->Load(files[0]));
  });
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuLinkComplete"), 5);
  if (std::thread::hardware_concurrency() >= 2) {  // the second has begun when the first is over
    const auto first_is_over = std::find(calls.begin(), calls.end(), "cuLinkDestroy");
    EXPECT_GE(std::count(calls.begin(), first_is_over, "cuLinkComplete"), 2);
  }
}

// The driver would take it: what is in the file is a cubin, but not the one that was put there.
TEST(CudaDeviceTest, AKeptCubinThatWasChangedIsNotRun) {
  const auto calls = InProcess("", [] {
    Bench bench;
    const KernelFile file = Bench::File("add BLOCK=1", "add");
    ASSERT_OK(bench.device->Load(file));
    const std::string path = file.path.substr(0, file.path.size() - 4) + ".cc90.12040.sealed.cubin";
    std::ifstream kept(path);
    std::string bytes((std::istreambuf_iterator<char>(kept)), std::istreambuf_iterator<char>());
    const size_t twin = bytes.find(".so add ");
    ASSERT_NE(twin, std::string::npos);
    std::ofstream(path) << bytes.replace(twin, 8, ".so nothing ");
    ASSERT_OK_AND_ASSIGN(auto kernel, bench.device->Load(file));
    EXPECT_OK(bench.Launch(*kernel));
    EXPECT_OK(bench.device->Finish(Ignore));
    EXPECT_EQ(bench.Out()[3], 3.5f);
    bench.kernels.push_back(std::move(kernel));
  });
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuLinkComplete"), 2);
}

TEST(CudaDeviceTest, WhatCannotBeLinkedIsThatKernelsOwnFault) {
  InProcess("kernel BLOCK=2 link 218\nkernel BLOCK=3 link 222\nkernel BLOCK=4 max_threads 64", [] {
    Bench bench;
    EXPECT_THAT(bench.device->Load(Bench::File("add BLOCK=2", "")),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the script says so")));
    EXPECT_THAT(bench.device->Load(Bench::File("add BLOCK=3", "")),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("update the driver")));
    EXPECT_THAT(bench.device->Load(Bench::File("add BLOCK=4", "")),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("64 such threads")));
    KernelFile missing;
    missing.path = "/nowhere/kernel.ptx";
    EXPECT_THAT(bench.device->Load(missing), StatusIs(absl::StatusCode::kNotFound));
    EXPECT_OK(bench.Launch(bench.Load("add BLOCK=1")));
    EXPECT_OK(bench.device->Finish(Ignore));
  });
}

TEST(CudaDeviceTest, MemoryIsWorkedOutBefore) {
  const auto calls = InProcess("memory_bytes 10000000\nl2_bytes 1000000", [] {
    auto device = Open("cuda:0");
    ASSERT_OK(device);
    EXPECT_THAT((*device)->Reserve(9'000'000, true),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("9000000"), HasSubstr("2000000"))));
    EXPECT_OK((*device)->Reserve(9'000'000, false));
    EXPECT_OK((*device)->Reserve(7'000'000, true).status());
    // What there is serves again.
    EXPECT_OK((*device)->Reserve(6'000'000, false));
  });
  EXPECT_THAT(calls, Not(Contains("cuMemAlloc_v2 6000000")));
}

TEST(CudaDeviceTest, WhatALargerPreloadTookIsTheJobs) {
  const auto calls = InProcess("memory_bytes 10000000\nl2_bytes 1000000", [] {
    auto device = Open("cuda:0");
    ASSERT_OK(device);
    EXPECT_OK((*device)->ReservePreloaded(5'000'000));
    EXPECT_OK((*device)->ReservePreloaded(3'000'000));
    EXPECT_OK((*device)->ReservePreloaded(3'000'000));
    EXPECT_OK((*device)->Reserve(6'000'000, false));
  });
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuMemAlloc_v2 3000000"), 1);
}

TEST(CudaDeviceTest, WithoutACacheNothingIsFlushed) {
  const auto calls = InProcess("l2_bytes 0", [] {
    Bench bench;
    EXPECT_OK(bench.device->Flush());
    EXPECT_OK(bench.Launch(bench.Load("add BLOCK=1")));
    const auto outcome = bench.device->Finish(Ignore);
    ASSERT_OK(outcome);
    EXPECT_EQ(outcome->samples_ns.size(), 1);
  });
  EXPECT_THAT(calls, Not(Contains(HasSubstr("cuMemset"))));
}

TEST(CudaDeviceTest, NvmlTellsOfDisturbance) {
  // The third takes a third longer: too little without the other process, enough with it.
  InProcess(
      "throttled 2 2 64\nforeign 3 4 80\nkernel BLOCK=1 times 1000000 1000000 1333000 1000000", [] {
        Bench bench;
        const Kernel& kernel = bench.Load("add BLOCK=1");
        std::vector<std::string> seen;
        for (int i = 0; i < 4; ++i) {
          EXPECT_OK(bench.Launch(kernel));
          auto outcome = bench.device->Finish(Ignore);
          ASSERT_OK(outcome);
          EXPECT_EQ(outcome->disturbed, !outcome->disturbance.empty());
          seen.push_back(outcome->disturbance);
          std::this_thread::sleep_for(std::chrono::milliseconds(105));
        }
        // A busy machine may be late for the last one.
        EXPECT_THAT(seen, ElementsAre("", HasSubstr("heat"), HasSubstr("80 % of the card"),
                                      AnyOf("", HasSubstr("ms late"))));
      });
}

TEST(CudaDeviceTest, ARoundInSlicesIsDisturbed) {
  InProcess("kernel BLOCK=1 times 1000000 1000000 5000000 1000000", [] {
    Bench bench;
    const Kernel& kernel = bench.Load("add BLOCK=1");
    std::vector<std::string> seen;
    for (int i = 0; i < 4; ++i) {
      EXPECT_OK(bench.Launch(kernel));
      auto outcome = bench.device->Finish(Ignore);
      ASSERT_OK(outcome);
      seen.push_back(outcome->disturbance);
    }
    EXPECT_THAT(seen, ElementsAre("", "", HasSubstr("5.00 ms"), ""));
  });
}

}  // namespace
}  // namespace phobos::device
