// SPDX-License-Identifier: Apache-2.0
//
// Tunes as its callers see it: joins, deaths, force, cancelling, with real threads.
#include "daemon/engine/join/tunes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "daemon/error/error.h"
#include "daemon/process/timing_lock.h"
#include "tests/daemon/engine/engines.h"

namespace phobos::engine {
namespace {

using ::testing::HasSubstr;

class TunesTest : public ::testing::Test, public EngineFixture {};

TEST_F(TunesTest, TunesOnceThenHits) {
  Begin();
  TuningCaller first(*this, 1);
  ASSERT_TRUE(first.Run(OpenFor(16)).ok());
  EXPECT_FALSE(first.was_hit());
  const tuner::v1::Result result = first.result();
  EXPECT_EQ(result.generation(), 1);
  EXPECT_EQ(result.winner(), 1);
  EXPECT_EQ(result.kernel(), "add");
  EXPECT_EQ(result.device().uuid(), "host");
  EXPECT_EQ(result.asked_by(), "uid 1000 pid 1");
  EXPECT_EQ(result.lock(), "flock");
  EXPECT_EQ(result.daemon_version(), "test");
  EXPECT_TRUE(result.options().flush_l2());
  EXPECT_EQ(result.key(0).name(), "N");
  EXPECT_EQ(result.key_digest().size(), 64);
  EXPECT_GT(result.finished_unix_ms(), 0);
  EXPECT_EQ(result.compiler_fingerprint(), "fake compiler 1");

  TuningCaller second(*this, 2);
  ASSERT_TRUE(second.Run(OpenFor(16)).ok());
  EXPECT_TRUE(second.was_hit());
  EXPECT_EQ(second.result().generation(), 1);
  EXPECT_EQ(tunes, 1);
}

TEST_F(TunesTest, AnotherKeyValueTunesAgain) {
  Begin();
  ASSERT_TRUE(TuningCaller(*this, 1).Run(OpenFor(16)).ok());
  ASSERT_TRUE(TuningCaller(*this, 1).Run(OpenFor(32)).ok());
  EXPECT_EQ(tunes, 2);
}

TEST_F(TunesTest, AsksForTheSourceAndGoesOn) {
  Start();
  TuningCaller caller(*this, 1);
  caller.Open(OpenFor(16));
  EXPECT_TRUE(caller.sink().Wait(tuner::v1::TuneEvent::kNeedSource).has_need_source());
  tuner::v1::Open open = OpenFor(16);
  open.mutable_kernel()->set_source_text(kSource);
  EXPECT_TRUE(caller.Run(open).ok());
  EXPECT_EQ(caller.result().generation(), 1);
}

TEST_F(TunesTest, BadSourcesAreTheCallersError) {
  Start();
  TuningCaller caller(*this, 1);
  tuner::v1::Open open = OpenFor(16, "syntax error");
  open.mutable_kernel()->set_source_text("syntax error");
  EXPECT_EQ(caller.Run(open).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error::DetailOf(caller.sink().status()).reason(), tuner::v1::ERROR_REASON_BAD_SOURCE);
}

TEST_F(TunesTest, ACompilerThatIsGoneIsNotTheTextsFault) {
  Start();
  TuningCaller caller(*this, 1);
  tuner::v1::Open open = OpenFor(16, "no compiler");
  open.mutable_kernel()->set_source_text("no compiler");
  EXPECT_EQ(caller.Run(open).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(error::DetailOf(caller.sink().status()).reason(), tuner::v1::ERROR_REASON_UNSPECIFIED);
}

TEST_F(TunesTest, AKernelThatTheTextHasNotIsItsOwnReason) {
  Start();
  TuningCaller caller(*this, 1);
  tuner::v1::Open open = OpenFor(16);
  open.mutable_kernel()->set_source_text(kSource);
  open.mutable_kernel()->set_kernel("sub");
  EXPECT_EQ(caller.Run(open).code(), absl::StatusCode::kInvalidArgument);
  const tuner::v1::ErrorDetail detail = error::DetailOf(caller.sink().status());
  EXPECT_EQ(detail.reason(), tuner::v1::ERROR_REASON_UNKNOWN_KERNEL);
  EXPECT_EQ(detail.kernel(), "sub");
  EXPECT_THAT(std::string(caller.sink().status().message()), HasSubstr("it has add"));
}

// Eight callers of one key at once: one compile, one tune, one Result.
TEST_F(TunesTest, EightThreadsJoinOneTune) {
  Begin();
  constexpr int kCallers = 8;
  absl::BlockingCounter joined(kCallers);
  before_compile = nullptr;
  tune = [&](auto&, auto&, auto&, auto&, auto&, auto*) {
    joined.Wait();  // all of them wait for this one
    return absl::StatusOr<tuner::v1::Result>(ResultWith(0));
  };
  std::vector<std::unique_ptr<TuningCaller>> callers;
  for (int i = 0; i < kCallers; ++i)
    callers.push_back(std::make_unique<TuningCaller>(*this, i + 1));
  std::vector<std::thread> threads;
  for (auto& caller : callers) {
    threads.emplace_back([&] {
      caller->Open(OpenFor(16));
      // Leads or follows.
      while (caller->sink().events().empty()) absl::SleepFor(absl::Milliseconds(1));
      joined.DecrementCount();
      if (caller->sink().events()[0].has_lead() && caller->AwaitLead()) {
        caller->SendArgs();
        if (caller->AwaitArgsOwned()) caller->SendExpected();
      }
      EXPECT_TRUE(caller->sink().WaitForEnd().ok()) << caller->sink().status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> results;
  for (auto& caller : callers) results.insert(caller->result().SerializeAsString());
  EXPECT_EQ(results.size(), 1);
  EXPECT_EQ(tunes, 1);
  EXPECT_EQ(runner->compiles, 1);
}

// Callers that come and go at random: whoever stays gets a Result, and the key is never tuned
// twice.
TEST_F(TunesTest, ManyThreadsWithDeathsAgree) {
  Begin();
  std::vector<std::thread> threads;
  std::atomic<int> answered{0};
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      TuningCaller caller(*this, i + 1);
      caller.Open(OpenFor(64));
      const bool dies = i % 2 == 0;
      if (dies) {
        if (i % 4 == 0) absl::SleepFor(absl::Microseconds(50 * i));
        return;  // whatever it was told, it is gone
      }
      if (caller.AwaitLead()) {
        caller.SendArgs();
        if (caller.AwaitArgsOwned()) caller.SendExpected();
      }
      EXPECT_TRUE(caller.sink().WaitForEnd().ok()) << caller.sink().status();
      EXPECT_EQ(caller.result().generation(), 1);
      ++answered;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, 8);
  EXPECT_EQ(tunes, 1);
}

TEST_F(TunesTest, ALostLeaderIsReplaced) {
  Begin();
  TuningCaller first(*this, 1);
  first.Open(OpenFor(16));
  ASSERT_TRUE(first.AwaitLead());
  TuningCaller second(*this, 2);
  second.Open(OpenFor(16));
  ASSERT_TRUE(second.sink().Wait(tuner::v1::TuneEvent::kFollow).has_follow());
  first.Leave();
  ASSERT_TRUE(second.AwaitLead());
  second.SendArgs();
  ASSERT_TRUE(second.AwaitArgsOwned());
  second.SendExpected();
  EXPECT_TRUE(second.sink().WaitForEnd().ok());
  EXPECT_EQ(second.result().asked_by(), "uid 1000 pid 2");
}

TEST_F(TunesTest, ATuneWithItsAnswersFinishesForNobody) {
  Begin();
  absl::Notification may_go;
  tune = [&](auto&, auto&, auto&, auto&, auto&, auto*) {
    may_go.WaitForNotification();
    return absl::StatusOr<tuner::v1::Result>(ResultWith(0));
  };
  {
    TuningCaller caller(*this, 1);
    caller.Open(OpenFor(16));
    ASSERT_TRUE(caller.AwaitLead());
    caller.SendArgs();
    ASSERT_TRUE(caller.AwaitArgsOwned());
    caller.SendExpected();
    while (tunes == 0) absl::SleepFor(absl::Milliseconds(1));
  }
  may_go.Notify();
  TuningCaller next(*this, 2);
  EXPECT_TRUE(next.Run(OpenFor(16)).ok());
  EXPECT_EQ(next.result().generation(), 1);
  EXPECT_EQ(tunes, 1);
}

TEST_F(TunesTest, OtherOptionsTuneAgainAndBecomeCurrent) {
  Begin();
  ASSERT_TRUE(TuningCaller(*this, 1).Run(OpenFor(16)).ok());
  tuner::v1::Open warm = OpenFor(16);
  warm.mutable_options()->set_flush_l2(false);
  TuningCaller other(*this, 1);
  ASSERT_TRUE(other.Run(warm).ok());
  EXPECT_EQ(other.result().generation(), 2);
  EXPECT_EQ(tunes, 2);
  // What is spelled out is the same as what is left open.
  tuner::v1::Open spelled = OpenFor(16);
  spelled.mutable_options()->set_flush_l2(false);
  spelled.mutable_options()->set_tie_break(tuner::v1::TIE_BREAK_FASTEST);
  TuningCaller same(*this, 1);
  ASSERT_TRUE(same.Run(spelled).ok());
  EXPECT_TRUE(same.was_hit());
}

TEST_F(TunesTest, ForceMeansNewerThanSeen) {
  Begin();
  ASSERT_TRUE(TuningCaller(*this, 1).Run(OpenFor(16)).ok());
  tuner::v1::Open force = OpenFor(16);
  force.set_newer_than_generation(1);
  TuningCaller again(*this, 1);
  ASSERT_TRUE(again.Run(force).ok());
  EXPECT_FALSE(again.was_hit());
  EXPECT_EQ(again.result().generation(), 2);
  // Another process that saw generation 1 has its newer one already.
  TuningCaller late(*this, 2);
  ASSERT_TRUE(late.Run(force).ok());
  EXPECT_TRUE(late.was_hit());
  EXPECT_EQ(late.result().generation(), 2);
  EXPECT_EQ(tunes, 2);
}

TEST_F(TunesTest, FollowOnlyJoinsOrIsRefused) {
  Begin();
  tuner::v1::Open follow = OpenFor(16);
  follow.set_follow_only(true);
  TuningCaller alone(*this, 1);
  EXPECT_EQ(alone.Run(follow).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(runner->compiles, 0);

  TuningCaller leader(*this, 2);
  leader.Open(OpenFor(16));
  ASSERT_TRUE(leader.AwaitLead());
  TuningCaller follower(*this, 3);
  follower.Open(follow);
  ASSERT_TRUE(follower.sink().Wait(tuner::v1::TuneEvent::kFollow).has_follow());
  leader.SendArgs();
  ASSERT_TRUE(leader.AwaitArgsOwned());
  leader.SendExpected();
  EXPECT_TRUE(follower.sink().WaitForEnd().ok());
  EXPECT_EQ(follower.result().generation(), 1);
}

TEST_F(TunesTest, CancelWithdrawsTheCallersWaiter) {
  Begin();
  tune = [&](auto&, auto&, auto&, auto&, tuner::StopToken stop, auto*) {
    while (!stop) absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<tuner::v1::Result>(absl::CancelledError("stopped"));
  };
  TuningCaller caller(*this, 1);
  caller.Open(OpenFor(16));
  ASSERT_TRUE(caller.AwaitLead());
  caller.SendArgs();
  ASSERT_TRUE(caller.AwaitArgsOwned());
  caller.SendExpected();
  while (tunes == 0) absl::SleepFor(absl::Milliseconds(1));
  const std::string job = caller.lead().job_id();
  EXPECT_EQ(engine->tunes().Cancel(job, {1000, 99}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(engine->tunes().Cancel("nope", caller.caller()).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(engine->tunes().Cancel(job, caller.caller()).ok());
  EXPECT_EQ(caller.sink().WaitForEnd().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(error::DetailOf(caller.sink().status()).reason(), tuner::v1::ERROR_REASON_CANCELLED);
  EXPECT_FALSE(engine->tunes().Tick());
}

// A launch that hangs does not keep the worker, and with it the card, when nobody waits for it.
TEST_F(TunesTest, AWorkerIsKilledWhenTheLastWaiterWithdraws) {
  Begin();
  tune = [&](auto&, auto&, auto&, auto&, tuner::StopToken, auto*) {
    while (workers[0]->kills == 0) absl::SleepFor(absl::Milliseconds(1));  // the launch hangs
    return absl::StatusOr<tuner::v1::Result>(absl::CancelledError("stopped"));
  };
  TuningCaller leader(*this, 1);
  leader.HandOver(OpenFor(16));
  while (tunes == 0) absl::SleepFor(absl::Milliseconds(1));
  TuningCaller follower(*this, 2);
  follower.Open(OpenFor(16));
  ASSERT_TRUE(follower.sink().Wait(tuner::v1::TuneEvent::kFollow).has_follow());
  TuningCaller queued(*this, 3);
  queued.HandOver(OpenFor(32));
  const std::string job = leader.lead().job_id();
  EXPECT_TRUE(engine->tunes().Cancel(job, leader.caller()).ok());
  EXPECT_TRUE(engine->tunes().Cancel(queued.lead().job_id(), queued.caller()).ok());
  EXPECT_EQ(workers[0]->kills, 0) << "the follower waits, and the other job does not run";
  EXPECT_TRUE(engine->tunes().Cancel(job, follower.caller()).ok());
  EXPECT_EQ(workers[0]->kills, 1);
  tune = nullptr;
  EXPECT_TRUE(TuningCaller(*this, 1).Run(OpenFor(16)).ok());
  EXPECT_EQ(workers[0]->kills, 1) << "an end that is none of a cancel kills nothing";
}

// What a worker has in its memory is its user's.
TEST_F(TunesTest, AnotherUsersTuneGetsANewWorker) {
  Begin();
  ASSERT_TRUE(TuningCaller(*this, 1, 1000).Run(OpenFor(1)).ok());
  ASSERT_TRUE(TuningCaller(*this, 2, 1000).Run(OpenFor(2)).ok());
  EXPECT_EQ(workers[0]->stops, 0);
  ASSERT_TRUE(TuningCaller(*this, 3, 1001).Run(OpenFor(3)).ok());
  EXPECT_EQ(workers[0]->stops, 1);
  ASSERT_TRUE(TuningCaller(*this, 3, 1001).Run(OpenFor(4)).ok());
  EXPECT_EQ(workers[0]->stops, 1);
  ASSERT_TRUE(TuningCaller(*this, 1, 1000).Run(OpenFor(5)).ok());
  EXPECT_EQ(workers[0]->stops, 2);
}

TEST_F(TunesTest, StoringIsAPhase) {
  Begin();
  TuningCaller caller(*this, 1);
  ASSERT_TRUE(caller.Run(OpenFor(16)).ok());
  const tuner::v1::TuneEvent last = caller.sink().Wait(tuner::v1::TuneEvent::kProgress);
  EXPECT_EQ(last.progress().phase(), tuner::v1::PHASE_STORE);
  EXPECT_EQ(last.progress().best_ns(), 1000);
}

TEST_F(TunesTest, ARunTimeoutKillsTheWorkerToo) {
  Begin();
  tune = [&](auto&, auto&, auto&, auto&, tuner::StopToken, auto*) {
    while (workers[0]->kills == 0) absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<tuner::v1::Result>(absl::CancelledError("stopped"));
  };
  tuner::v1::Open open = OpenFor(16);
  open.set_run_timeout_ms(1);
  TuningCaller caller(*this, 1);
  caller.HandOver(open);
  while (engine->tunes().Tick()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(caller.sink().WaitForEnd().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(workers[0]->kills, 1);
}

// Another daemon tunes on the card: whoever waits here is told so, and may give up.
TEST_F(TunesTest, WaitersAreToldThatTheCardIsAnothers) {
  Begin();
  const std::atomic<bool> go_on = false;
  auto others = process::TimingLock::Take(folder->path(), "host", go_on);
  ASSERT_TRUE(others.ok());
  TuningCaller caller(*this, 1);
  caller.HandOver(OpenFor(16));
  const tuner::v1::TuneEvent told = caller.sink().Wait(tuner::v1::TuneEvent::kProgress);
  EXPECT_EQ(told.progress().phase(), tuner::v1::PHASE_QUEUED);
  EXPECT_THAT(told.progress().note(), HasSubstr("another tune on this machine's processors"));
  tuner::v1::GetStatusResponse status;
  engine->FillStatus(status);
  ASSERT_EQ(status.jobs_size(), 1);
  EXPECT_EQ(status.jobs(0).progress().note(), told.progress().note());
  others = absl::CancelledError("released");
  EXPECT_TRUE(caller.sink().WaitForEnd().ok());
  EXPECT_EQ(caller.result().generation(), 1);
}

TEST_F(TunesTest, StoppedItTellsWhoWaitsAndWhoComes) {
  Begin();
  tune = [&](auto&, auto&, auto&, auto&, tuner::StopToken, auto*) {
    while (workers[0]->kills == 0) absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<tuner::v1::Result>(absl::CancelledError("stopped"));
  };
  TuningCaller caller(*this, 1);
  caller.HandOver(OpenFor(16));
  while (tunes == 0) absl::SleepFor(absl::Milliseconds(1));
  engine->Stop();
  EXPECT_TRUE(runner->is_stopped);
  EXPECT_EQ(caller.sink().WaitForEnd().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(TuningCaller(*this, 2).Run(OpenFor(16)).code(), absl::StatusCode::kUnavailable);
}

TEST_F(TunesTest, ARecordingThatDiedIsNotTriedAgainAtItsExtentsButByForce) {
  Begin();
  std::vector<int> guilty;
  tune = [&](const tuner::Spec& spec, auto&, auto&, auto&, auto&, auto* failed) {
    guilty.clear();
    for (const auto& variant : spec.guilty) guilty.push_back(variant.index());
    tuner::v1::VariantResult& variant = failed->emplace_back();
    variant.set_index(1);
    variant.set_status(tuner::v1::VARIANT_STATUS_RACE_CHECK_FAILED);
    variant.set_recording_died(true);
    return absl::StatusOr<tuner::v1::Result>(absl::FailedPreconditionError("no variant passed"));
  };
  const auto tune_again = [&](const tuner::v1::Open& open) {
    EXPECT_FALSE(TuningCaller(*this, 1).Run(open).ok());
    return guilty;
  };
  EXPECT_THAT(tune_again(OpenFor(16)), ::testing::IsEmpty());
  EXPECT_THAT(tune_again(OpenFor(16)), ::testing::ElementsAre(1));
  EXPECT_THAT(tune_again(OpenFor(17)), ::testing::IsEmpty());
  tuner::v1::Open force = OpenFor(16);
  force.set_newer_than_generation(-1);
  EXPECT_THAT(tune_again(force), ::testing::IsEmpty());
}

TEST_F(TunesTest, WhereVariantsRaceTheRemedyIsAboutThat) {
  Begin();
  tune = [](auto&, auto&, auto&, auto&, auto&, std::vector<tuner::v1::VariantResult>* failed) {
    failed->emplace_back().set_status(tuner::v1::VARIANT_STATUS_RACE);
    return absl::StatusOr<tuner::v1::Result>(absl::FailedPreconditionError("no variant passed"));
  };
  TuningCaller caller(*this, 1);
  EXPECT_FALSE(caller.Run(OpenFor(16)).ok());
  EXPECT_EQ(error::DetailOf(caller.sink().status()).remedy(), error::kRaceRemedy);
}

TEST_F(TunesTest, NoWinnerCarriesEveryReason) {
  Begin();
  tune = [](auto&, auto&, auto&, auto&, auto&, std::vector<tuner::v1::VariantResult>* failed) {
    tuner::v1::VariantResult& variant = failed->emplace_back();
    variant.set_status(tuner::v1::VARIANT_STATUS_WRONG_RESULT);
    variant.set_reason("out[0]: got 1, want 2");
    return absl::StatusOr<tuner::v1::Result>(absl::FailedPreconditionError("no variant passed"));
  };
  TuningCaller caller(*this, 1);
  EXPECT_EQ(caller.Run(OpenFor(16)).code(), absl::StatusCode::kFailedPrecondition);
  const tuner::v1::ErrorDetail detail = error::DetailOf(caller.sink().status());
  EXPECT_EQ(detail.reason(), tuner::v1::ERROR_REASON_NO_WINNER);
  ASSERT_EQ(detail.variants_size(), 1);
  EXPECT_EQ(detail.variants(0).reason(), "out[0]: got 1, want 2");
  EXPECT_EQ(detail.remedy(),
            "mend what the reasons name, or, where they differ from the reference by rounding "
            "alone, allow it with rtol= and atol=; then tune again with force");
  // Nothing was stored: the next one tunes.
  tune = nullptr;
  EXPECT_TRUE(TuningCaller(*this, 1).Run(OpenFor(16)).ok());
}

TEST_F(TunesTest, CompilersPauseWhileTheHostIsTimed) {
  Begin();
  int while_checking = -1;
  int while_timing = -1;
  tune = [&](auto&, auto&, auto&, const tuner::ProgressSink& progress, auto&, auto*) {
    tuner::v1::Progress news;
    news.set_phase(tuner::v1::PHASE_CHECK);
    progress(news);
    while_checking = runner->paused;
    news.set_phase(tuner::v1::PHASE_WARM_UP);
    progress(news);
    news.set_phase(tuner::v1::PHASE_TIMING);
    progress(news);
    while_timing = runner->paused;
    return absl::StatusOr<tuner::v1::Result>(ResultWith(0));
  };
  ASSERT_TRUE(TuningCaller(*this, 1).Run(OpenFor(16)).ok());
  EXPECT_EQ(while_checking, 0);
  EXPECT_EQ(while_timing, 1);
  EXPECT_EQ(runner->paused, 0);
}

TEST_F(TunesTest, AContendedResultIsReplacedThreeTimes) {
  Begin();
  tune = [](auto&, auto&, auto&, auto&, auto&, auto*) {
    tuner::v1::Result result = ResultWith(0);
    result.set_contended(true);
    return absl::StatusOr<tuner::v1::Result>(std::move(result));
  };
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(TuningCaller(*this, 1).Run(OpenFor(16)).ok());
  EXPECT_EQ(tunes, 4);
}

TEST_F(TunesTest, AContendedResultStaysWhileTheCardIsBusy) {
  settings.is_quiet = [](const tuner::v1::Device&) { return false; };
  Begin();
  tune = [](auto&, auto&, auto&, auto&, auto&, auto*) {
    tuner::v1::Result result = ResultWith(0);
    result.set_contended(true);
    return absl::StatusOr<tuner::v1::Result>(std::move(result));
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(TuningCaller(*this, 1).Run(OpenFor(16)).ok());
  EXPECT_EQ(tunes, 1);
}

TEST_F(TunesTest, OneUserCannotFillTheQueue) {
  settings.jobs_per_uid = 2;
  Begin();
  std::vector<std::unique_ptr<TuningCaller>> callers;
  for (int i = 0; i < 2; ++i) {
    callers.push_back(std::make_unique<TuningCaller>(*this, 1));
    callers.back()->Open(OpenFor(16 << i));
    ASSERT_TRUE(callers.back()->AwaitLead());
  }
  TuningCaller third(*this, 1);
  third.Open(OpenFor(999));
  EXPECT_EQ(third.sink().WaitForEnd().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(error::DetailOf(third.sink().status()).reason(), tuner::v1::ERROR_REASON_LIMIT);
  // Joining what is there is no new job.
  TuningCaller joiner(*this, 2);
  joiner.Open(OpenFor(16));
  EXPECT_TRUE(joiner.sink().Wait(tuner::v1::TuneEvent::kFollow).has_follow());
}

TEST_F(TunesTest, JobsOfADeviceRunInTurnAndKnowTheirPlace) {
  Begin();
  absl::Notification may_go;
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  tune = [&](auto&, auto&, auto&, auto&, auto&, auto*) {
    most = std::max<int>(most, ++running);
    may_go.WaitForNotification();
    --running;
    return absl::StatusOr<tuner::v1::Result>(ResultWith(0));
  };
  std::vector<std::unique_ptr<TuningCaller>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(std::make_unique<TuningCaller>(*this, i + 1));
    callers.back()->Open(OpenFor(16 << i));
    ASSERT_TRUE(callers.back()->AwaitLead());
    callers.back()->SendArgs();
    ASSERT_TRUE(callers.back()->AwaitArgsOwned());
    callers.back()->SendExpected();
    // In the queue before the next one comes.
    tuner::v1::GetStatusResponse status;
    do {
      status.Clear();
      engine->FillStatus(status);
    } while (status.jobs(i).progress().phase() !=
             (i == 0 ? tuner::v1::PHASE_UNSPECIFIED : tuner::v1::PHASE_QUEUED));
  }
  engine->tunes().Tick();
  tuner::v1::GetStatusResponse status;
  engine->FillStatus(status);
  ASSERT_EQ(status.jobs_size(), 3);
  EXPECT_EQ(status.jobs(0).key(), "N=16");
  EXPECT_EQ(status.jobs(1).key(), "N=32");
  EXPECT_EQ(status.jobs(1).progress().queue_position(), 1);
  EXPECT_EQ(status.jobs(2).key(), "N=64");
  EXPECT_EQ(status.jobs(2).progress().queue_position(), 2);
  may_go.Notify();
  for (auto& caller : callers) EXPECT_TRUE(caller->sink().WaitForEnd().ok());
  EXPECT_EQ(most, 1);
}

TEST_F(TunesTest, StoppingTellsTheWaiters) {
  Begin();
  tune = [&](auto&, auto&, auto&, auto&, tuner::StopToken stop, auto*) {
    while (!stop) absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<tuner::v1::Result>(absl::CancelledError("stopped"));
  };
  TuningCaller caller(*this, 1);
  caller.Open(OpenFor(16));
  ASSERT_TRUE(caller.AwaitLead());
  caller.SendArgs();
  ASSERT_TRUE(caller.AwaitArgsOwned());
  caller.SendExpected();
  while (tunes == 0) absl::SleepFor(absl::Milliseconds(1));
  TuningCaller follower(*this, 2);
  follower.Open(OpenFor(16));
  ASSERT_TRUE(follower.sink().Wait(tuner::v1::TuneEvent::kFollow).has_follow());
  caller.Leave();
  follower.Leave();
  engine.reset();
}

}  // namespace
}  // namespace phobos::engine
