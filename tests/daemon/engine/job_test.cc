// SPDX-License-Identifier: Apache-2.0
//
// Every transition of the state machine in docs/life_of_a_request.md, one event at a time, with no
// thread and no clock.
#include "daemon/engine/join/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "daemon/error/error.h"
#include "tests/daemon/engine/job_fixture.h"

namespace phobos::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobTest : public JobFixture {};

TEST_F(JobTest, TheFirstLeadsAndTheOthersFollow) {
  EXPECT_EQ(Join(1), Work::kNone);
  EXPECT_EQ(Join(2), Work::kNone);
  EXPECT_THAT(Told(1), ElementsAre(Event::kLead));
  EXPECT_THAT(Told(2), ElementsAre(Event::kFollow));
  const tuner::v1::Lead lead = LeadOf(1);
  EXPECT_EQ(lead.job_id(), "job-1");
  EXPECT_THAT(lead.variants(), ElementsAre(0, 1));  // 2 is excluded by the space
  ASSERT_EQ(lead.segments_size(), 1);
  EXPECT_EQ(lead.segments(0).ticket().size(), 16);
  ASSERT_EQ(lead.buffers_size(), 3);
  EXPECT_EQ(lead.buffers(0).parameter(), "x");
  EXPECT_EQ(lead.buffers(0).bytes(), 64);
  EXPECT_FALSE(lead.buffers(0).is_written());
  EXPECT_TRUE(lead.buffers(2).is_written());
  EXPECT_NE(lead.buffers(2).offset_bytes(), lead.buffers(2).expected_offset_bytes());
}

TEST_F(JobTest, GoesFromArgsToDone) {
  Join(1);
  Join(2);
  GoToReady(1);
  EXPECT_THAT(Told(1), ElementsAre(Event::kLead, Event::kArgsOwned));
  EXPECT_EQ(Compile(), Work::kQueue);
  EXPECT_EQ(job_->stage(), Stage::kQueued);
  const absl::StatusOr<Job::Inputs> inputs = job_->OnStarted(now_);
  ASSERT_TRUE(inputs.ok());
  EXPECT_EQ(inputs->arguments->tensors().size(), 3);
  EXPECT_EQ(inputs->asked_by.pid, 1);
  EXPECT_EQ(inputs->grids.size(), 2);
  const std::vector<Waiter> waiters = job_->Finish();
  EXPECT_EQ(waiters.size(), 2);
  EXPECT_EQ(job_->stage(), Stage::kEnded);
}

TEST_F(JobTest, CompilingMayComeFirst) {
  Join(1);
  EXPECT_EQ(Compile(), Work::kNone);
  GoToReference(1);
  EXPECT_EQ(job_->OnExpected(1, ExpectedFor(LeadOf(1)), now_), Work::kCopy);
  EXPECT_EQ(DoCopy(), Work::kQueue);
}

TEST_F(JobTest, TheArgumentsAreTheLeadersBytes) {
  Join(1);
  const tuner::v1::Lead lead = LeadOf(1);
  const auto redeemed = segments_.Redeem(lead.segments(0).ticket(), 1000, now_);
  ASSERT_TRUE(redeemed.ok());
  const std::string bytes(64, 'x');
  ASSERT_EQ(pwrite(redeemed->fd, bytes.data(), bytes.size(), lead.buffers(0).offset_bytes()), 64);
  ASSERT_EQ(job_->OnArgs(1, ArgsFor(lead), now_), Work::kCopy);
  const Job::Copy copy = job_->TakeCopy();
  ASSERT_EQ(copy.tensors.size(), 3);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(copy.tensors[0].bytes.data()), 64), bytes);
}

// Deaths and elections.

TEST_F(JobTest, ALeaderThatLeavesBeforeArgsIsReplaced) {
  Join(1);
  Join(2);
  EXPECT_EQ(job_->Leave(1, Job::Departure::kLost, now_), Work::kNone);
  EXPECT_THAT(Told(2), ElementsAre(Event::kFollow, Event::kLead));
  GoToReady(2);
}

