// SPDX-License-Identifier: Apache-2.0
//
// The C++ client against a fake tuner: a tune's reference, grid, progress and end.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/cpp/kernel_fixture.h"

namespace phobos {
namespace {

namespace proto = tuner::v1;
using phobos::testing::AddGrid;
using phobos::testing::TuneStream;
using std::chrono::milliseconds;

class TuneTest : public phobos::testing::KernelFixture {};

TEST_F(TuneTest, ATuneThatFailsIsTheLaunchsError) {
  tuner_.during_tune = [](auto*, auto*) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "needs 7 GB more");
  };
  const auto kernel = Open(true);
  Arrays a(1000);
  const Status status = kernel->Launch(a.Arguments(), AddGrid);
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.message(), "needs 7 GB more");
  EXPECT_EQ(status.detail()->key, "N=1000");
}

TEST_F(TuneTest, AReferenceThatFails) {
  const auto kernel = Open(false);
  Arrays a(1000);
  TuneCall call;
  call.reference = [](ReferenceArguments&) {
    return Status(Code::kUnknown, "ValueError: no such thing");
  };
  const auto result = kernel->Tune(a.Arguments(), AddGrid, call);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(), "the reference failed: ValueError: no such thing");
  EXPECT_EQ(result.status().detail()->reason, ErrorReason::kReferenceFailed);
  EXPECT_EQ(result.status().detail()->key, "N=1000");
  EXPECT_EQ(tuner_.last_reference_failure(), "ValueError: no such thing");
}

TEST_F(TuneTest, TheReferenceRunsWhileTheDaemonCopiesAndMayChangeWhatItGets) {
  for (const int64_t n : {1000, 1 << 19}) {  // copied, and laid over
    Arrays a(static_cast<size_t>(n));
    const std::vector<float> x = a.x;
    std::promise<void> changed;
    std::future_status seen_while_copying = std::future_status::deferred;
    tuner_.during_copy = [&] {
      seen_while_copying = changed.get_future().wait_for(std::chrono::seconds(20));
      EXPECT_EQ(tuner_.LastArgument("x"), x);
    };
    TuneRequest request;
    request.extents = {n};
    for (const Argument& argument : a.Arguments()) request.values.push_back(argument.bits);
    request.force = true;
    request.callbacks.grid = [](int32_t, const std::vector<Constant>&) { return Grid{4, 1, 1}; };
    request.callbacks.reference = [&](ReferenceCall& call) {
      auto* const sum = static_cast<float*>(call.arguments()[0]);
      const auto* const y = static_cast<const float*>(call.arguments()[1]);
      for (int64_t i = 0; i < n; ++i) sum[i] += y[i];
      changed.set_value();
      return call.Set("out", sum, static_cast<size_t>(n) * sizeof(float));
    };
    const StatusOr<Tuned> tuned = Open(false)->plans().Tune(request);
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    EXPECT_TRUE(seen_while_copying == std::future_status::ready);
    EXPECT_EQ(a.x, x);
    std::vector<float> sum(x);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += a.y[i];
    EXPECT_EQ(tuner_.LastExpected("out"), sum);
  }
}

TEST_F(TuneTest, TheReferencesCopyInTheCallersMemory) {
  constexpr int64_t kCount = 1 << 19;
  constexpr size_t kBytes = kCount * sizeof(float);
  Arrays a(kCount);
  void* const pages =
      mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* given = static_cast<std::byte*>(pages);
  TuneRequest request;
  request.extents = {kCount};
  for (const Argument& argument : a.Arguments()) request.values.push_back(argument.bits);
  request.force = true;
  request.callbacks.grid = [](int32_t, const std::vector<Constant>&) { return Grid{4, 1, 1}; };
  request.callbacks.memory = [&](size_t parameter, int64_t bytes) -> void* {
    EXPECT_EQ(bytes, static_cast<int64_t>(kBytes));
    return parameter == 0 ? given : nullptr;
  };
  int calls = 0;
  request.callbacks.reference = [&](ReferenceCall& call) {
    ++calls;
    EXPECT_EQ(call.arguments()[0], given);
    auto* const sum = static_cast<float*>(call.arguments()[0]);
    const auto* const y = static_cast<const float*>(call.arguments()[1]);
    for (int64_t i = 0; i < kCount; ++i) sum[i] += y[i];
    return call.Set("out", sum, kBytes);
  };
  const auto plans = Open(false);
  ASSERT_TRUE(plans->plans().Tune(request).ok());
  std::vector<float> sum(a.x);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += a.y[i];
  EXPECT_EQ(tuner_.LastExpected("out"), sum);
  const auto* const kept = static_cast<const float*>(pages);
  EXPECT_EQ(std::vector<float>(kept, kept + kCount), sum);
  given += 64;
  const StatusOr<Tuned> refused = plans->plans().Tune(request);
  EXPECT_TRUE(refused.status().code() == Code::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("copy of x does not begin on a page"),
            std::string::npos)
      << refused.status().message();
  EXPECT_EQ(calls, 1);
  munmap(pages, 2 * kBytes);
}

