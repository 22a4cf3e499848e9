// SPDX-License-Identifier: Apache-2.0
//
// A Job whose callers' tensors are on a card: handles of them in place of bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/error/error.h"
#include "tests/daemon/engine/job_fixture.h"

namespace phobos::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobOnCardTest : public JobFixture {};

TEST_F(JobOnCardTest, TensorsOnACardComeByHandle) {
  Make("sm_90");
  Join(1);
  EXPECT_TRUE(LeadOf(1).takes_cuda_ipc());
  ASSERT_EQ(job_->OnArgs(1, OnCard(LeadOf(1)), now_), Work::kCopy);
  Job::Copy copy = job_->TakeCopy();
  EXPECT_TRUE(copy.has_foreign());
  auto arguments = Copied(copy);
  ASSERT_TRUE(arguments.ok());
  const worker::FetchCall call = (*arguments)->FetchCall(copy.tensors);
  ASSERT_EQ(call.tensors_size(), 3);
  EXPECT_EQ(call.tensors(0).parameter(), "x");
  EXPECT_EQ(call.tensors(0).cuda_ipc_handle(), std::string(kHandleBytes, 's'));
  EXPECT_EQ(call.tensors(0).offset_bytes(), 512);
  EXPECT_EQ(call.tensors(0).bytes(), 64);
  EXPECT_EQ(call.tensors(1).to_offset_bytes(), (*arguments)->tensors()[1].offset_bytes);
  EXPECT_EQ(call.preload().token(), (*arguments)->token());
  EXPECT_EQ(call.preload().tensors(1).offset_bytes(), call.tensors(1).to_offset_bytes());
  EXPECT_EQ(job_->OnCopied(copy, *arguments, now_), Work::kNone);
  EXPECT_THAT(Told(1), ElementsAre(Event::kLead, Event::kArgsOwned));
  // Answers are the reference's: they come through the segment.
  tuner::v1::Expected expected = ExpectedFor(LeadOf(1));
  expected.mutable_buffers(0)->set_cuda_ipc_handle(std::string(kHandleBytes, 's'));
  job_->OnExpected(1, expected, now_);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("did not ask for"));
}

TEST_F(JobOnCardTest, HandlesThatCannotBeOpenedAreAskedForAsBytes) {
  Make("sm_90");
  Join(1);
  ASSERT_EQ(job_->OnArgs(1, OnCard(LeadOf(1)), now_), Work::kCopy);
  const Job::Copy copy = job_->TakeCopy();
  EXPECT_EQ(job_->OnCopied(copy, absl::FailedPreconditionError("no"), now_), Work::kNone);
  EXPECT_THAT(Told(1), ElementsAre(Event::kLead, Event::kLead));
  const tuner::v1::Lead again = sinks_[1]->events()[1].lead();
  EXPECT_FALSE(again.takes_cuda_ipc());
  ASSERT_EQ(job_->OnArgs(1, ArgsFor(again), now_), Work::kCopy);
  EXPECT_EQ(DoCopy(), Work::kNone);
  EXPECT_EQ(job_->stage(), Stage::kReference);
}

TEST_F(JobOnCardTest, ACopyThatWaitsForTheCardIsQueued) {
  Make("sm_90");
  tuner::v1::Open open = OpenFor(16);
  open.set_queue_timeout_ms(1000);
  Join(1, open);
  Join(2);
  ASSERT_EQ(job_->OnArgs(1, OnCard(LeadOf(1)), now_), Work::kCopy);
  const Job::Copy late = job_->TakeCopy();
  EXPECT_EQ(job_->Status(now_).progress().phase(), tuner::v1::PHASE_QUEUED);
  EXPECT_THAT(job_->Status(now_).progress().note(), HasSubstr("waiting for the card"));
  now_ += absl::Milliseconds(1001);
  job_->Tick(now_, 0, 0);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("queue_timeout of 1s"));
  EXPECT_FALSE(job_->OnFetching(late));
  // The next one leads; once the worker copies, nobody waits for the card.
  ASSERT_EQ(job_->OnArgs(2, OnCard(LeadOf(2)), now_), Work::kCopy);
  EXPECT_TRUE(job_->OnFetching(job_->TakeCopy()));
  EXPECT_EQ(job_->Status(now_).progress().phase(), tuner::v1::PHASE_UPLOAD);
  EXPECT_EQ(job_->Status(now_).progress().note(), "");
}

TEST_F(JobOnCardTest, HandlesThatAreWrongAreRefused) {
  for (const auto& [change, text] :
       std::vector<std::pair<std::function<void(tuner::v1::BufferRef&)>, std::string>>{
           {[](auto& ref) { ref.set_cuda_ipc_handle("short"); }, "must have 64 bytes"},
           {[](auto& ref) { ref.set_offset_bytes(-1); }, "must not be negative"},
           {[](auto& ref) { ref.set_bytes(1); }, "must be sent once, with 64 bytes"},
           {[](auto& ref) { ref.set_segment(3); }, "must be sent once"}}) {
    Make("sm_90");
    Join(1);
    tuner::v1::Args args = OnCard(LeadOf(1));
    change(*args.mutable_buffers(0));
    job_->OnArgs(1, args, now_);
    EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr(text));
    EXPECT_THAT(std::string(EndOf(1).message()), ::testing::Not(HasSubstr("ssss")));
  }
  Make("sm_90");
  Join(1);
  ASSERT_EQ(job_->OnArgs(1, OnCard(LeadOf(1)), now_), Work::kCopy);
  const Job::Copy copy = job_->TakeCopy();
  job_->OnCopied(copy, absl::InvalidArgumentError("x runs past its allocation"), now_);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("past its allocation"));
  EXPECT_EQ(error::DetailOf(EndOf(1)).reason(), tuner::v1::ERROR_REASON_BAD_ARGUMENT);
  // The host chip takes none.
  Make();
  Join(1);
  EXPECT_FALSE(LeadOf(1).takes_cuda_ipc());
  job_->OnArgs(1, OnCard(LeadOf(1)), now_);
  EXPECT_THAT(std::string(EndOf(1).message()), HasSubstr("did not ask for"));
}

}  // namespace
}  // namespace phobos::engine