TEST_F(JobTest, ALeaderThatLeavesWhileItsArgsAreCopiedIsReplaced) {
  Join(1);
  Join(2);
  ASSERT_EQ(job_->OnArgs(1, ArgsFor(LeadOf(1)), now_), Work::kCopy);
  Job::Copy copy = job_->TakeCopy();
  EXPECT_EQ(job_->Leave(1, Job::Departure::kLost, now_), Work::kNone);
  EXPECT_EQ(job_->stage(), Stage::kLeading);
  // The copy that was under way is of no use: the second leader's arguments count.
  EXPECT_EQ(job_->OnCopied(copy, Copied(copy), now_), Work::kNone);
  EXPECT_EQ(job_->stage(), Stage::kLeading);
  GoToReady(2);
}

TEST_F(JobTest, ALeaderThatLeavesDuringItsReferenceIsReplaced) {
  Join(1);
  Join(2);
  GoToReference(1);
  EXPECT_EQ(job_->Leave(1, Job::Departure::kLost, now_), Work::kNone);
  EXPECT_THAT(Told(2), ElementsAre(Event::kFollow, Event::kLead));
  GoToReady(2);
}

TEST_F(JobTest, NobodyIsNeededOnceTheAnswersAreThere) {
  Join(1);
  GoToReference(1);
  ASSERT_EQ(job_->OnExpected(1, ExpectedFor(LeadOf(1)), now_), Work::kCopy);
  Job::Copy copy = job_->TakeCopy();
  EXPECT_EQ(job_->Leave(1, Job::Departure::kLost, now_), Work::kNone);
  EXPECT_EQ(job_->OnCopied(copy, Copied(copy), now_), Work::kNone);
  EXPECT_EQ(job_->stage(), Stage::kReady);
  EXPECT_EQ(Compile(), Work::kQueue);
  EXPECT_FALSE(job_->stop());
}

TEST_F(JobTest, ItEndsWhenEveryWaiterWithdrew) {
  Join(1);
  Join(2);
  GoToRunning(1);
  EXPECT_EQ(job_->Leave(1, Job::Departure::kWithdrawn, now_), Work::kNone);
  EXPECT_FALSE(job_->stop());
  EXPECT_EQ(job_->Leave(2, Job::Departure::kWithdrawn, now_), Work::kForget);
  EXPECT_TRUE(job_->stop());
}

TEST_F(JobTest, ItGoesOnForOneThatWasLostWhoeverWithdraws) {
  Join(1);
  Join(2);
  GoToRunning(1);
  EXPECT_EQ(job_->Leave(1, Job::Departure::kLost, now_), Work::kNone);
  EXPECT_EQ(job_->Leave(2, Job::Departure::kWithdrawn, now_), Work::kNone);
  EXPECT_FALSE(job_->stop());
  // A step of one that is no longer there ends nothing.
  EXPECT_EQ(job_->Refuse(1, absl::InvalidArgumentError("out of turn"), now_), Work::kNone);
  EXPECT_FALSE(job_->stop());
  EXPECT_EQ(job_->stage(), Stage::kRunning);
}

TEST_F(JobTest, OneThatWasLostBeforeTheArgumentsWereOwnedCountsForNothing) {
  Join(1);
  Join(2);
  EXPECT_EQ(job_->Leave(2, Job::Departure::kLost, now_), Work::kNone);
  GoToRunning(1);
  EXPECT_EQ(job_->Leave(1, Job::Departure::kWithdrawn, now_), Work::kForget);
  EXPECT_TRUE(job_->stop());
}

TEST_F(JobTest, ItEndsWhenTheOnlyWaiterIsLostBeforeItsAnswers) {
  Join(1);
  GoToReference(1);
  EXPECT_EQ(job_->Leave(1, Job::Departure::kLost, now_), Work::kForget);
  EXPECT_TRUE(job_->stop());
}