TEST_F(TuneTest, AReferenceWithAWrongAnswerShape) {
  const auto kernel = Open(false);
  Arrays a(1000);
  TuneCall call;
  const auto message = [&] {
    return kernel->Tune(a.Arguments(), AddGrid, call).status().message();
  };
  call.reference = [](ReferenceArguments&) { return Status(); };
  EXPECT_NE(message().find("no answer for out"), std::string::npos) << message();
  call.reference = [](ReferenceArguments& arguments) {
    (void)arguments.Set<float>("out", std::vector<float>(10));
    return Status();
  };
  EXPECT_NE(message().find("40 bytes, but the tensor has 4000"), std::string::npos) << message();
  call.reference = [](ReferenceArguments& arguments) {
    (void)arguments.Set<float>("z", std::vector<float>(1000));
    return Status();
  };
  EXPECT_NE(message().find("no such tensor"), std::string::npos) << message();
  call.reference = [](ReferenceArguments& arguments) {
    (void)arguments.Set<float>("x", std::vector<float>(1000));
    return Status();
  };
  EXPECT_NE(message().find("does not write it"), std::string::npos) << message();
}

TEST_F(TuneTest, AGridThatFailsIsTheVariantsError) {
  const auto kernel = Open(true);
  Arrays a(1000);
  const auto result = kernel->Tune(a.Arguments(), [](const Meta& meta) {
    return Grid{meta["BLOCK"] == 256 ? meta["NOPE"] : 2, 1, 1};
  });
  ASSERT_TRUE(result.ok()) << result.status().message();
  const proto::Args args = tuner_.last_args();
  EXPECT_NE(args.grids(0).error().find("'NOPE'"), std::string::npos);
  EXPECT_FALSE(args.grids(0).has_grid());
  EXPECT_EQ(args.grids(1).grid().x(), 2);
}

TEST_F(TuneTest, ProgressIsTold) {
  tuner_.during_tune = [](auto*, TuneStream* stream) {
    proto::TuneEvent event;
    auto* progress = event.mutable_progress();
    progress->set_phase(proto::PHASE_TIMING);
    for (int i = 1; i <= 3; ++i) {
      progress->set_done(i);
      progress->set_total(3);
      stream->Write(event);
    }
    std::this_thread::sleep_for(milliseconds(700));
    return grpc::Status::OK;
  };
  const auto kernel = Open(true);
  Arrays a(1000);
  std::vector<int> seen;
  int ticks = 0;
  TuneCall call;
  call.progress = [&](const TuneProgress& now) {
    EXPECT_TRUE(now.leads);
    if (now.progress.phase != stub::Phase::kTiming) return false;
    if (!seen.empty() && seen.back() == now.progress.done) {
      ++ticks;
    } else {
      seen.push_back(now.progress.done);
    }
    return false;
  };
  ASSERT_TRUE(kernel->Tune(a.Arguments(), AddGrid, call).ok());
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
  EXPECT_GE(ticks, 2);  // every 200 ms, though nothing is new
}

TEST_F(TuneTest, ProgressMayCancel) {
  std::atomic<bool> left = false;
  tuner_.during_tune = [&](grpc::ServerContext* context, auto*) {
    while (!context->IsCancelled()) std::this_thread::sleep_for(milliseconds(2));
    left = true;
    return grpc::Status::CANCELLED;
  };
  const auto kernel = Open(true);
  Arrays a(1000);
  TuneCall call;
  call.progress = [&](const TuneProgress& now) { return now.leads && now.elapsed_ms > 100; };
  EXPECT_EQ(kernel->Tune(a.Arguments(), AddGrid, call).status().code(), Code::kCancelled);
  for (int i = 0; i < 2000 && !left; ++i) std::this_thread::sleep_for(milliseconds(2));
  EXPECT_TRUE(left);
}

TEST_F(TuneTest, ACancelInsideTheReferenceIsNoFailureOfIt) {
  bool interrupted = false;
  options_.interrupted = [&] { return interrupted; };
  const auto kernel = Open(false);
  Arrays a(1000);
  TuneCall call;
  call.reference = [&](ReferenceArguments&) {
    interrupted = true;  // as Ctrl-C in the middle of it
    return Status(Code::kUnknown, "KeyboardInterrupt");
  };
  EXPECT_EQ(kernel->Tune(a.Arguments(), AddGrid, call).status().code(), Code::kCancelled);
  EXPECT_EQ(tuner_.last_reference_failure(), "");
}

TEST_F(TuneTest, ATuneOutlivesTheDaemon) {
  std::atomic<int> attempts = 0;
  std::thread restarter;
  tuner_.during_tune = [&](grpc::ServerContext* context, auto*) {
    if (++attempts > 1) return grpc::Status::OK;
    restarter = std::thread([&] {
      tuner_.daemon().Stop();
      std::this_thread::sleep_for(milliseconds(300));
      tuner_.daemon().Start();
    });
    while (!context->IsCancelled()) std::this_thread::sleep_for(milliseconds(2));
    return grpc::Status::CANCELLED;
  };
  const auto kernel = Open(true);
  Arrays a(1000);
  const auto result = kernel->Tune(a.Arguments(), AddGrid);
  restarter.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(attempts, 2);
  EXPECT_EQ(result->winner, 1);
}

}  // namespace
}  // namespace phobos
