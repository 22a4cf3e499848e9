// SPDX-License-Identifier: Apache-2.0
//
// The C++ client on arrays of a card, against a fake tuner and the stand-in driver: what is handed
// over and how, where launches go, and what a captured stream, a forked child, another card's
// memory or the host's makes of it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "client/cpp/gpu/gpu.h"
#include "client/cpp/kernel.h"
#include "client/launch/cuda/card.h"
#include "client/launch/cuda/driver.h"
#include "tests/client/cpp/fake_tuner.h"
#include "tests/gpu/fake_driver/in_process.h"

namespace phobos {
namespace {

namespace proto = tuner::v1;
using fake::InProcess;
using launch::cuda::DevicePointer;
using phobos::testing::FakeTuner;

Grid AddGrid(const Meta& meta) { return {(meta["N"] + meta["BLOCK"] - 1) / meta["BLOCK"], 1, 1}; }

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int64_t Count(const std::vector<std::string>& calls, const std::string& name) {
  return std::count_if(calls.begin(), calls.end(),
                       [&](const std::string& call) { return call.rfind(name, 0) == 0; });
}

// What is called after the last cuDeviceGetCount, which a test makes as a mark.
std::vector<std::string> AfterMark(const std::vector<std::string>& calls) {
  const auto mark = std::find_if(calls.rbegin(), calls.rend(), [](const std::string& call) {
    return call.rfind("cuDeviceGetCount", 0) == 0;
  });
  return std::vector<std::string>(mark.base(), calls.end());
}

// The calls between the last two.
std::vector<std::string> BetweenMarks(std::vector<std::string> calls) {
  const size_t after = AfterMark(calls).size();
  calls.resize(calls.size() - after - 1);
  return AfterMark(calls);
}

// A process with a driver, a context, a tuner and a client.
struct Bench {
  explicit Bench(int card = 0) : driver(*launch::cuda::CudaDriver::Load()) {
    unsetenv("PHOBOS_TUNE");
    const auto cards = launch::cuda::ListCards(*driver);
    for (const launch::cuda::Card& one : *cards) tuner.cards.push_back(one.uuid);
    tuner.takes_cuda_ipc = true;
    Use(card);
    EXPECT_EQ(call()->create_stream(&stream, launch::cuda::kStreamNonBlocking), 0);
    ClientOptions options;
    options.socket = tuner.socket();
    options.autostart = false;
    client = Client::Open(options);
  }

  const launch::cuda::CudaDriver& call() const { return *driver; }

  // Makes a card's context current.
  void Use(int card) {
    launch::cuda::Context context = nullptr;
    EXPECT_EQ(call()->retain_context(&context, card), 0);
    EXPECT_EQ(call()->push_context(context), 0);
  }

  std::unique_ptr<Kernel> Open(bool with_reference, int card = 0) {
    KernelOptions options;
    options.source = phobos::testing::kAddSource;
    options.file_name = "add.py";
    options.name = "add";
    options.device_uuid = tuner.cards[static_cast<size_t>(card)];
    if (with_reference) {
      options.reference = [this](ReferenceArguments& arguments) {
        ++references;
        const std::span<float> x = arguments.Tensor<float>("x"), y = arguments.Tensor<float>("y");
        std::vector<float> sum(x.size());
        for (size_t i = 0; i < sum.size(); ++i) sum[i] = x[i] + y[i];
        x[0] = -1;  // its copies are its own
        return arguments.Set<float>("out", sum);
      };
    }
    auto kernel = Kernel::Open(client, options);
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    return *std::move(kernel);
  }

  DevicePointer Put(const std::vector<float>& values) {
    DevicePointer pointer = 0;
    // In the middle of an allocation, as allocators of frameworks place tensors.
    EXPECT_EQ(call()->allocate(&pointer, 512 + values.size() * sizeof(float)), 0);
    pointer += 512;
    EXPECT_EQ(call()->copy(pointer, reinterpret_cast<DevicePointer>(values.data()),
                           values.size() * sizeof(float), stream),
              0);
    EXPECT_EQ(call()->synchronize_stream(stream), 0);
    return pointer;
  }

  std::vector<float> Get(DevicePointer from, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(call()->copy(reinterpret_cast<DevicePointer>(values.data()), from,
                           count * sizeof(float), stream),
              0);
    EXPECT_EQ(call()->synchronize_stream(stream), 0);
    return values;
  }

  void Mark() {
    int count = 0;
    call()->device_count(&count);
  }