TEST_F(JobTest, WhoCannotLeadIsRefusedWhereNobodyLeads) {
  EXPECT_EQ(Join(1, FollowOnly()), Work::kForget);
  EXPECT_EQ(EndOf(1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("reference"));
}

TEST_F(JobTest, WhoCannotLeadIsPassedOverInElections) {
  Join(1);
  Join(2, FollowOnly());
  Join(3);
  job_->Leave(1, Job::Departure::kLost, now_);
  EXPECT_THAT(Told(2), ElementsAre(Event::kFollow));
  EXPECT_THAT(Told(3), ElementsAre(Event::kFollow, Event::kLead));
  EXPECT_EQ(job_->Leave(3, Job::Departure::kLost, now_), Work::kForget);
  EXPECT_EQ(EndOf(2).code(), absl::StatusCode::kFailedPrecondition);
}

// References that raise.

TEST_F(JobTest, AReferenceThatRaisesFailsItsCallerAndElectsTheNext) {
  Join(1);
  Join(2);
  GoToReference(1);
  EXPECT_EQ(job_->OnReferenceFailed(1, "ZeroDivisionError", now_), Work::kNone);
  EXPECT_FALSE(sinks_[1]->is_closed()) << "the kernel may be what is wrong";
  GoToReady(2);
  EXPECT_EQ(Compile(), Work::kQueue);
  EXPECT_EQ(error::DetailOf(EndOf(1)).reason(), tuner::v1::ERROR_REASON_REFERENCE_FAILED);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("ZeroDivisionError"));
  EXPECT_FALSE(sinks_[2]->is_closed());
}

TEST_F(JobTest, AReferenceThatRaisesAfterTheCompilingIsToldAtOnce) {
  Join(1);
  Join(2);
  EXPECT_EQ(Compile(), Work::kNone);
  EXPECT_EQ(job_->OnReferenceFailed(1, "boom", now_), Work::kNone);
  EXPECT_EQ(error::DetailOf(EndOf(1)).reason(), tuner::v1::ERROR_REASON_REFERENCE_FAILED);
  GoToReference(2);
}

// A reference for what the kernel is meant to do need not fit one that does not compile.
TEST_F(JobTest, AKernelThatDoesNotCompileIsToldBeforeAFailedReference) {
  for (const bool compiles_first : {false, true}) {
    Make();
    Join(1);
    Join(2, FollowOnly());
    compile::CompiledSpace space;
    space.variants.resize(2);
    space.variants[1].variant.set_status(compiler::v1::VARIANT_STATUS_COMPILE_ERROR);
    space.variants[1].variant.set_reason("does nothing with its value");
    if (compiles_first) EXPECT_EQ(job_->OnCompiled(space, now_), Work::kNone);
    EXPECT_EQ(job_->OnReferenceFailed(1, "writes no out", now_),
              compiles_first ? Work::kForget : Work::kNone);
    if (!compiles_first) EXPECT_EQ(job_->OnCompiled(space, now_), Work::kForget);
    for (const int waiter : {1, 2}) {
      const absl::Status end = EndOf(waiter);
      EXPECT_THAT(std::string(end.message()), HasSubstr("does nothing with its value"));
      EXPECT_EQ(error::DetailOf(end).reason(), tuner::v1::ERROR_REASON_NO_WINNER);
      EXPECT_EQ(error::DetailOf(end).variants_size(), 1);
    }
  }
}

TEST_F(JobTest, ALateErrorOfTheCompilerEndsAllOfAFailedReference) {
  Join(1);
  job_->OnReferenceFailed(1, "boom", now_);
  EXPECT_EQ(job_->OnCompiled(absl::InvalidArgumentError("line 3"), now_), Work::kForget);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("line 3"));
}

TEST_F(JobTest, AfterTwoReferencesAllGetTheError) {
  Join(1);
  Join(2);
  Join(3);
  GoToReference(1);
  job_->OnReferenceFailed(1, "first", now_);
  EXPECT_EQ(job_->OnReferenceFailed(2, "second", now_), Work::kNone);  // also before Args
  EXPECT_EQ(Compile(), Work::kForget);
  EXPECT_EQ(error::DetailOf(EndOf(3)).reason(), tuner::v1::ERROR_REASON_REFERENCE_FAILED);
  EXPECT_EQ(error::DetailOf(EndOf(3)).kernel(), "add");
  EXPECT_EQ(error::DetailOf(EndOf(3)).key(), "N=16");
}

TEST_F(JobTest, AFailedReferenceWithNobodyElseToLeadFailsTheFollowers) {
  Join(1);
  Join(2, FollowOnly());
  EXPECT_EQ(job_->OnReferenceFailed(1, "boom", now_), Work::kNone);
  EXPECT_EQ(Compile(), Work::kForget);
  EXPECT_EQ(error::DetailOf(EndOf(2)).reason(), tuner::v1::ERROR_REASON_REFERENCE_FAILED);
}

