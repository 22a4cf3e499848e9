// SPDX-License-Identifier: Apache-2.0
//
// Tunes of tensors that are on a card, as their callers see it, with real threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "daemon/process/timing_lock.h"
#include "tests/daemon/engine/engines.h"

namespace phobos::engine {
namespace {

using ::testing::HasSubstr;

class TunesOnCardTest : public ::testing::Test, public EngineFixture {
 protected:
  TunesOnCardTest() { devices[0].set_chip("sm_90"); }
};

TEST_F(TunesOnCardTest, TheWorkerFetchesWhatIsOnTheCard) {
  Begin();
  std::string seen;
  tune = [&](auto&, auto&, const tuner::Arguments& arguments, auto&, auto&, auto*) {
    const tuner::Arguments::Copied& y = arguments.tensors()[1];
    seen.resize(static_cast<size_t>(y.bytes));
    EXPECT_EQ(pread(arguments.memory()[0].fd, seen.data(), seen.size(), y.offset_bytes), y.bytes);
    return absl::StatusOr<tuner::v1::Result>(ResultWith(1));
  };
  TuningCaller caller(*this, 1);
  caller.Open(OpenFor(16));
  ASSERT_TRUE(caller.AwaitLead());
  caller.SendArgs(OnCard(caller.lead()));
  ASSERT_TRUE(caller.AwaitArgsOwned());
  caller.SendExpected();
  ASSERT_TRUE(caller.sink().WaitForEnd().ok());
  EXPECT_EQ(workers[0]->fetches, 1);
  EXPECT_EQ(seen, std::string(64, 'f'));
}

// Neither by a worker that may not open it, nor by one that dies of it once and again.
TEST_F(TunesOnCardTest, WhatCannotBeFetchedIsAskedForAsBytes) {
  Begin();
  int64_t n = 16;
  for (const absl::Status& failure :
       {absl::FailedPreconditionError("another container"),
        absl::AbortedError("the worker process died: signal 9 (Killed)")}) {
    workers[0]->fetched = failure;
    TuningCaller caller(*this, 1);
    caller.Open(OpenFor(++n));
    ASSERT_TRUE(caller.AwaitLead());
    caller.SendArgs(OnCard(caller.lead()));
    while (caller.sink().events().size() < 2) absl::SleepFor(absl::Milliseconds(1));
    caller.Lead(caller.sink().events()[1].lead());
    EXPECT_FALSE(caller.lead().takes_cuda_ipc());
    caller.SendArgs();
    ASSERT_TRUE(caller.AwaitArgsOwned());
    caller.SendExpected();
    ASSERT_TRUE(caller.sink().WaitForEnd().ok());
    EXPECT_EQ(caller.result().generation(), 1);
  }
}

// Another daemon times on another slice of the same card.
TEST_F(TunesOnCardTest, ASliceTakesTheLockOfItsCard) {
  devices[0].set_uuid("MIG-1");
  devices[0].set_card_uuid("GPU-1");
  Start();
  const std::atomic<bool> go_on = false;
  auto others = process::TimingLock::Take(folder->path(), "GPU-1", go_on);
  ASSERT_TRUE(others.ok());
  tuner::v1::Open open = OpenFor(16);
  open.set_device_uuid("MIG-1");
  open.mutable_kernel()->set_source_text(kSource);
  TuningCaller caller(*this, 1);
  caller.HandOver(open);
  EXPECT_THAT(caller.sink().Wait(tuner::v1::TuneEvent::kProgress).progress().note(),
              HasSubstr("another tune on this card"));
  EXPECT_EQ(tunes, 0);
  others = absl::CancelledError("released");
  EXPECT_TRUE(caller.sink().WaitForEnd().ok());
  EXPECT_EQ(tunes, 1);
}

}  // namespace
}  // namespace phobos::engine