  void Capture(launch::cuda::CaptureStatus status) {
    using SetCapture = void (*)(launch::cuda::Stream, int);
    void* library = dlopen(getenv("PHOBOS_CUDA_LIBRARY"), RTLD_NOW);
    reinterpret_cast<SetCapture>(dlsym(library, "phobos_fake_set_capture"))(stream, status);
  }

  std::shared_ptr<const launch::cuda::CudaDriver> driver;
  launch::cuda::Stream stream = nullptr;
  int references = 0;
  FakeTuner tuner;
  std::shared_ptr<Client> client;
};

// Arrays of one launch.
struct Arrays {
  Arrays(Bench& on, size_t n) : bench(on), host_x(n), host_y(n, 0.5f) {
    for (size_t i = 0; i < n; ++i) host_x[i] = static_cast<float>(i);
    x = bench.Put(host_x);
    y = bench.Put(host_y);
    out = bench.Put(std::vector<float>(n, -7));
  }
  static Argument Tensor(DevicePointer pointer, size_t n) {
    return Argument::Tensor(reinterpret_cast<float*>(pointer), {static_cast<int64_t>(n)});
  }
  std::vector<Argument> Arguments() const {
    return {Tensor(x, host_x.size()), Tensor(y, host_x.size()), Tensor(out, host_x.size())};
  }
  std::string Launch(Kernel& kernel) const {
    const Status status = kernel.Launch(Arguments(), AddGrid, bench.stream);
    return status.ok() ? "ok" : status.message();
  }
  bool IsSum() const {
    const std::vector<float> got = bench.Get(out, host_x.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] != host_x[i] + host_y[i]) return false;
    }
    return true;
  }

  Bench& bench;
  std::vector<float> host_x, host_y;
  DevicePointer x = 0, y = 0, out = 0;
};

// What another process would read by the stand-in driver's handle.
std::vector<float> ByHandle(const proto::BufferRef& ref) {
  struct {
    int pid, fd;
    size_t bytes;
  } ticket = {};
  memcpy(&ticket, ref.cuda_ipc_handle().data(), sizeof(ticket));
  std::vector<float> values(static_cast<size_t>(ref.bytes()) / sizeof(float));
  EXPECT_EQ(pread(ticket.fd, values.data(), static_cast<size_t>(ref.bytes()), ref.offset_bytes()),
            ref.bytes());
  return values;
}

TEST(GpuKernelTest, TunesOnHandlesAndLaunchesTheWinner) {
  InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Open(true);
    const Arrays a(bench, 1000);
    ASSERT_EQ(a.Launch(*kernel), "ok");
    EXPECT_TRUE(a.IsSum());
    EXPECT_EQ(bench.tuner.tunes, 1);
    EXPECT_EQ(bench.tuner.last_open().device_uuid(), bench.tuner.cards[0]);
    const proto::Args args = bench.tuner.last_args();
    ASSERT_EQ(args.buffers_size(), 3);
    for (const proto::BufferRef& ref : args.buffers()) {
      EXPECT_EQ(ref.cuda_ipc_handle().size(), 64u);
      EXPECT_EQ(ref.segment(), 0u);
      EXPECT_EQ(ref.offset_bytes(), 512);
      EXPECT_EQ(ref.address_mod_256(), 0);
    }
    EXPECT_EQ(ByHandle(args.buffers(0)), a.host_x);
    EXPECT_EQ(ByHandle(args.buffers(1)), a.host_y);
    std::vector<float> sum(1000);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = a.host_x[i] + a.host_y[i];
    EXPECT_EQ(bench.tuner.LastExpected("out"), sum);
    EXPECT_EQ(bench.tuner.last_expected().buffers(0).cuda_ipc_handle(), "");
    EXPECT_EQ(bench.Get(a.x, 1000), a.host_x);  // only read
  });
}

TEST(GpuKernelTest, WithoutIpcTheBytesGoThroughTheHost) {
  InProcess("no_ipc", [] {
    Bench bench;
    const auto kernel = bench.Open(true);
    const Arrays a(bench, 1000);
    ASSERT_EQ(a.Launch(*kernel), "ok");
    EXPECT_TRUE(a.IsSum());
    const proto::Args args = bench.tuner.last_args();
    for (const proto::BufferRef& ref : args.buffers()) {
      EXPECT_EQ(ref.cuda_ipc_handle(), "");
      EXPECT_EQ(ref.segment(), 1u);
    }
    EXPECT_EQ(bench.tuner.LastArgument("y"), a.host_y);
  });
}