// What a leader may not send.

TEST_F(JobTest, BadArgsCostTheLeaderOnly) {
  const std::function<void(tuner::v1::Args&)> spoilers[] = {
      [](auto& args) { args.mutable_grids()->RemoveLast(); },
      [](auto& args) { *args.add_grids() = args.grids(0); },
      [](auto& args) { args.mutable_grids(0)->set_variant(2); },
      [](auto& args) { args.mutable_grids(0)->clear_grid(); },
      [](auto& args) { args.mutable_grids(0)->set_error("also an error"); },
      [](auto& args) { args.mutable_buffers()->RemoveLast(); },
      [](auto& args) { *args.add_buffers() = args.buffers(0); },
      [](auto& args) { args.mutable_buffers(0)->set_parameter("alpha"); },
      [](auto& args) { args.mutable_buffers(0)->set_segment(99); },
      [](auto& args) { args.mutable_buffers(0)->set_bytes(63); },
      [](auto& args) { args.mutable_buffers(0)->set_offset_bytes(-1); },
      [](auto& args) { args.mutable_buffers(0)->set_offset_bytes(1 << 20); },
      [](auto& args) { args.mutable_buffers(0)->set_offset_bytes(INT64_MAX); },
      [](auto& args) { args.mutable_buffers(0)->set_address_mod_256(256); },
  };
  for (const auto& spoil : spoilers) {
    Make();
    Join(1);
    Join(2);
    tuner::v1::Args args = ArgsFor(LeadOf(1));
    spoil(args);
    EXPECT_EQ(job_->OnArgs(1, args, now_), Work::kNone);
    EXPECT_EQ(EndOf(1).code(), absl::StatusCode::kInvalidArgument) << args.ShortDebugString();
    EXPECT_THAT(Told(2), ElementsAre(Event::kFollow, Event::kLead));
  }
}

TEST_F(JobTest, AGridErrorIsAsGoodAsAGrid) {
  Join(1);
  tuner::v1::Args args = ArgsFor(LeadOf(1));
  args.mutable_grids(0)->clear_grid();
  args.mutable_grids(0)->set_error("the grid function raised KeyError");
  EXPECT_EQ(job_->OnArgs(1, args, now_), Work::kCopy);
}

TEST_F(JobTest, BadAnswersCostTheLeaderOnly) {
  const std::function<void(tuner::v1::Expected&)> spoilers[] = {
      [](auto& expected) { expected.clear_buffers(); },
      [](auto& expected) { expected.mutable_buffers(0)->set_bytes(1); },
      [](auto& expected) { expected.mutable_buffers(0)->set_parameter("nope"); },
      [](auto& expected) {
        *expected.add_replaced() = expected.buffers(0);
        expected.mutable_replaced(0)->set_segment(77);
      },
  };
  for (const auto& spoil : spoilers) {
    Make();
    Join(1);
    Join(2);
    GoToReference(1);
    tuner::v1::Expected expected = ExpectedFor(LeadOf(1));
    spoil(expected);
    EXPECT_EQ(job_->OnExpected(1, expected, now_), Work::kNone);
    EXPECT_EQ(EndOf(1).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Told(2), ElementsAre(Event::kFollow, Event::kLead));
  }
}

