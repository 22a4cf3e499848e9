// SPDX-License-Identifier: Apache-2.0
//
// The C++ client against a fake tuner: launches, what they remember and ask, and their errors.
#include "client/cpp/kernel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "client/launch/host.h"
#include "tests/client/cpp/kernel_fixture.h"
#include "tests/sanitizer.h"

namespace phobos {
namespace {

namespace proto = tuner::v1;
using phobos::testing::AddGrid;
using phobos::testing::AddReference;
using std::chrono::milliseconds;

class KernelTest : public phobos::testing::KernelFixture {};

TEST_F(KernelTest, TheFirstLaunchTunesAndLaterOnesAskNobody) {
  const auto kernel = Open(true);
  Arrays a(1000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  EXPECT_TRUE(a.IsSum());
  EXPECT_EQ(tuner_.tunes, 1);
  EXPECT_EQ(tuner_.sources, 1);
  const int lookups = tuner_.lookups;
  for (int i = 0; i < 100; ++i) {
    Arrays b(1000);
    ASSERT_EQ(Launch(*kernel, b), "ok");
    EXPECT_TRUE(b.IsSum());
  }
  EXPECT_EQ(tuner_.lookups, lookups);
  EXPECT_EQ(tuner_.tunes, 1);

  Arrays c(77);  // another value of the key
  ASSERT_EQ(Launch(*kernel, c), "ok");
  EXPECT_TRUE(c.IsSum());
  EXPECT_EQ(tuner_.tunes, 2);
}

TEST_F(KernelTest, ASecondClientTakesTheStoredWinner) {
  tuner_.Store(1000, 1);
  const auto kernel = Open(true);
  Arrays a(1000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  EXPECT_TRUE(a.IsSum());
  EXPECT_EQ(tuner_.tunes, 0);
  const auto plan = kernel->plans().Present({1000});
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->variant().variant, 1);
  EXPECT_EQ(plan->facts().generation, 1);
}

TEST_F(KernelTest, WhatTheTuneSends) {
  const auto kernel = Open(true);
  Arrays a(1000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  const proto::Open open = tuner_.last_open();
  EXPECT_EQ(open.device_uuid(), "host");
  ASSERT_EQ(open.extents_size(), 1);
  EXPECT_EQ(open.extents(0).value(), 1000);
  EXPECT_EQ(std::vector<int64_t>(open.tensor_bytes().begin(), open.tensor_bytes().end()),
            (std::vector<int64_t>{4000, 4000, 4000}));
  EXPECT_TRUE(open.options().flush_l2());
  EXPECT_FALSE(open.options().has_rtol());
  EXPECT_EQ(open.newer_than_generation(), 0);
  const proto::Args args = tuner_.last_args();
  ASSERT_EQ(args.grids_size(), 2);
  EXPECT_EQ(args.grids(0).grid().x(), 4);
  EXPECT_EQ(args.grids(1).grid().x(), 2);
  ASSERT_EQ(args.buffers_size(), 3);
  EXPECT_EQ(args.buffers(0).address_mod_256(),
            static_cast<int>(reinterpret_cast<uintptr_t>(a.x.data()) % 256));
  const proto::Expected expected = tuner_.last_expected();
  ASSERT_EQ(expected.buffers_size(), 1);
  EXPECT_EQ(expected.buffers(0).parameter(), "out");
  EXPECT_EQ(expected.replaced_size(), 0);
  EXPECT_EQ(tuner_.LastExpected("out")[999], 999.5f);
  EXPECT_EQ(a.x[0], 0);  // the reference changed its copy only
}

TEST_F(KernelTest, MemoryIsUsedAgain) {
  const auto kernel = Open(true);
  Arrays a(1000), b(999);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  ASSERT_EQ(Launch(*kernel, b), "ok");
  EXPECT_EQ(tuner_.tunes, 2);
  EXPECT_EQ(tuner_.side().fetched(), 1);
}

TEST_F(KernelTest, AnAnswerThatIsThereAlreadyIsOverwritten) {
  const auto kernel = Open(true);
  for (const size_t n : {1000, 1 << 19}) {  // the reference's: copied, and laid over
    Arrays a(n);
    for (size_t i = 0; i < a.out.size(); ++i) a.out[i] = a.x[i] + a.y[i];
    ASSERT_TRUE(kernel->Tune(a.Arguments(), AddGrid).ok());
    const proto::Expected expected = tuner_.last_expected();
    ASSERT_EQ(expected.replaced_size(), 1);
    EXPECT_EQ(expected.replaced(0).parameter(), "out");
    const std::vector<float> sent = tuner_.LastArgument("out");
    for (size_t i = 0; i < sent.size(); ++i) ASSERT_GE(std::abs(sent[i] - a.out[i]), 1) << i;
    EXPECT_EQ(tuner_.LastExpected("out")[10], 10.5f);
    EXPECT_TRUE(a.IsSum());  // the caller's own array is left alone
    EXPECT_EQ(tuner_.LastArgument("y")[5], 0.5f);
  }
}

TEST_F(KernelTest, WithoutAReferenceFirstChoicesUntilTuned) {
  const auto kernel = Open(false);
  Arrays a(1000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  EXPECT_TRUE(a.IsSum());
  EXPECT_EQ(tuner_.tunes, 0);
  const int lookups = tuner_.lookups;
  for (int i = 0; i < 50; ++i) ASSERT_EQ(Launch(*kernel, a), "ok");
  EXPECT_LE(tuner_.lookups, lookups + 1);  // at most once a second

  TuneCall call;
  call.reference = AddReference;
  const auto result = kernel->Tune(a.Arguments(), AddGrid, call);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->winner, 1);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  EXPECT_EQ(kernel->plans().Present({1000})->variant().variant, 1);
}

TEST_F(KernelTest, FirstChoicesAreLookedUpAgainAfterASecond) {
  const auto kernel = Open(false);
  Arrays a(1000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  EXPECT_EQ(kernel->plans().Present({1000}), nullptr);
  tuner_.Store(1000, 1);  // by somebody else
  std::this_thread::sleep_for(milliseconds(1100));
  ASSERT_EQ(Launch(*kernel, a), "ok");
  ASSERT_NE(kernel->plans().Present({1000}), nullptr);
  EXPECT_EQ(kernel->plans().Present({1000})->variant().variant, 1);
}

TEST_F(KernelTest, AWinnerStaysUntilThisProcessTunes) {
  tuner_.Store(1000, 0);
  const auto kernel = Open(true);
  Arrays a(1000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  const auto old_plan = kernel->plans().Present({1000});
  EXPECT_EQ(old_plan->variant().variant, 0);
  tuner_.Store(1000, 1);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  EXPECT_EQ(kernel->plans().Present({1000}), old_plan);

  const auto cached = kernel->Tune(a.Arguments(), AddGrid);
  ASSERT_TRUE(cached.ok());
  EXPECT_EQ(cached->generation, 2);
  EXPECT_EQ(tuner_.last_expected().buffers_size(), 0);  // the reference was not called
  EXPECT_FALSE(old_plan->IsCurrent());
  const auto outcome = old_plan->Launch(nullptr, {1, 1, 1});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(*outcome, Plan::Outcome::kLookAgain);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  EXPECT_EQ(kernel->plans().Present({1000})->variant().variant, 1);
}

TEST_F(KernelTest, ForceWantsANewerGenerationThanTheLastSeen) {
  const auto kernel = Open(true);
  Arrays a(1000);
  TuneCall force;
  force.force = true;
  ASSERT_TRUE(kernel->Tune(a.Arguments(), AddGrid, force).ok());
  EXPECT_EQ(tuner_.last_open().newer_than_generation(), -1);
  const auto second = kernel->Tune(a.Arguments(), AddGrid, force);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(tuner_.last_open().newer_than_generation(), 1);
  EXPECT_EQ(second->generation, 2);
}

TEST_F(KernelTest, ForceInANewProcessTunesAgain) {
  tuner_.Store(1000, 1);
  const auto kernel = Open(true);
  Arrays a(1000);
  TuneCall force;
  force.force = true;
  const auto again = kernel->Tune(a.Arguments(), AddGrid, force);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(tuner_.last_open().newer_than_generation(), 1);
  EXPECT_EQ(again->generation, 2);
}

TEST_F(KernelTest, ATuneRefusesAddressesBeforeItReadsThem) {
  const auto kernel = Open(true);
  Arrays a(1000);
  std::vector<Argument> arguments = a.Arguments();
  arguments[0] = Argument::Tensor(static_cast<float*>(nullptr), {1000});
  Status status = kernel->Launch(arguments, AddGrid);
  EXPECT_EQ(status.message(), "x is at address 0");
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  arguments[0] = Argument::Tensor(a.out.data(), {1000});
  status = kernel->Tune(arguments, AddGrid).status();
  EXPECT_NE(status.message().find("overlaps x"), std::string::npos) << status.message();
  EXPECT_EQ(tuner_.tunes, 0);
}

TEST_F(KernelTest, AZeroGridLaunchesNothingAndNeverTunes) {
  const auto kernel = Open(true);
  Arrays a(0);
  a.x.reserve(1), a.y.reserve(1), a.out.reserve(1);
  EXPECT_EQ(Launch(*kernel, a), "ok");
  EXPECT_EQ(tuner_.tunes, 0);
}

TEST_F(KernelTest, ALaunchThatTunesNamesWhatWasLeftOut) {
  const auto kernel = Open(true);
  Arrays a(1000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "add: left out BLOCK=256: wrong_result: out[3]: got 1, want 2");
  warnings_.clear();
  ASSERT_TRUE(kernel->Tune(a.Arguments(), AddGrid).ok());
  EXPECT_TRUE(warnings_.empty());  // tune() returns it all
}

TEST_F(KernelTest, UnprovenFirstChoicesWarnOnce) {
  tuner_.race_verdict = compiler::v1::RACE_VERDICT_UNPROVEN;
  const auto kernel = Open(false);
  Arrays a(1000), b(999);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  ASSERT_EQ(Launch(*kernel, b), "ok");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("not proved free of races (line 3)"), std::string::npos);
}

TEST_F(KernelTest, SubstitutionsAreToldAndNotKept) {
  tuner_.Store(1000, 0);
  tuner_.substitution = "the winner BLOCK=512 has 32-bit offsets";
  const auto kernel = Open(true);
  Arrays a(1000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "add: the winner BLOCK=512 has 32-bit offsets");
  EXPECT_EQ(kernel->plans().Present({1000})->facts().substitution,
            "the winner BLOCK=512 has 32-bit offsets");
}

TEST_F(KernelTest, ARecordingOfOtherExtentsIsToldOnce) {
  for (const int64_t n : {1000, 999, 998}) tuner_.Store(n, 0);
  tuner_.recorded_extents = {{"N", 1000}};
  const auto kernel = Open(true);
  Arrays same(1000), other(999), another(998);
  ASSERT_EQ(Launch(*kernel, same), "ok");
  EXPECT_TRUE(warnings_.empty());
  ASSERT_EQ(Launch(*kernel, other), "ok");
  ASSERT_EQ(Launch(*kernel, another), "ok");
  ASSERT_EQ(Launch(*kernel, other), "ok");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("add: the variant that is launched is not proved free of races, the "
                              "recording that saw none was made at N=1000"),
            std::string::npos);
}

TEST_F(KernelTest, ArtifactsThatCannotBeReadAreFetched) {
  tuner_.hides_paths = true;
  tuner_.Store(1000, 0);
  tuner_.Store(2000, 1);
  const auto kernel = Open(true);
  Arrays a(1000), b(2000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  ASSERT_EQ(Launch(*kernel, b), "ok");
  EXPECT_TRUE(a.IsSum());
  EXPECT_TRUE(b.IsSum());
  EXPECT_EQ(tuner_.fetched_artifacts, 2);
}

TEST_F(KernelTest, AnArtifactThatChangedOnDiskIsNotRun) {
  // The other variant's file is a library too, with a function of the same name.
  tuner_.file_of = 1;
  tuner_.Store(1000, 0);
  const auto kernel = Open(true);
  Arrays a(1000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  EXPECT_TRUE(a.IsSum());
  EXPECT_EQ(tuner_.fetched_artifacts, 1);  // the right bytes, from the daemon
  tuner_.spoils_artifacts = true;
  tuner_.Store(2000, 0);
  Arrays b(2000);
  const std::string said = Launch(*kernel, b);
  EXPECT_NE(said.find(" does not hold the bytes that its name stands for; delete the file"),
            std::string::npos)
      << said;
  EXPECT_FALSE(b.IsSum());
}

// Before any launch, and after one, whose plan is at hand for arguments of the same shapes.
TEST_F(KernelTest, WrongArgumentsAreNamed) {
  const auto kernel = Open(true);
  Arrays a(1000);
  const auto message = [&](std::vector<Argument> arguments) {
    return kernel->Launch(arguments, AddGrid).message();
  };
  const std::vector<Argument> good = a.Arguments();
  std::vector<double> wide(1000);
  for (const bool after_a_launch : {false, true}) {
    SCOPED_TRACE(after_a_launch);
    if (after_a_launch) {
      ASSERT_EQ(message(good), "");
    }
    EXPECT_EQ(message({good[0], good[1]}), "add has 3 parameters, but 2 arguments were given");
    EXPECT_EQ(message({Argument::Tensor(wide.data(), {1000}), good[1], good[2]}),
              "x: a tensor of f64 for a tensor of f32");
    EXPECT_EQ(message({Argument::Scalar(1.0f), good[1], good[2]}),
              "x: a scalar of f32 for a tensor of f32");
    EXPECT_EQ(message({Argument::Tensor(a.x.data(), {10, 100}), good[1], good[2]}),
              "x: an array of rank 2 for one of 1");
    EXPECT_EQ(message({good[0], Argument::Tensor(a.y.data(), {999}), good[2]}),
              "y: N is 999 here but 1000 in a parameter before");
    EXPECT_NE(message({good[0], good[1], good[0]}).find("out, which the kernel writes, overlaps x"),
              std::string::npos);
    const auto misspelt = [](const Meta& m) { return Grid{m["BLOK"], 1, 1}; };
    EXPECT_EQ(kernel->Launch(good, misspelt).code(), Code::kInvalidArgument);
  }
}

TEST_F(KernelTest, ThreadsShareAKernel) {
  const auto kernel = Open(true);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Arrays a(static_cast<size_t>(300 + (t + i) % 3));
        if (Launch(*kernel, a) != "ok" || !a.IsSum()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(KernelTest, AForkedChildGoesOn) {
  if (RunsUnder("tsan")) {
    GTEST_SKIP() << "threads after a fork of a threaded process are beyond ThreadSanitizer";
  }
  const auto kernel = Open(true);
  Arrays a(1000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  const pid_t child = fork();
  if (child == 0) {
    Arrays b(1000), c(2000);
    const bool good =
        Launch(*kernel, b) == "ok" && b.IsSum() && Launch(*kernel, c) == "ok" && c.IsSum();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(tuner_.tunes, 2);
  Arrays d(2000);
  EXPECT_EQ(Launch(*kernel, d), "ok");
  EXPECT_EQ(tuner_.tunes, 2);  // what the child tuned
}

TEST_F(KernelTest, AdoptedResultsAreUsed) {
  const auto kernel = Open(true);
  Result result;
  result.kernel = "add";
  result.key = {{"N", 1000}};
  result.extents = result.key;
  result.winner = 0;
  ASSERT_TRUE(kernel->plans().Adopt(result).ok());
  Arrays a(1000);
  ASSERT_EQ(Launch(*kernel, a), "ok");
  EXPECT_EQ(tuner_.tunes, 0);
  EXPECT_EQ(kernel->plans().Present({1000})->variant().variant, 0);
}

TEST_F(KernelTest, WarmReturnsOnceTheDaemonOwnsAll) {
  const auto kernel = Open(true);
  Arrays a(1000);
  TuneRequest request;
  request.extents = {1000};
  for (const Argument& argument : a.Arguments()) request.values.push_back(argument.bits);
  request.callbacks.grid = [](int32_t, const auto&) { return Grid{4, 1, 1}; };
  request.callbacks.reference = [](ReferenceCall& call) {
    ReferenceArguments arguments(call);
    return AddReference(arguments);
  };
  ASSERT_TRUE(kernel->plans().Warm(request).ok());
  EXPECT_EQ(tuner_.last_expected().buffers_size(), 1);
  EXPECT_EQ(tuner_.Generation(1000), 0);
}

TEST_F(KernelTest, CurrentResult) {
  const auto kernel = Open(true);
  EXPECT_FALSE((*kernel->plans().CurrentResult({1000})).has_value());
  tuner_.Store(1000, 1);
  const auto result = kernel->plans().CurrentResult({1000});
  ASSERT_TRUE(result.ok() && result->has_value());
  EXPECT_EQ((*result)->winner, 1);
}

TEST(PlanSource, RefusesTextThatIsNone) {
  const auto client = Client::Open();
  EXPECT_EQ(PlanSource::Open(client, {"\xff", "f.py", "k", ""}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(
      PlanSource::Open(client, {std::string((1 << 20) + 1, 'x'), "f.py", "k", ""}).status().code(),
      Code::kInvalidArgument);
}

TEST_F(KernelTest, AsManyThreadsAsThereCanBe) {
  options_.threads = std::numeric_limits<int>::max();
  const auto pool = Client::Open(options_)->Pool("host");
  ASSERT_TRUE(pool.ok());
  EXPECT_EQ((*pool)->threads(), launch::kMostThreads);
}

TEST_F(KernelTest, ANumberOfThreadsThatIsNoneIsSaid) {
  for (const char* value : {"bogus", "-1", "0", "1e3", "3abc", " 3", "0x4"}) {
    setenv("PHOBOS_THREADS", value, 1);
    const auto hello = Client::Open(options_)->Hello();
    ASSERT_FALSE(hello.ok()) << value;
    EXPECT_EQ(hello.status().code(), Code::kInvalidArgument);
    EXPECT_NE(hello.status().message().find("PHOBOS_THREADS"), std::string::npos);
  }
  for (const char* value : {"", "1", "12"}) {
    setenv("PHOBOS_THREADS", value, 1);
    EXPECT_TRUE(Client::Open(options_)->Hello().ok()) << value;
  }
  setenv("PHOBOS_THREADS", "bogus", 1);
  options_.threads = 2;  // it is not looked at
  EXPECT_TRUE(Client::Open(options_)->Hello().ok());
  unsetenv("PHOBOS_THREADS");
}

}  // namespace
}  // namespace phobos