TEST(GpuKernelTest, ADaemonThatTakesNoHandlesGetsNone) {
  InProcess("", [] {
    Bench bench;
    bench.tuner.takes_cuda_ipc = false;
    const Arrays a(bench, 1000);
    ASSERT_EQ(a.Launch(*bench.Open(true)), "ok");
    EXPECT_EQ(bench.tuner.last_args().buffers(0).cuda_ipc_handle(), "");
    EXPECT_EQ(bench.tuner.LastArgument("y"), a.host_y);
  });
}

TEST(GpuKernelTest, HandlesThatAreOfNoUseAreReplacedByBytes) {
  InProcess("", [] {
    Bench bench;
    bench.tuner.leads_again = 1;
    const Arrays a(bench, 1000);
    ASSERT_EQ(a.Launch(*bench.Open(true)), "ok");
    EXPECT_TRUE(a.IsSum());
    EXPECT_EQ(bench.tuner.last_args().buffers(0).cuda_ipc_handle(), "");
    EXPECT_EQ(bench.tuner.LastArgument("y"), a.host_y);
    EXPECT_EQ(bench.references, 2);
  });
}

TEST(GpuKernelTest, AnOutputThatHoldsTheAnswerIsReplaced) {
  InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Open(true);
    const Arrays a(bench, 1000);
    ASSERT_EQ(a.Launch(*kernel), "ok");
    EXPECT_TRUE(a.IsSum());
    TuneCall call;
    call.force = true;
    call.stream = bench.stream;
    ASSERT_TRUE(kernel->Tune(a.Arguments(), AddGrid, call).ok());
    const proto::Expected expected = bench.tuner.last_expected();
    ASSERT_EQ(expected.replaced_size(), 1);
    EXPECT_EQ(expected.replaced(0).parameter(), "out");
    EXPECT_EQ(expected.replaced(0).segment(), 1u);
    EXPECT_EQ(expected.replaced(0).cuda_ipc_handle(), "");
    EXPECT_NE(bench.tuner.LastArgument("out")[5], a.host_x[5] + a.host_y[5]);
    EXPECT_TRUE(a.IsSum());  // the caller's own is as it was
  });
}

TEST(GpuKernelTest, ALaterLaunchIsOneLaunchOfTheDriver) {
  const auto calls = InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Open(true);
    const Arrays a(bench, 1000);
    ASSERT_EQ(a.Launch(*kernel), "ok");
    bench.Mark();
    for (int i = 0; i < 10; ++i) ASSERT_EQ(a.Launch(*kernel), "ok");
    const auto plan = kernel->plans().Present({1000});
    const uint64_t values[] = {a.x, a.y, a.out};
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(plan->Launch(values, {4, 1, 1}, bench.stream).ok());
    bench.Mark();  // what ends here makes calls too
  });
  const auto late = BetweenMarks(calls);
  EXPECT_EQ(Count(late, "cuLaunchKernel"), 20);
  EXPECT_EQ(Count(late, "cuCtxGetCurrent"), 20);
  EXPECT_EQ(late.size(), 40u);
  EXPECT_EQ(Count(calls, "cuModuleLoadDataEx"), 1);
}

TEST(GpuKernelTest, ThreadsWithoutAContextUseThePrimaryOne) {
  const auto calls = InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Open(true);
    const Arrays a(bench, 1000);
    std::string said;
    std::thread([&] { said = a.Launch(*kernel); }).join();
    EXPECT_EQ(said, "ok");
    ASSERT_EQ(a.Launch(*kernel), "ok");
    EXPECT_TRUE(a.IsSum());
  });
  EXPECT_EQ(Count(calls, "cuModuleLoadDataEx"), 1);
}

TEST(GpuKernelTest, EachCardHasItsOwn) {
  const auto calls = InProcess("cards 2", [] {
    Bench bench;
    const auto first = bench.Open(true), second = bench.Open(true, 1);
    const Arrays a(bench, 1000);
    ASSERT_EQ(a.Launch(*first), "ok");
    bench.Use(1);
    launch::cuda::Stream own = nullptr;
    EXPECT_EQ(bench.call()->create_stream(&own, 0), 0);
    std::swap(own, bench.stream);
    const Arrays b(bench, 500);
    ASSERT_EQ(b.Launch(*second), "ok");
    EXPECT_TRUE(b.IsSum());
    EXPECT_EQ(bench.tuner.last_open().device_uuid(), bench.tuner.cards[1]);
    // The other card's arrays, while this one's context is current.
    std::swap(own, bench.stream);
    ASSERT_EQ(a.Launch(*first), "ok");
    EXPECT_TRUE(a.IsSum());
    bench.tuner.Store(1000, 1);
    const std::string crossed = a.Launch(*second);
    EXPECT_TRUE(Has(crossed, "x is in the memory of card 0, and the kernel runs on " +
                                 bench.tuner.cards[1] + " (card 1)"))
        << crossed;
  });
  EXPECT_EQ(Count(calls, "cuModuleLoadDataEx"), 2);
}