TEST_F(JobTest, StepsOutOfTurnAreRefused) {
  Join(1);
  Join(2);
  // A follower's.
  EXPECT_EQ(job_->OnArgs(2, ArgsFor(LeadOf(1)), now_), Work::kNone);
  EXPECT_EQ(EndOf(2).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(job_->stage(), Stage::kLeading);
  // The leader's, too early: it was the last.
  EXPECT_EQ(job_->OnExpected(1, ExpectedFor(LeadOf(1)), now_), Work::kForget);
  EXPECT_EQ(EndOf(1).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobTest, ASecondArgsIsRefused) {
  Join(1);
  Join(2);
  GoToReference(1);
  EXPECT_EQ(job_->OnArgs(1, ArgsFor(LeadOf(1)), now_), Work::kNone);
  EXPECT_EQ(EndOf(1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Told(2), ElementsAre(Event::kFollow, Event::kLead));
}

TEST_F(JobTest, SizesThatAreNotTheTensorsAreRefused) {
  tuner::v1::Open open = OpenFor(16);
  open.add_tensor_bytes(64);
  open.add_tensor_bytes(64);
  open.add_tensor_bytes(60);
  EXPECT_EQ(Join(1, open), Work::kForget);
  EXPECT_EQ(EndOf(1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("out has 64 bytes"));
}

// Memory.

TEST_F(JobTest, WhatDoesNotFitIsRefusedWithTheNumbers) {
  EXPECT_EQ(Join(1, OpenFor(1 << 20)), Work::kForget);
  EXPECT_EQ(EndOf(1).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(error::DetailOf(EndOf(1)).reason(), tuner::v1::ERROR_REASON_OUT_OF_MEMORY);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("1048576"));
}

TEST_F(JobTest, HugeExtentsDoNotOverflow) {
  EXPECT_EQ(Join(1, OpenFor(INT64_MAX)), Work::kForget);
  EXPECT_FALSE(EndOf(1).ok());
}

TEST_F(JobTest, ASegmentIsUsedAgain) {
  Join(1);
  const tuner::v1::SegmentGrant grant = LeadOf(1).segments(0);
  ASSERT_TRUE(segments_.Redeem(grant.ticket(), 1000, now_).ok());
  GoToReady(1);
  Make();
  tuner::v1::Open open = OpenFor(16);
  open.add_held_segments(grant.segment());
  Join(1, open);
  EXPECT_EQ(LeadOf(1).segments(0).segment(), grant.segment());
  EXPECT_EQ(LeadOf(1).segments(0).ticket(), "");
}

// Compiling and running that fail.

TEST_F(JobTest, ACompilerThatFailsEndsItForAll) {
  Join(1);
  Join(2);
  EXPECT_EQ(job_->OnCompiled(absl::InternalError("broken"), now_), Work::kForget);
  EXPECT_EQ(EndOf(1).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(EndOf(2).code(), absl::StatusCode::kInternal);
}

TEST_F(JobTest, ATuneThatFailsEndsItForAll) {
  Join(1);
  Join(2);
  GoToRunning(1);
  EXPECT_EQ(job_->Fail(absl::FailedPreconditionError("no variant passed")), Work::kForget);
  EXPECT_THAT(std::string(EndOf(2).message()), HasSubstr("no variant passed"));
}

TEST_F(JobTest, AJobThatEndedDoesNotStart) {
  Join(1);
  GoToReady(1);
  Compile();
  job_->Leave(1, Job::Departure::kWithdrawn, now_);
  EXPECT_EQ(job_->OnStarted(now_).status().code(), absl::StatusCode::kCancelled);
}

// Timeouts.

TEST_F(JobTest, UploadTimeoutReplacesTheLeader) {
  Join(1);
  Join(2);
  now_ += absl::Seconds(59);
  EXPECT_EQ(job_->Tick(now_, 0, 0), Work::kNone);
  EXPECT_FALSE(sinks_[1]->is_closed());
  now_ += absl::Seconds(2);
  EXPECT_EQ(job_->Tick(now_, 0, 0), Work::kNone);
  EXPECT_EQ(EndOf(1).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(error::DetailOf(EndOf(1)).reason(), tuner::v1::ERROR_REASON_TIMEOUT);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("upload_timeout of 1m"));
  EXPECT_EQ(LeadOf(2).job_id(), "job-1");
}

TEST_F(JobTest, ReferenceTimeoutReplacesTheLeader) {
  tuner::v1::Open open = OpenFor(16);
  open.set_reference_timeout_ms(5000);
  Join(1, open);
  Join(2);
  GoToReference(1);
  now_ += absl::Milliseconds(5001);
  job_->Tick(now_, 0, 0);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("reference_timeout of 5s"));
  GoToReady(2);
}

TEST_F(JobTest, QueueTimeoutEndsItsWaiterOnly) {
  Join(1);
  tuner::v1::Open open = OpenFor(16);
  open.set_queue_timeout_ms(1000);
  Join(2, open);
  now_ += absl::Seconds(100);  // waiting for the leader is no queueing
  job_->Tick(now_ - absl::Seconds(50), 0, 0);
  EXPECT_FALSE(sinks_[2]->is_closed());
  GoToReady(1);
  Compile();
  now_ += absl::Milliseconds(1001);
  EXPECT_EQ(job_->Tick(now_, 1, 0), Work::kNone);
  EXPECT_THAT(std::string(EndOf(2).message()), HasSubstr("queue_timeout"));
  EXPECT_FALSE(sinks_[1]->is_closed());
  EXPECT_FALSE(job_->stop());
}

TEST_F(JobTest, RunTimeoutOfTheLastWaiterEndsIt) {
  tuner::v1::Open open = OpenFor(16);
  open.set_run_timeout_ms(1000);
  Join(1, open);
  GoToRunning(1);
  now_ += absl::Milliseconds(1001);
  EXPECT_EQ(job_->Tick(now_, 0, 0), Work::kForget);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("run_timeout of 1s"));
  EXPECT_TRUE(job_->stop());
}

// Progress.

TEST_F(JobTest, ProgressComesOnceASecondAndWithEachPhase) {
  Join(1);
  Join(2);
  job_->Tick(now_, 0, 0);
  for (int i = 0; i < 10; ++i) job_->Tick(now_ += absl::Milliseconds(100), 0, 66);
  EXPECT_THAT(Told(2), ElementsAre(Event::kFollow, Event::kProgress, Event::kProgress));
  EXPECT_EQ(sinks_[2]->events().back().progress().phase(), tuner::v1::PHASE_UPLOAD);
  EXPECT_EQ(sinks_[2]->events().back().progress().estimate_ms(), 66);
  GoToRunning(1);
  tuner::v1::Progress progress;
  progress.set_phase(tuner::v1::PHASE_TIMING);
  progress.set_total(20);
  progress.set_estimate_ms(77);
  for (int i = 0; i < 20; ++i) {
    progress.set_done(i);
    job_->OnProgress(progress, now_);
  }
  EXPECT_EQ(Told(2).size(), 4);  // the new phase, and nothing more within a second
  job_->Tick(now_ += absl::Seconds(1), 0, 88);
  EXPECT_EQ(sinks_[2]->events().back().progress().done(), 19);
  EXPECT_EQ(sinks_[2]->events().back().progress().estimate_ms(), 77);  // the tuner's stays
  EXPECT_EQ(sinks_[2]->events().back().progress().job_id(), "job-1");
}

TEST_F(JobTest, StatusTellsWhereItIs) {
  Join(1);
  Join(2);
  now_ += absl::Seconds(3);
  const tuner::v1::JobStatus status = job_->Status(now_);
  EXPECT_EQ(status.kernel(), "add");
  EXPECT_EQ(status.key(), "N=16");
  EXPECT_EQ(status.waiters(), 2);
  EXPECT_EQ(status.age_ms(), 3000);
  EXPECT_EQ(status.progress().phase(), tuner::v1::PHASE_UPLOAD);
  EXPECT_EQ(job_->WaiterOf({1000, 2}), 2);
  EXPECT_EQ(job_->WaiterOf({1000, 3}), 0);
}

TEST_F(JobTest, TheSplitAddsUp) {
  Join(1);
  now_ += absl::Milliseconds(10);
  GoToReference(1);
  now_ += absl::Milliseconds(20);
  job_->OnExpected(1, ExpectedFor(LeadOf(1)), now_);
  DoCopy();
  now_ += absl::Milliseconds(5);
  Compile();
  now_ += absl::Milliseconds(7);
  ASSERT_TRUE(job_->OnStarted(now_).ok());
  now_ += absl::Milliseconds(100);
  tuner::v1::TimeSplit split;
  job_->FillSplit(split, now_);
  EXPECT_EQ(split.upload_ns(), 10'000'000);
  EXPECT_EQ(split.reference_ns(), 20'000'000);
  EXPECT_EQ(split.compile_ns(), 35'000'000);
  EXPECT_EQ(split.queue_ns(), 7'000'000);
  EXPECT_EQ(split.total_ns(), 142'000'000);
}

}  // namespace
}  // namespace phobos::engine
