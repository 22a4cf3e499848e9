// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/join/job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "daemon/engine/key.h"
#include "daemon/error/error.h"

namespace phobos::engine {
namespace {

constexpr absl::Duration kUploadTimeout = absl::Seconds(60);
constexpr absl::Duration kReferenceTimeout = absl::Minutes(10);
// After this many references have raised, the key's reference is taken to be wrong.
constexpr int kMostFailedReferences = 2;
constexpr absl::Duration kTellEvery = absl::Seconds(1);

absl::Duration Limit(int64_t ms, absl::Duration otherwise) {
  return ms > 0 ? absl::Milliseconds(ms) : otherwise;
}

int64_t Between(absl::Time from, absl::Time to) {
  if (from == absl::InfinitePast() || to == absl::InfinitePast()) return 0;
  return std::max<int64_t>(0, absl::ToInt64Nanoseconds(to - from));
}

tuner::v1::TuneEvent ProgressEvent(const tuner::v1::Progress& progress) {
  tuner::v1::TuneEvent event;
  *event.mutable_progress() = progress;
  return event;
}

// OK where a variant was compiled, or none is said to be wrong.
absl::Status WhyNoneCompiled(const compile::CompiledSpace& space) {
  tuner::v1::ErrorDetail detail;
  for (const compile::CompiledVariant& compiled : space.variants) {
    const compiler::v1::Variant& variant = compiled.variant;
    if (variant.status() == compiler::v1::VARIANT_STATUS_COMPILED) return absl::OkStatus();
    if (variant.status() != compiler::v1::VARIANT_STATUS_COMPILE_ERROR) continue;
    tuner::v1::VariantResult& told = *detail.add_variants();
    told.set_index(variant.index());
    *told.mutable_settings() = variant.settings();
    told.set_status(tuner::v1::VARIANT_STATUS_COMPILE_ERROR);
    told.set_reason(variant.reason());
  }
  if (detail.variants().empty()) return absl::OkStatus();
  detail.set_reason(tuner::v1::ERROR_REASON_NO_WINNER);
  detail.set_remedy("mend what the reason names");
  return error::Attach(absl::FailedPreconditionError(absl::StrCat("no variant could be compiled: ",
                                                                  detail.variants(0).reason())),
                       detail);
}

}  // namespace

bool IsHost(const tuner::v1::Device& device) { return device.uuid() == "host"; }

absl::Status OutOfTurn(const char* step, const char* remedy) {
  return error::Make(absl::StatusCode::kFailedPrecondition, tuner::v1::ERROR_REASON_BAD_ARGUMENT,
                     absl::StrCat(step, " came out of turn"), remedy);
}

Job::Job(Subject subject, process::SegmentPool& segments, int64_t copy_limit, absl::Time now)
    : subject_(std::move(subject)), segments_(segments), copy_limit_(copy_limit), opened_(now) {
  progress_.set_job_id(subject_.job_id);
  for (absl::Time* time :
       {&led_, &sent_, &owned_, &expected_, &compiled_, &queued_, &started_, &told_}) {
    *time = absl::InfinitePast();
  }
}

// Waiters.

Job::Work Job::Join(Waiter waiter, absl::Time now) {
  const uint64_t id = waiter.id;
  const bool can_lead = !waiter.open.follow_only();
  waiters_.push_back(std::move(waiter));
  if (stage_ == Stage::kElecting) {
    if (can_lead) return Elect(now);
    Close(id,
          error::Make(absl::StatusCode::kFailedPrecondition, tuner::v1::ERROR_REASON_UNSPECIFIED,
                      "nobody tunes this key now", "call tune with a reference"));
    return waiters_.empty() ? AfterLoss() : Work::kNone;
  }
  tuner::v1::TuneEvent event;
  event.mutable_follow()->set_job_id(subject_.job_id);
  waiters_.back().sink->Send(event);
  return Work::kNone;
}

Job::Work Job::Leave(uint64_t waiter, Departure departure, absl::Time now) {
  if (Find(waiter) == nullptr) return Work::kNone;
  const bool is_leader = waiter == leader_;
  if (departure == Departure::kLost && stage_ >= Stage::kReference) has_lost_waiter_ = true;
  Close(waiter, error::Make(absl::StatusCode::kCancelled, tuner::v1::ERROR_REASON_CANCELLED,
                            "the caller withdrew"));
  const bool is_leader_needed =
      stage_ == Stage::kLeading || stage_ == Stage::kCopying || stage_ == Stage::kReference;
  if (is_leader) leader_ = 0;
  if (is_leader && is_leader_needed) {
    DropLeader();
    return Elect(now);
  }
  return waiters_.empty() ? AfterLoss() : Work::kNone;
}

// The last waiter is gone.
Job::Work Job::AfterLoss() {
  if (stage_ == Stage::kEnded) return Work::kNone;
  const bool needs_nobody = stage_ >= Stage::kCopyingExpected;
  // Only when every waiter withdrew is it in vain: a lost one may come back for the Result.
  if (needs_nobody && has_lost_waiter_) return Work::kNone;
  return Fail(absl::CancelledError("nobody waits for this tune any more"));
}

Waiter* Job::Find(uint64_t id) {
  const auto found = std::find_if(waiters_.begin(), waiters_.end(),
                                  [id](const Waiter& waiter) { return waiter.id == id; });
  return found == waiters_.end() ? nullptr : &*found;
}

uint64_t Job::WaiterOf(const Caller& caller) const {
  for (const Waiter& waiter : waiters_) {
    if (waiter.caller == caller) return waiter.id;
  }
  return 0;
}

void Job::Close(uint64_t id, const absl::Status& status) {
  const auto found = std::find_if(waiters_.begin(), waiters_.end(),
                                  [id](const Waiter& waiter) { return waiter.id == id; });
  if (found == waiters_.end()) return;
  found->sink->Close(error::About(status, tuner::v1::ERROR_REASON_UNSPECIFIED, subject_.key.kernel,
                                  ValuesText(subject_.key.values)));
  waiters_.erase(found);
}

void Job::CloseAll(const absl::Status& status) {
  while (!waiters_.empty()) Close(waiters_.back().id, status);
}

// Election.

Job::Work Job::Elect(absl::Time now) {
  stage_ = Stage::kElecting;
  for (size_t i = 0; i < waiters_.size() && failed_references_ < kMostFailedReferences;) {
    if (waiters_[i].open.follow_only() || !waiters_[i].reference_failure.ok()) {
      ++i;
    } else if (Lead(waiters_[i], now)) {
      return Work::kNone;
    }  // else it was refused and is gone: the next one has its place
  }
  if (failed_references_ == 0) {
    return Fail(
        error::Make(absl::StatusCode::kFailedPrecondition, tuner::v1::ERROR_REASON_UNSPECIFIED,
                    "the caller that led this tune left, and nobody else who waits can lead",
                    "call tune with a reference"));
  }
  const bool awaits_compiler = space_ == nullptr && !waiters_.empty();
  return awaits_compiler ? Work::kNone : Fail(reference_failure_);
}

// False: the waiter cannot lead (memory, sizes), was told so and is gone.
bool Job::Lead(Waiter& waiter, absl::Time now) {
  const uint64_t id = waiter.id;
  absl::StatusOr<tuner::v1::Lead> lead = PrepareLead(waiter, now);
  if (!lead.ok()) {
    Close(id, lead.status());
    return false;
  }
  ++election_;
  leader_ = id;
  stage_ = Stage::kLeading;
  led_ = now;
  leading_open_ = waiter.open;
  asked_by_ = waiter.caller;
  tuner::v1::TuneEvent event;
  *event.mutable_lead() = *std::move(lead);
  waiter.sink->Send(event);
  return true;
}

absl::StatusOr<tuner::v1::Lead> Job::PrepareLead(const Waiter& waiter, absl::Time now) {
  const compiler::v1::KernelDescription& description = subject_.kernel->description;
  ASSIGN_OR_RETURN(hand_over_, PlanHandOver(description, waiter.open, copy_limit_));
  const std::vector<uint64_t> held(waiter.open.held_segments().begin(),
                                   waiter.open.held_segments().end());
  absl::StatusOr<process::SegmentPool::Loan> loan =
      segments_.Lend(waiter.caller, hand_over_.bytes, held, now);
  if (!loan.ok()) {
    return error::About(loan.status(), tuner::v1::ERROR_REASON_OUT_OF_MEMORY, "", "");
  }
  loan_ = std::make_shared<process::SegmentPool::Loan>(*std::move(loan));
  tuner::v1::Lead lead;
  lead.set_job_id(subject_.job_id);
  tuner::v1::SegmentGrant& grant = *lead.add_segments();
  grant.set_segment(loan_->id());
  grant.set_bytes(loan_->bytes());
  grant.set_ticket(loan_->ticket());
  for (tuner::v1::BufferRequest buffer : hand_over_.buffers) {
    buffer.set_segment(loan_->id());
    *lead.add_buffers() = std::move(buffer);
  }
  *lead.mutable_description() = description;
  for (const int32_t variant : WantedVariants(description)) lead.add_variants(variant);
  lead.set_takes_cuda_ipc(TakesCudaIpc());
  return lead;
}

bool Job::TakesCudaIpc() const {
  return absl::StartsWith(subject_.device.chip(), "sm_") && !refuses_cuda_ipc_;
}

bool Job::Copy::has_foreign() const {
  return std::any_of(tensors.begin(), tensors.end(), [](const tuner::TensorBytes& tensor) {
    return !tensor.foreign.cuda_ipc_handle.empty();
  });
}

void Job::DropLeader() {
  leader_ = 0;
  ++election_;
  loan_.reset();
  copy_ = Copy();
  AwaitFetch(false);
  arguments_.reset();
  grids_.clear();
}

Job::Work Job::RefuseLeader(const absl::Status& status, absl::Time now) {
  Close(leader_, status);
  DropLeader();
  return Elect(now);
}

Job::Work Job::Refuse(uint64_t waiter, const absl::Status& status, absl::Time now) {
  if (Find(waiter) == nullptr) return Work::kNone;
  const bool is_leader = waiter == leader_;
  if (is_leader && stage_ <= Stage::kReference) return RefuseLeader(status, now);
  // One that does not lead, or is no longer needed: the job goes on without it.
  if (is_leader) leader_ = 0;
  Close(waiter, status);
  return waiters_.empty() ? AfterLoss() : Work::kNone;
}

// The leader's steps.

Job::Work Job::OnArgs(uint64_t waiter, const tuner::v1::Args& args, absl::Time now) {
  if (waiter != leader_ || stage_ != Stage::kLeading) {
    return Refuse(waiter, OutOfTurn("Args", "send it once, after Lead"), now);
  }
  absl::Status status = CheckGrids(subject_.kernel->description, args);
  if (status.ok()) status = CheckAllThere(hand_over_, args.buffers(), /*only_written=*/false);
  if (!status.ok()) return RefuseLeader(status, now);
  absl::StatusOr<std::vector<tuner::TensorBytes>> tensors =
      Locate(hand_over_, args.buffers(), loan_->id(), loan_->memory(), TakesCudaIpc());
  if (!tensors.ok()) return RefuseLeader(tensors.status(), now);
  grids_.assign(args.grids().begin(), args.grids().end());
  copy_ = Copy{election_, asked_by_.uid, false, loan_, *std::move(tensors), {}, nullptr};
  stage_ = Stage::kCopying;
  sent_ = now;
  AwaitFetch(copy_.has_foreign());
  return Work::kCopy;
}

void Job::AwaitFetch(bool awaits) {
  awaits_fetch_ = awaits;
  if (awaits) {
    progress_.set_note("waiting for the card, to copy the arguments on it");
  } else {
    progress_.clear_note();
  }
}

Job::Work Job::OnExpected(uint64_t waiter, const tuner::v1::Expected& expected, absl::Time now) {
  if (waiter != leader_ || stage_ != Stage::kReference) {
    return Refuse(waiter, OutOfTurn("Expected", "send it once, after ArgsOwned"), now);
  }
  const absl::Status status = CheckAllThere(hand_over_, expected.buffers(), /*only_written=*/true);
  if (!status.ok()) return RefuseLeader(status, now);
  absl::StatusOr<std::vector<tuner::TensorBytes>> answers =
      Locate(hand_over_, expected.buffers(), loan_->id(), loan_->memory());
  if (!answers.ok()) return RefuseLeader(answers.status(), now);
  absl::StatusOr<std::vector<tuner::TensorBytes>> replaced =
      Locate(hand_over_, expected.replaced(), loan_->id(), loan_->memory());
  if (!replaced.ok()) return RefuseLeader(replaced.status(), now);
  copy_ = Copy{election_,           asked_by_.uid,        true,      loan_,
               *std::move(answers), *std::move(replaced), arguments_};
  expected_ = now;
  stage_ = Stage::kCopyingExpected;
  return Work::kCopy;
}

Job::Work Job::OnReferenceFailed(uint64_t waiter, const std::string& message, absl::Time now) {
  if (waiter != leader_ || stage_ > Stage::kReference) {
    return Refuse(waiter, OutOfTurn("ReferenceFailed", "send it before Expected"), now);
  }
  ++failed_references_;
  reference_failure_ =
      error::Make(absl::StatusCode::kAborted, tuner::v1::ERROR_REASON_REFERENCE_FAILED,
                  absl::StrCat("the reference raised: ", message));
  Leader()->reference_failure = reference_failure_;
  DropLeader();
  if (space_ != nullptr) {
    if (absl::Status why = WhyNoneCompiled(*space_); !why.ok()) return Fail(why);
    if (failed_references_ < kMostFailedReferences) CloseFailed();
  }
  return Elect(now);
}

void Job::CloseFailed() {
  // A copy: closing changes what is gone through.
  const std::vector<Waiter> waiters = waiters_;
  for (const Waiter& waiter : waiters) {
    if (!waiter.reference_failure.ok()) Close(waiter.id, waiter.reference_failure);
  }
}

Job::Copy Job::TakeCopy() { return std::exchange(copy_, Copy()); }

bool Job::OnFetching(const Copy& copy) {
  if (copy.election != election_ || stage_ != Stage::kCopying) return false;
  AwaitFetch(false);
  return true;
}

Job::Work Job::OnCopied(const Copy& copy,
                        absl::StatusOr<std::shared_ptr<tuner::Arguments>> arguments,
                        absl::Time now) {
  if (copy.election != election_ || stage_ == Stage::kEnded) return Work::kNone;
  AwaitFetch(false);
  if (!arguments.ok() && copy.has_foreign() && !absl::IsInvalidArgument(arguments.status()) &&
      !absl::IsResourceExhausted(arguments.status())) {
    refuses_cuda_ipc_ = true;
    DropLeader();
    return Elect(now);
  }
  if (!arguments.ok()) {
    const tuner::v1::ErrorReason reason = absl::IsInvalidArgument(arguments.status())
                                              ? tuner::v1::ERROR_REASON_BAD_ARGUMENT
                                              : tuner::v1::ERROR_REASON_OUT_OF_MEMORY;
    return RefuseLeader(error::About(arguments.status(), reason, "", ""), now);
  }
  if (!copy.is_expected) {
    arguments_ = *std::move(arguments);
    owned_ = now;
    stage_ = Stage::kReference;
    tuner::v1::TuneEvent event;
    event.mutable_args_owned();
    Leader()->sink->Send(event);
    return Work::kNone;
  }
  loan_.reset();
  stage_ = Stage::kReady;
  return QueueIfReady(now);
}

Waiter* Job::Leader() { return Find(leader_); }

// Compiling, queueing, running, ending.

Job::Work Job::OnCompiled(absl::StatusOr<compile::CompiledSpace> space, absl::Time now) {
  if (stage_ == Stage::kEnded) return Work::kNone;
  compiled_ = now;
  if (!space.ok()) return Fail(space.status());
  space_ = std::make_shared<const compile::CompiledSpace>(*std::move(space));
  if (failed_references_ == 0) return QueueIfReady(now);
  if (absl::Status why = WhyNoneCompiled(*space_); !why.ok()) return Fail(why);
  if (stage_ == Stage::kElecting) return Fail(reference_failure_);
  CloseFailed();
  if (waiters_.empty()) return AfterLoss();
  return QueueIfReady(now);
}

Job::Work Job::QueueIfReady(absl::Time now) {
  if (stage_ != Stage::kReady || space_ == nullptr) return Work::kNone;
  stage_ = Stage::kQueued;
  queued_ = now;
  return Work::kQueue;
}

void Job::OnCardBusy(absl::Time now) {
  if (stage_ != Stage::kQueued) return;
  progress_.set_note(
      IsHost(subject_.device)
          ? "waiting for another tune on this machine's processors (another daemon's, perhaps "
            "another user's)"
          : "waiting for another tune on this card (another slice's, or another daemon's, perhaps "
            "another user's)");
  TellAll(now);
}

absl::StatusOr<Job::Inputs> Job::OnStarted(absl::Time now) {
  if (stage_ != Stage::kQueued) return absl::CancelledError("the tune ended before it began");
  progress_.clear_note();
  stage_ = Stage::kRunning;
  started_ = now;
  return Inputs{space_, arguments_, leading_open_, grids_, asked_by_};
}

void Job::OnProgress(const tuner::v1::Progress& progress, absl::Time now) {
  if (stage_ != Stage::kRunning) return;
  const bool is_new_phase = progress.phase() != progress_.phase();
  progress_ = progress;
  progress_.set_job_id(subject_.job_id);
  // Rarely, so that telling does not disturb what is being timed.
  if (is_new_phase || now >= told_ + kTellEvery) TellAll(now);
}

Job::Work Job::Fail(const absl::Status& status) {
  stage_ = Stage::kEnded;
  stop_ = true;
  CloseAll(status);
  DropLeader();
  return Work::kForget;
}

std::vector<Waiter> Job::Finish() {
  stage_ = Stage::kEnded;
  DropLeader();
  return std::exchange(waiters_, {});
}

// Time.

bool Job::TimeOut(const Waiter& waiter, absl::Time now, std::string* which) const {
  const tuner::v1::Open& open = waiter.open;
  const bool is_leader = waiter.id == leader_;
  const auto is_over = [&](const char* name, absl::Time since, absl::Duration limit) {
    if (now <= since + limit) return false;
    *which = absl::StrCat(name, " of ", absl::FormatDuration(limit), " passed");
    return true;
  };
  switch (stage_) {
    case Stage::kLeading:
      return is_leader &&
             is_over("upload_timeout", led_, Limit(open.upload_timeout_ms(), kUploadTimeout));
    case Stage::kCopying:
      return awaits_fetch_ && is_over("queue_timeout", std::max(sent_, waiter.since),
                                      Limit(open.queue_timeout_ms(), absl::InfiniteDuration()));
    case Stage::kReference:
      return is_leader && is_over("reference_timeout", owned_,
                                  Limit(open.reference_timeout_ms(), kReferenceTimeout));
    case Stage::kQueued:
      return is_over("queue_timeout", std::max(queued_, waiter.since),
                     Limit(open.queue_timeout_ms(), absl::InfiniteDuration()));
    case Stage::kRunning:
      return is_over("run_timeout", std::max(started_, waiter.since),
                     Limit(open.run_timeout_ms(), absl::InfiniteDuration()));
    default:
      return false;
  }
}

Job::Work Job::Tick(absl::Time now, int queue_position, int64_t estimate_ms) {
  if (stage_ == Stage::kEnded) return Work::kNone;
  for (size_t i = 0; i < waiters_.size();) {
    const uint64_t id = waiters_[i].id;
    std::string which;
    if (!TimeOut(waiters_[i], now, &which)) {
      ++i;
      continue;
    }
    const absl::Status status =
        error::Make(absl::StatusCode::kDeadlineExceeded, tuner::v1::ERROR_REASON_TIMEOUT, which);
    // Refusing may elect or end: the others' timeouts are looked at with the next tick.
    const Work work = Refuse(id, status, now);
    if (work != Work::kNone || stage_ <= Stage::kReference) return work;
  }
  progress_.set_queue_position(queue_position);
  if (stage_ != Stage::kRunning) progress_.set_estimate_ms(estimate_ms);
  if (now >= told_ + kTellEvery) TellAll(now);
  return Work::kNone;
}

tuner::v1::Phase Job::PhaseNow() const {
  switch (stage_) {
    case Stage::kElecting:
    case Stage::kLeading:
      return tuner::v1::PHASE_UPLOAD;
    case Stage::kCopying:
      return awaits_fetch_ ? tuner::v1::PHASE_QUEUED : tuner::v1::PHASE_UPLOAD;
    case Stage::kReference:
    case Stage::kCopyingExpected:
      return tuner::v1::PHASE_REFERENCE;
    case Stage::kReady:
      return tuner::v1::PHASE_COMPILE;
    case Stage::kQueued:
      return tuner::v1::PHASE_QUEUED;
    case Stage::kRunning:
    case Stage::kEnded:
      break;
  }
  return progress_.phase();
}

void Job::TellAll(absl::Time now) {
  told_ = now;
  progress_.set_phase(PhaseNow());
  const tuner::v1::TuneEvent event = ProgressEvent(progress_);
  for (const Waiter& waiter : waiters_) waiter.sink->Send(event);
}

tuner::v1::JobStatus Job::Status(absl::Time now) const {
  tuner::v1::JobStatus status;
  status.set_job_id(subject_.job_id);
  status.set_kernel(subject_.key.kernel);
  status.set_key(ValuesText(subject_.key.values));
  status.set_device_uuid(subject_.device.uuid());
  *status.mutable_progress() = progress_;
  status.mutable_progress()->set_phase(PhaseNow());
  status.set_waiters(static_cast<int32_t>(waiters_.size()));
  status.set_age_ms(absl::ToInt64Milliseconds(now - opened_));
  return status;
}

void Job::FillSplit(tuner::v1::TimeSplit& split, absl::Time now) const {
  split.set_queue_ns(Between(queued_, started_));
  split.set_upload_ns(Between(led_, owned_));
  split.set_compile_ns(Between(opened_, compiled_));
  split.set_reference_ns(Between(owned_, expected_));
  split.set_total_ns(Between(opened_, now));
}

}  // namespace phobos::engine
