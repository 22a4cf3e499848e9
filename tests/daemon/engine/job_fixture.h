// SPDX-License-Identifier: Apache-2.0
//
// For tests of a Job: one of the kernel add with N = 16, whose callers, copies and compiler are the
// test's. No thread and no clock.
#ifndef PHOBOS_TESTS_DAEMON_ENGINE_JOB_FIXTURE_H_
#define PHOBOS_TESTS_DAEMON_ENGINE_JOB_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/engine/join/job.h"
#include "daemon/engine/key.h"
#include "tests/daemon/engine/fakes.h"
#include "tests/daemon/engine/messages.h"
#include "tests/daemon/engine/recording_sink.h"

namespace phobos::engine {

class JobFixture : public ::testing::Test {
 protected:
  using Event = tuner::v1::TuneEvent;
  using Stage = Job::Stage;
  using Work = Job::Work;

  static constexpr int64_t kCopyLimit = 1 << 20;

  JobFixture() : segments_(1 << 20), copies_(1 << 20) { Make(); }

  void Make(const std::string& chip = "") {
    Subject subject;
    subject.job_id = "job-1";
    auto kernel = std::make_shared<Kernel>();
    kernel->description = AddDescription();
    subject.kernel = kernel;
    subject.device = HostDevice();
    if (!chip.empty()) subject.device.set_chip(chip);
    const std::vector<tuner::v1::Extent> extents = {OpenFor(16).extents(0)};
    subject.key = MakeKey(kernel->description, subject.device, extents);
    job_ = std::make_unique<Job>(std::move(subject), segments_, kCopyLimit, now_);
  }

  // A caller with this number joins; its process is the number, too.
  Work Join(uint64_t id, tuner::v1::Open open = OpenFor(16)) {
    sinks_[id] = std::make_shared<RecordingSink>();
    return job_->Join({id, {1000, static_cast<pid_t>(id)}, sinks_[id], std::move(open), now_},
                      now_);
  }
  static tuner::v1::Open FollowOnly() {
    tuner::v1::Open open = OpenFor(16);
    open.set_follow_only(true);
    return open;
  }

  tuner::v1::Lead LeadOf(uint64_t id) {
    for (const Event& event : sinks_[id]->events()) {
      if (event.has_lead()) return event.lead();
    }
    ADD_FAILURE() << id << " does not lead";
    return {};
  }
  std::vector<Event::EventCase> Told(uint64_t id) {
    std::vector<Event::EventCase> kinds;
    for (const Event& event : sinks_[id]->events()) kinds.push_back(event.event_case());
    return kinds;
  }
  absl::Status EndOf(uint64_t id) {
    EXPECT_TRUE(sinks_[id]->is_closed());
    return sinks_[id]->status();
  }

  // What Tunes does with a Copy.
  Work DoCopy() {
    Job::Copy copy = job_->TakeCopy();
    return job_->OnCopied(copy, Copied(copy), now_);
  }
  absl::StatusOr<std::shared_ptr<tuner::Arguments>> Copied(Job::Copy& copy) {
    if (!copy.is_expected) {
      auto arguments = tuner::Arguments::Copy(copies_, copy.uid, copy.tensors);
      if (!arguments.ok()) return arguments.status();
      return std::shared_ptr<tuner::Arguments>(*std::move(arguments));
    }
    const absl::Status status = copy.arguments->CopyExpected(copy.tensors);
    if (!status.ok()) return status;
    return copy.arguments;
  }
  Work Compile() {
    compile::CompiledSpace space;
    space.variants.resize(3);
    return job_->OnCompiled(std::move(space), now_);
  }

  void GoToReference(uint64_t id) {
    ASSERT_EQ(job_->OnArgs(id, ArgsFor(LeadOf(id)), now_), Work::kCopy);
    ASSERT_EQ(DoCopy(), Work::kNone);
    ASSERT_EQ(job_->stage(), Stage::kReference);
  }
  void GoToReady(uint64_t id) {
    GoToReference(id);
    ASSERT_EQ(job_->OnExpected(id, ExpectedFor(LeadOf(id)), now_), Work::kCopy);
    ASSERT_EQ(DoCopy(), Work::kNone);
    ASSERT_EQ(job_->stage(), Stage::kReady);
  }
  void GoToRunning(uint64_t id) {
    GoToReady(id);
    ASSERT_EQ(Compile(), Work::kQueue);
    ASSERT_TRUE(job_->OnStarted(now_).ok());
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  process::SegmentPool segments_;
  tuner::CopyPool copies_;
  std::unique_ptr<Job> job_;
  std::map<uint64_t, std::shared_ptr<RecordingSink>> sinks_;
};

}  // namespace phobos::engine

#endif  // PHOBOS_TESTS_DAEMON_ENGINE_JOB_FIXTURE_H_