TEST(GpuKernelTest, HostMemoryIsRefusedByName) {
  const auto calls = InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Open(true);
    const Arrays a(bench, 1000);
    std::vector<float> host(1000);
    std::vector<Argument> arguments = a.Arguments();
    arguments[1] = Argument::Tensor(host.data(), {1000});
    const auto said = [&] {
      const Status status = kernel->Launch(arguments, AddGrid, bench.stream);
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      return status.message();
    };
    const std::string wanted =
        "y is in host memory, and the kernel runs on " + bench.tuner.cards[0];
    EXPECT_TRUE(Has(said(), wanted)) << said();
    EXPECT_EQ(bench.tuner.tunes, 0);
    ASSERT_EQ(a.Launch(*kernel), "ok");
    bench.Mark();
    EXPECT_TRUE(Has(said(), wanted)) << said();  // also once it is prepared
    void* pinned = nullptr;
    EXPECT_EQ(bench.call()->host_allocate(&pinned, 4000, 0), 0);
    arguments[1] = Argument::Tensor(static_cast<float*>(pinned), {1000});
    EXPECT_TRUE(Has(said(), wanted)) << said();
  });
  EXPECT_EQ(Count(AfterMark(calls), "cuLaunchKernel"), 0);
}

TEST(GpuKernelTest, ACardCanBeTunedOnArraysOfTheHost) {
  InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Open(true);
    const Arrays a(bench, 1000);
    std::vector<float> x(1000, 1), y(1000, 2), out(1000);
    std::vector<Argument> arguments = {Argument::Tensor(x.data(), {1000}),
                                       Argument::Tensor(y.data(), {1000}),
                                       Argument::Tensor(out.data(), {1000})};
    const auto tuned = kernel->Tune(arguments, AddGrid);
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    EXPECT_EQ(bench.tuner.last_args().buffers(0).cuda_ipc_handle(), "");
    EXPECT_EQ(bench.tuner.LastArgument("y"), y);
    ASSERT_EQ(a.Launch(*kernel), "ok");
    EXPECT_TRUE(a.IsSum());
    TuneCall call;
    call.force = true;
    arguments[0] = a.Arguments()[0];
    const auto mixed = kernel->Tune(arguments, AddGrid, call);
    EXPECT_TRUE(Has(mixed.status().message(), "y is in host memory")) << mixed.status().message();
  });
}

TEST(GpuKernelTest, ACaptureTakesWhatIsLoaded) {
  InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Open(true);
    const Arrays a(bench, 1000), b(bench, 77);
    ASSERT_EQ(a.Launch(*kernel), "ok");
    EXPECT_TRUE(a.IsSum());
    const int lookups = bench.tuner.lookups;
    bench.Capture(launch::cuda::kCaptureActive);
    EXPECT_EQ(a.Launch(*kernel), "ok");
    const std::string said = b.Launch(*kernel);
    EXPECT_TRUE(Has(said, "being captured, and nothing is loaded for N=77")) << said;
    EXPECT_TRUE(Has(said, "before the capture")) << said;
    TuneCall call;
    call.stream = bench.stream;
    call.force = true;
    const auto tuned = kernel->Tune(a.Arguments(), AddGrid, call);
    EXPECT_TRUE(Has(tuned.status().message(), "before the capture")) << tuned.status().message();
    bench.Capture(launch::cuda::kCaptureNone);
    EXPECT_EQ(bench.tuner.lookups, lookups);
    EXPECT_EQ(bench.tuner.tunes, 1);
    EXPECT_EQ(b.Launch(*kernel), "ok");
  });
}

TEST(GpuKernelTest, ACaptureNeitherLoadsNorAsks) {
  const auto calls = InProcess("", [] {
    Bench bench;
    bench.tuner.Store(1000, 1);
    const auto kernel = bench.Open(true);
    const Arrays a(bench, 1000);
    // Known to the process, and not loaded in any context.
    ASSERT_TRUE(kernel->plans().Find({1000}).ok());
    bench.Mark();
    const int lookups = bench.tuner.lookups;
    bench.Capture(launch::cuda::kCaptureActive);
    const std::string said = a.Launch(*kernel);
    EXPECT_TRUE(Has(said, "not loaded in its context")) << said;
    EXPECT_EQ(bench.tuner.lookups, lookups);
  });
  EXPECT_EQ(Count(AfterMark(calls), "cuModuleLoadDataEx"), 0);
}

