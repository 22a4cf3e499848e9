// SPDX-License-Identifier: Apache-2.0
//
// The stand-in driver itself: what it lets pass, a card would too, and what it refuses it refuses.
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "client/launch/cuda/driver.h"
#include "client/launch/cuda/kernel.h"
#include "tests/gpu/fake_driver/in_process.h"

namespace phobos::launch::cuda {
namespace {

using fake::InProcess;
using fake::Ptx;

// A driver with a context current on this thread.
struct Bench {
  std::shared_ptr<const CudaDriver> driver;
  Stream stream = nullptr;

  Bench() {
    auto loaded = CudaDriver::Load();
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    driver = *loaded;
    Context context = nullptr;
    EXPECT_EQ(call()->retain_context(&context, 0), kSuccess);
    EXPECT_EQ(call()->push_context(context), kSuccess);
    EXPECT_EQ(call()->create_stream(&stream, kStreamNonBlocking), kSuccess);
  }
  const CudaDriver& call() const { return *driver; }

  DevicePointer Allocate(size_t bytes) {
    DevicePointer pointer = 0;
    EXPECT_EQ(call()->allocate(&pointer, bytes), kSuccess);
    return pointer;
  }
  DevicePointer Put(const std::vector<float>& values) {
    const DevicePointer pointer = Allocate(values.size() * sizeof(float));
    EXPECT_EQ(call()->copy(pointer, reinterpret_cast<DevicePointer>(values.data()),
                           values.size() * sizeof(float), stream),
              kSuccess);
    EXPECT_EQ(call()->synchronize_stream(stream), kSuccess);
    return pointer;
  }
  std::vector<float> Get(DevicePointer from, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(call()->copy(reinterpret_cast<DevicePointer>(values.data()), from,
                           count * sizeof(float), stream),
              kSuccess);
    EXPECT_EQ(call()->synchronize_stream(stream), kSuccess);
    return values;
  }
  std::unique_ptr<CudaKernel> Load(const std::string& ptx, int threads = 128) {
    auto kernel = CudaKernel::Load(driver, ptx, {"kernel", threads, 0});
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    return kernel.ok() ? *std::move(kernel) : nullptr;
  }
};

TEST(FakeDriverTest, RunsATwinOnTheMemoryOfTheCard) {
  InProcess("", [] {
    Bench bench;
    std::vector<float> x(3000), y(3000);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i), y[i] = 1;
    const DevicePointer out = bench.Allocate(3000 * sizeof(float));
    const auto kernel = bench.Load(Ptx("add", 4, "add"));
    const uint64_t slots[] = {bench.Put(x), bench.Put(y), out, 3000};
    EXPECT_EQ(kernel->Launch(slots, 4, {3, 1, 1}, bench.stream), kSuccess);
    const std::vector<float> got = bench.Get(out, 3000);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], x[i] + 1) << i;
  });
}