TEST(GpuKernelTest, ACaptureTakesFirstChoicesThatAreOutOfDate) {
  InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Open(false);
    const Arrays a(bench, 1000);
    ASSERT_EQ(a.Launch(*kernel), "ok");
    const int lookups = bench.tuner.lookups;
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    bench.Capture(launch::cuda::kCaptureActive);
    EXPECT_EQ(a.Launch(*kernel), "ok");
    EXPECT_EQ(bench.tuner.lookups, lookups);
    bench.Capture(launch::cuda::kCaptureNone);
    EXPECT_EQ(a.Launch(*kernel), "ok");
    EXPECT_GT(bench.tuner.lookups, lookups);
  });
}

TEST(GpuKernelTest, ACaptureElsewhereIsNotBroken) {
  // The stand-in refuses what a capture forbids, but to a thread that is relaxed about it.
  InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Open(true);
    const Arrays a(bench, 1000);
    bench.Capture(launch::cuda::kCaptureActive);
    std::string said;
    std::thread([&] {
      const Status status = kernel->Launch(a.Arguments(), AddGrid, nullptr);
      said = status.ok() ? "ok" : status.message();
    }).join();
    EXPECT_EQ(said, "ok");
    bench.Capture(launch::cuda::kCaptureNone);
    EXPECT_EQ(bench.call()->synchronize_stream(nullptr), 0);
    EXPECT_TRUE(a.IsSum());
  });
}

TEST(GpuKernelTest, AForkedChildIsToldWhy) {
  InProcess("", [] {
    Bench bench;
    const auto kernel = bench.Open(true);
    const Arrays a(bench, 1000);
    ASSERT_EQ(a.Launch(*kernel), "ok");
    const auto plan = kernel->plans().Present({1000});
    const pid_t child = fork();
    if (child == 0) {
      const uint64_t values[] = {a.x, a.y, a.out};
      const std::string by_plan = plan->Launch(values, {4, 1, 1}, bench.stream).status().message();
      // The tuner's threads are not in this child, so nobody may be asked.
      const std::string by_card = bench.client->Card(bench.tuner.cards[0]).status().message();
      _exit(Has(by_plan, "forked child") && Has(by_plan, "spawn") && Has(by_card, "forked child")
                ? 0
                : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
}

TEST(GpusTest, ACardThatCannotBeReadIsAnsweredWithWhy) {
  InProcess("cards 3\nfail cuDeviceGet 1 101\nfail cuDeviceGetUuid 2 999", [] {
    const auto cards = Gpus::Open();
    ASSERT_TRUE(cards.ok()) << cards.status().message();
    const std::string last = "GPU-f0f1f2f3-f4f5-f6f7-f0f1-f2f3f4f5f602";
    for (int unreadable : {0, 1}) {
      const auto uuid = (*cards)->UuidOf(unreadable);
      EXPECT_EQ(uuid.status().code(), Code::kFailedPrecondition);
      EXPECT_TRUE(Has(uuid.status().message(), "GPU " + std::to_string(unreadable) + " cannot"))
          << uuid.status().message();
    }
    EXPECT_EQ(*(*cards)->UuidOf(2), last);
    EXPECT_EQ((*cards)->UuidOf(3).status().code(), Code::kNotFound);
    const auto found = (*cards)->Find("GPU-1");
    EXPECT_TRUE(Has(found.status().message(), "it sees: " + last)) << found.status().message();
  });
}

TEST(GpuKernelTest, WithoutADriverItSaysWhy) {
  InProcess("cards 0", [] {
    FakeTuner tuner;
    KernelOptions options;
    options.source = phobos::testing::kAddSource;
    options.name = "add";
    options.device_uuid = "GPU-1";
    ClientOptions client;
    client.socket = tuner.socket();
    const auto kernel = Kernel::Open(Client::Open(client), options);
    float x = 0;
    const Argument one = Argument::Tensor(&x, {1});
    const Status status = (*kernel)->Launch({one, one, one}, AddGrid);
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_TRUE(Has(status.message(), "no NVIDIA GPU can be used")) << status.message();
    ASSERT_NE(status.detail(), nullptr);
    EXPECT_EQ(status.detail()->reason, ErrorReason::kNoDevice);
  });
}

}  // namespace
}  // namespace phobos