TEST(FakeDriverTest, TheProcessItselfCannotReadTheCard) {
  EXPECT_EXIT(
      {
        setenv("PHOBOS_CUDA_LIBRARY", fake::FromRoot("tests/gpu/fake_driver/libcuda.so").c_str(),
               1);
        Bench bench;
        const DevicePointer pointer = bench.Put({1, 2});
        exit(static_cast<int>(*reinterpret_cast<volatile float*>(pointer)));
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST(FakeDriverTest, CopiesMustStayInTheirAllocation) {
  InProcess("", [] {
    Bench bench;
    const DevicePointer to = bench.Allocate(16);
    char bytes[64] = {};
    const auto from = reinterpret_cast<DevicePointer>(bytes);
    EXPECT_EQ(bench.call()->copy(to, from, 16, bench.stream), kSuccess);
    EXPECT_EQ(bench.call()->synchronize_stream(bench.stream), kSuccess);
    EXPECT_EQ(bench.call()->copy(to + 1, from, 16, bench.stream), kInvalidValue);
    EXPECT_EQ(bench.call()->copy(from, to, 17, bench.stream), kInvalidValue);
    EXPECT_EQ(bench.call()->fill(to, 0, 5, bench.stream), kInvalidValue);
    EXPECT_EQ(bench.call()->free(to + 1), kInvalidValue);
    EXPECT_EQ(bench.call()->free(to), kSuccess);
    EXPECT_EQ(bench.call()->free(to), kInvalidValue);
  });
}

TEST(FakeDriverTest, MemoryIsLimited) {
  InProcess("memory_bytes 1000", [] {
    Bench bench;
    bench.Allocate(600);
    DevicePointer pointer = 0;
    EXPECT_EQ(bench.call()->allocate(&pointer, 401), kOutOfMemory);
    EXPECT_EQ(bench.call()->allocate(&pointer, 400), kSuccess);
    size_t left = 1, total = 0;
    EXPECT_EQ(bench.call()->memory_left(&left, &total), kSuccess);
    EXPECT_EQ(left, 0u);
    EXPECT_EQ(total, 1000u);
  });
}

TEST(FakeDriverTest, LaunchesAreChecked) {
  InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Load(Ptx("nothing", 2, ""));
    const uint64_t slots[] = {0, 0, 0};
    EXPECT_EQ(kernel->Launch(slots, 2, {1, 1, 1}, bench.stream), kSuccess);
    EXPECT_EQ(kernel->Launch(slots, 3, {1, 1, 1}, bench.stream), kInvalidValue);
    EXPECT_EQ(kernel->Launch(slots, 2, {0, 1, 1}, bench.stream), kInvalidValue);
    EXPECT_EQ(kernel->Launch(slots, 2, {1, 65536, 1}, bench.stream), kInvalidValue);
    Stream dead = nullptr;
    EXPECT_EQ(bench.call()->create_stream(&dead, 0), kSuccess);
    EXPECT_EQ(bench.call()->destroy_stream(dead), kSuccess);
    EXPECT_EQ(kernel->Launch(slots, 2, {1, 1, 1}, dead), kInvalidHandle);
  });
}

TEST(FakeDriverTest, ContextsBelongToThreads) {
  InProcess("", [] {
    Bench bench;
    Result other = kSuccess;
    std::thread([&] {
      DevicePointer pointer = 0;
      other = bench.call()->allocate(&pointer, 8);
    }).join();
    EXPECT_EQ(other, kInvalidContext);
    Context context = nullptr;
    EXPECT_EQ(bench.call()->pop_context(&context), kSuccess);
    DevicePointer pointer = 0;
    EXPECT_EQ(bench.call()->allocate(&pointer, 8), kInvalidContext);
  });
}

TEST(FakeDriverTest, AForkedChildHasNoDriver) {
  InProcess("", [] {
    Bench bench;
    const pid_t child = fork();
    if (child == 0) {
      DevicePointer pointer = 0;
      _exit(bench.call()->allocate(&pointer, 8) == kNotInitialized ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
}

TEST(FakeDriverTest, AScriptedCallFails) {
  InProcess("fail cuMemAlloc_v2 2 2", [] {
    Bench bench;
    bench.Allocate(8);
    DevicePointer pointer = 0;
    EXPECT_EQ(bench.call()->allocate(&pointer, 8), kOutOfMemory);
    EXPECT_EQ(bench.call()->allocate(&pointer, 8), kSuccess);
  });
}

TEST(FakeDriverTest, AStickyErrorStays) {
  InProcess("kernel BLOCK=2 lost 2 716", [] {
    Bench bench;
    const auto good = bench.Load(Ptx("add BLOCK=1", 0, ""));
    const auto bad = bench.Load(Ptx("add BLOCK=2", 0, ""));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(good->Launch(nullptr, 0, {1, 1, 1}, bench.stream), 0);
    EXPECT_EQ(bad->Launch(nullptr, 0, {1, 1, 1}, bench.stream), kSuccess);
    EXPECT_EQ(bench.call()->synchronize_stream(bench.stream), kSuccess);
    EXPECT_EQ(bad->Launch(nullptr, 0, {1, 1, 1}, bench.stream), kSuccess);
    EXPECT_EQ(bench.call()->synchronize_stream(bench.stream), kMisalignedAddress);
    DevicePointer pointer = 0;
    EXPECT_EQ(bench.call()->allocate(&pointer, 8), kMisalignedAddress);
    EXPECT_EQ(good->Launch(nullptr, 0, {1, 1, 1}, bench.stream), kMisalignedAddress);
  });
}

TEST(FakeDriverTest, ALaunchThatLosesTheCardLivesSoManyCalls) {
  InProcess("kernel BLOCK=2 lost 2 716\nkernel BLOCK=2 lives 3", [] {
    Bench bench;
    const auto bad = bench.Load(Ptx("add BLOCK=2", 0, ""));
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(bad->Launch(nullptr, 0, {1, 1, 1}, bench.stream), kSuccess);
    }
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(bench.call()->query_stream(bench.stream), kNotReady);
    }
    EXPECT_EQ(bench.call()->query_stream(bench.stream), kMisalignedAddress);
  });
}

TEST(FakeDriverTest, ATwinThatFaultsIsAnIllegalAddress) {
  InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Load(Ptx("crash", 4, "crash"));
    const uint64_t slots[] = {0, 0, 0, 0};
    EXPECT_EQ(kernel->Launch(slots, 4, {1, 1, 1}, bench.stream), kSuccess);
    EXPECT_EQ(bench.call()->synchronize_stream(bench.stream), kIllegalAddress);
  });
}

TEST(FakeDriverTest, ALaunchThatHangsIsNeverReady) {
  InProcess("kernel hang hang 1", [] {
    Bench bench;
    auto* const kernel = bench.Load(Ptx("hang", 0, "")).release();  // unloading would wait for it
    EXPECT_EQ(kernel->Launch(nullptr, 0, {1, 1, 1}, bench.stream), kSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(bench.call()->query_stream(bench.stream), kNotReady);
  });
}

// Time of one launch on the card's clock, with or without the inputs in the cache.
float Elapsed(Bench& bench, const CudaKernel& kernel, DevicePointer flushed, size_t flush_bytes) {
  Event start = nullptr, end = nullptr;
  EXPECT_EQ(bench.call()->create_event(&start, 0), kSuccess);
  EXPECT_EQ(bench.call()->create_event(&end, 0), kSuccess);
  if (flush_bytes > 0) {
    EXPECT_EQ(bench.call()->fill(flushed, 1, flush_bytes / 4, bench.stream), kSuccess);
  }
  EXPECT_EQ(bench.call()->record_event(start, bench.stream), kSuccess);
  EXPECT_EQ(kernel.Launch(nullptr, 0, {1, 1, 1}, bench.stream), kSuccess);
  EXPECT_EQ(bench.call()->record_event(end, bench.stream), kSuccess);
  EXPECT_EQ(bench.call()->synchronize_stream(bench.stream), kSuccess);
  float milliseconds = -1;
  EXPECT_EQ(bench.call()->elapsed(&milliseconds, start, end), kSuccess);
  EXPECT_EQ(bench.call()->destroy_event(start), kSuccess);
  EXPECT_EQ(bench.call()->elapsed(&milliseconds, start, end), kInvalidHandle);
  return milliseconds * 1e6f;
}

TEST(FakeDriverTest, EventsTellScriptedTimes) {
  InProcess("l2_bytes 1000\nwarm_ns 200\nkernel a times 5000 4000", [] {
    Bench bench;
    const DevicePointer buffer = bench.Allocate(4000);
    const auto kernel = bench.Load(Ptx("a", 0, ""));
    EXPECT_NEAR(Elapsed(bench, *kernel, buffer, 2000), 5000, 1);
    EXPECT_NEAR(Elapsed(bench, *kernel, buffer, 2000), 4000, 1);
    EXPECT_NEAR(Elapsed(bench, *kernel, buffer, 1996), 3800, 1);  // less than twice the cache
    EXPECT_NEAR(Elapsed(bench, *kernel, buffer, 0), 3800, 1);
  });
}

TEST(FakeDriverTest, AColdClockIsSlow) {
  InProcess("ramp_ms 200\nkernel a times 1000", [] {
    Bench bench;
    const auto kernel = bench.Load(Ptx("a", 0, ""));
    EXPECT_GT(Elapsed(bench, *kernel, 0, 0), 1500);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_NEAR(Elapsed(bench, *kernel, 0, 0), 1000, 1);
  });
}

TEST(FakeDriverTest, AWaitHoldsTheStream) {
  InProcess("", [] {
    Bench bench;
    void* memory = nullptr;
    EXPECT_EQ(bench.call()->host_allocate(&memory, 64, kHostDeviceMap), kSuccess);
    auto* words = static_cast<std::atomic<uint32_t>*>(memory);
    const auto address = reinterpret_cast<DevicePointer>(memory);
    EXPECT_EQ(bench.call()->wait_value(bench.stream, address, 3, kWaitGreaterOrEqual), kSuccess);
    EXPECT_EQ(bench.call()->write_value(bench.stream, address + 4, 9, 0), kSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(bench.call()->query_stream(bench.stream), kNotReady);
    EXPECT_EQ(words[1].load(), 0u);
    words[0].store(4);
    EXPECT_EQ(bench.call()->synchronize_stream(bench.stream), kSuccess);
    EXPECT_EQ(words[1].load(), 9u);
  });
}

TEST(FakeDriverTest, ACapturedStreamRunsNothing) {
  InProcess("", [] {
    Bench bench;
    using SetCapture = void (*)(Stream, int);
    void* library = dlopen(getenv("PHOBOS_CUDA_LIBRARY"), RTLD_NOW);
    const auto capture = reinterpret_cast<SetCapture>(dlsym(library, "phobos_fake_set_capture"));
    const DevicePointer to = bench.Put({1});
    const float two = 2;
    capture(bench.stream, kCaptureActive);
    CaptureStatus status = kCaptureNone;
    EXPECT_EQ(bench.call()->capture_status(bench.stream, &status), kSuccess);
    EXPECT_EQ(status, kCaptureActive);
    EXPECT_EQ(bench.call()->copy(to, reinterpret_cast<DevicePointer>(&two), 4, bench.stream), 0);
    DevicePointer other = 0;
    EXPECT_EQ(bench.call()->allocate(&other, 8), kStreamCaptureUnsupported);
    CaptureMode mode = kCaptureRelaxed;
    EXPECT_EQ(bench.call()->exchange_capture_mode(&mode), kSuccess);
    EXPECT_EQ(mode, kCaptureGlobal);
    EXPECT_EQ(bench.call()->allocate(&other, 8), kSuccess);
    capture(bench.stream, kCaptureNone);
    EXPECT_EQ(bench.Get(to, 1)[0], 1);
  });
}

TEST(FakeDriverTest, AnotherProcessOpensAnAllocation) {
  InProcess("", [] {
    // The child is there before the driver, which it must load for itself.
    int to_child[2], to_parent[2];
    ASSERT_EQ(pipe(to_child), 0);
    ASSERT_EQ(pipe(to_parent), 0);
    const pid_t child = fork();
    IpcHandle handle;
    if (child == 0) {
      if (read(to_child[0], &handle, sizeof(handle)) != sizeof(handle)) _exit(1);
      Bench bench;
      DevicePointer pointer = 0;
      EXPECT_EQ(bench.call()->ipc_open(&pointer, handle, kIpcLazyPeerAccess), kSuccess);
      EXPECT_EQ(bench.Get(pointer, 2), (std::vector<float>{7, 8}));
      EXPECT_EQ(bench.call()->ipc_close(pointer), kSuccess);
      EXPECT_EQ(bench.call()->ipc_close(pointer), kInvalidValue);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    Bench bench;
    const DevicePointer mine = bench.Put({7, 8});
    EXPECT_EQ(bench.call()->ipc_handle(&handle, mine), kSuccess);
    ASSERT_EQ(write(to_child[1], &handle, sizeof(handle)), ssize_t{sizeof(handle)});
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
}

TEST(FakeDriverTest, TheTraceHasEveryCall) {
  const auto calls = InProcess("", [] {
    Bench bench;
    bench.Allocate(123);
    const auto kernel = bench.Load(Ptx("add BLOCK=7", 0, ""));
    EXPECT_EQ(kernel->Launch(nullptr, 0, {1, 1, 1}, bench.stream), kSuccess);
    EXPECT_EQ(bench.call()->synchronize_stream(bench.stream), kSuccess);
  });
  const auto has = [&](const std::string& call) {
    return std::find(calls.begin(), calls.end(), call) != calls.end();
  };
  EXPECT_TRUE(has("cuInit"));
  EXPECT_TRUE(has("cuMemAlloc_v2 123"));
  EXPECT_TRUE(has("cuLaunchKernel // phobos-tuner: add BLOCK=7"));
  EXPECT_FALSE(has("cuMemFree_v2"));
}

}  // namespace
}  // namespace phobos::launch::cuda
