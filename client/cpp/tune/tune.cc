// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/tune/tune.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "client/cpp/tune/upload.h"

namespace phobos {
namespace {

using stub::Clock;

// How long a daemon that went away may stay away, and how often it is looked for.
constexpr std::chrono::seconds kAwayLimit(30);
constexpr int kAwayPauseMs = 100;
// For the daemon to hear that a reference failed, and to say whether the kernel does not compile.
constexpr std::chrono::seconds kFarewell(2);

// Rather than a reference that does not fit a kernel which does not compile either.
bool IsAboutTheKernel(const Status& status) {
  const ErrorDetail* detail = status.detail().get();
  return detail != nullptr &&
         (detail->reason == ErrorReason::kBadSource || detail->reason == ErrorReason::kNoWinner);
}

Status Cancelled() { return Status(Code::kCancelled, "the caller cancelled"); }

// Bytes of a scalar's value, as many as its type has.
std::string Bits(DType dtype, uint64_t value) {
  std::string bits;
  for (int64_t i = 0; i < ElementBytes(dtype); ++i) {
    bits += static_cast<char>(value >> (8 * i) & 0xff);
  }
  return bits;
}

// One stream, from Open to its end.
class Conversation {
 public:
  Conversation(const TuneSpec& spec, const stub::Patience& patience, Clock::time_point start)
      : spec_(spec), start_(start), patience_{patience.deadline, [this, patience] {
                                                return patience.IsInterrupted() || IsCancelled();
                                              }} {}

  // is_lost(): the error was the loss of the daemon; heard(): it had answered before.
  StatusOr<TuneOutcome> Run(stub::Daemon& daemon);
  bool is_lost() const { return is_lost_; }
  bool heard() const { return heard_; }

 private:
  bool IsCancelled();
  stub::TuneRequest OpenRequest(bool with_source) const;
  // Acts on an event. True: that was the last one.
  StatusOr<bool> Take(stub::TuneEvent event, TuneOutcome& outcome);
  // Calls the reference, too; what it computed is sent once the daemon owns the arguments.
  Status OnLead(const stub::Lead& lead);
  Status OnArgsOwned();
  Status OnReferenceFailed(const Status& status);
  const std::vector<Constant>* SettingsOf(int32_t variant) const;

  const TuneSpec& spec_;
  const Clock::time_point start_;
  const stub::Patience patience_;
  TuneProgress progress_;
  std::unique_ptr<stub::TuneCall> call_;
  std::unique_ptr<Upload> upload_;  // while this caller leads
  Status computed_;                 // what the reference said
  bool is_lost_ = false;
  bool heard_ = false;
};

StatusOr<TuneOutcome> Conversation::Run(stub::Daemon& daemon) {
  StatusOr<std::unique_ptr<stub::TuneCall>> call = daemon.Tune(spec_.warm, patience_);
  if (!call.ok()) return call.status();
  call_ = *std::move(call);
  call_->Send(OpenRequest(/*with_source=*/false));
  TuneOutcome outcome;
  while (true) {
    StatusOr<std::optional<stub::TuneEvent>> event = call_->Receive(patience_);
    if (!event.ok()) {
      is_lost_ = event.status().code() == Code::kUnavailable && call_->is_lost();
      return event.status();
    }
    if (!event->has_value()) {
      return Status(Code::kInternal, "the daemon ended the tune without a Result");
    }
    heard_ = true;
    const StatusOr<bool> is_over = Take(**std::move(event), outcome);
    if (!is_over.ok()) return is_over.status();
    if (*is_over) return outcome;
  }
}

bool Conversation::IsCancelled() {
  if (!spec_.callbacks.progress) return false;
  progress_.elapsed_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_).count();
  return spec_.callbacks.progress(progress_);
}

stub::TuneRequest Conversation::OpenRequest(bool with_source) const {
  stub::TuneRequest request;
  stub::Open& open = request.open.emplace();
  open.kernel = spec_.kernel;
  if (with_source) open.kernel.source_text = spec_.source_text;
  open.device_uuid = spec_.device_uuid;
  const KernelDescription& description = *spec_.description;
  for (size_t i = 0; i < description.extents.size(); ++i) {
    open.extents.push_back({description.extents[i], spec_.extents[i]});
  }
  // The sizes were computed before, when the extents were checked.
  const std::vector<int64_t> sizes = *TensorBytes(description, spec_.extents);
  for (size_t i = 0; i < description.parameters.size(); ++i) {
    const Parameter& parameter = description.parameters[i];
    if (parameter.is_tensor) {
      open.tensor_bytes.push_back(sizes[i]);
    } else {
      open.scalars.push_back({parameter.name, Bits(parameter.dtype, spec_.values[i])});
    }
  }
  open.options = spec_.options;
  open.newer_than_generation = spec_.newer_than_generation;
  open.queue_timeout_ms = spec_.timeouts.queue_ms;
  open.run_timeout_ms = spec_.timeouts.run_ms;
  open.upload_timeout_ms = spec_.timeouts.upload_ms;
  open.reference_timeout_ms = spec_.timeouts.reference_ms;
  open.held_segments = call_->segments().Unused();
  open.follow_only = !spec_.callbacks.reference;
  return request;
}

StatusOr<bool> Conversation::Take(stub::TuneEvent event, TuneOutcome& outcome) {
  Status status;
  if (event.hit.has_value() || event.done.has_value()) {
    outcome.hit = std::move(event.hit);
    outcome.done = std::move(event.done);
    return true;
  }
  if (event.queued.has_value()) return true;
  if (event.need_source.has_value()) {
    call_->Send(OpenRequest(/*with_source=*/true));
  } else if (event.lead.has_value()) {
    status = OnLead(*event.lead);
  } else if (event.args_owned.has_value()) {
    status = OnArgsOwned();
  } else if (event.progress.has_value()) {
    progress_.progress = *event.progress;
    if (IsCancelled()) status = Cancelled();
  }
  if (!status.ok()) return status;
  return false;  // Follow, or an event that later daemons send
}

const std::vector<Constant>* Conversation::SettingsOf(int32_t variant) const {
  const std::vector<VariantSettings>& variants = spec_.description->variants;
  if (variant < 0 || static_cast<size_t>(variant) >= variants.size()) return nullptr;
  return &variants[static_cast<size_t>(variant)].settings;
}

Status Conversation::OnLead(const stub::Lead& lead) {
  progress_.leads = true;
  upload_ = nullptr;  // of an earlier lead
  StatusOr<std::unique_ptr<Upload>> upload = Upload::Begin(spec_, call_->segments(), lead);
  if (!upload.ok()) return upload.status();
  stub::TuneRequest request;
  stub::Args& args = request.args.emplace();
  for (const int32_t variant : lead.variants) {
    const std::vector<Constant>* settings = SettingsOf(variant);
    if (settings == nullptr) {
      return Status(Code::kInternal, "the daemon asks for variant " + std::to_string(variant) +
                                         ", which the kernel does not have");
    }
    stub::VariantGrid& entry = args.grids.emplace_back();
    entry.variant = variant;
    const StatusOr<Grid> grid = spec_.callbacks.grid(variant, *settings);
    if (grid.ok()) {
      entry.grid = *grid;
    } else {
      entry.error = grid.status().message();
      if (patience_.IsInterrupted()) return Cancelled();
    }
  }
  StatusOr<std::vector<stub::BufferRef>> buffers =
      (*upload)->HandOver([this] { return patience_.IsInterrupted(); });
  if (!buffers.ok()) return buffers.status();
  args.buffers = *std::move(buffers);
  upload_ = *std::move(upload);
  call_->Send(request);
  if (Status status = upload_->MakeCopies([this] { return patience_.IsInterrupted(); });
      !status.ok()) {
    return status;
  }
  // While the daemon makes copies of its own.
  computed_ = upload_->CallReference();
  return patience_.IsInterrupted() ? Cancelled() : Status();
}

Status Conversation::OnArgsOwned() {
  if (upload_ == nullptr) {
    return Status(Code::kInternal, "the daemon took over arguments that were not sent");
  }
  if (patience_.IsInterrupted()) return Cancelled();
  if (!computed_.ok()) return OnReferenceFailed(computed_);
  StatusOr<stub::Expected> expected =
      upload_->Answers([this] { return patience_.IsInterrupted(); });
  if (!expected.ok()) return OnReferenceFailed(expected.status());
  stub::TuneRequest request;
  request.expected = *std::move(expected);
  // Warm has nothing more to say; a Tune's caller neither, but an open side keeps its place in the
  // job.
  call_->Send(request);
  return Status();
}

Status Conversation::OnReferenceFailed(const Status& status) {
  // A cancel by the user often shows as an exception in the reference: then nothing failed.
  if (status.code() == Code::kCancelled || patience_.IsInterrupted()) return Cancelled();
  stub::TuneRequest request;
  request.reference_failed.emplace().message = status.message();
  call_->Send(request, /*last=*/true);
  // So that the next caller is elected: a reset now might overtake the message.
  const stub::Patience farewell = patience_.AtMost(kFarewell);
  while (true) {
    const StatusOr<std::optional<stub::TuneEvent>> event = call_->Receive(farewell);
    if (!event.ok() && IsAboutTheKernel(event.status())) return event.status();
    if (!event.ok() || !event->has_value()) break;
  }
  auto detail = std::make_shared<ErrorDetail>();
  detail->reason = ErrorReason::kReferenceFailed;
  return Status(status.code(), "the reference failed: " + status.message(), std::move(detail));
}

}  // namespace

StatusOr<TuneOutcome> RunTune(stub::Daemon& daemon, const TuneSpec& spec,
                              const stub::Patience& patience) {
  const Clock::time_point start = Clock::now();
  Clock::time_point heard = start;
  bool was_there = false;
  while (true) {
    Conversation conversation(spec, patience, start);
    StatusOr<TuneOutcome> outcome = conversation.Run(daemon);
    if (outcome.ok()) return outcome;
    if (conversation.heard()) {
      heard = Clock::now();
      was_there = true;
    }
    // A daemon that was never there is the caller's to know at once; one that was comes back, or is
    // started again, and has kept what was compiled.
    const bool may_come_back =
        conversation.is_lost() ||
        (was_there && outcome.status().code() == Code::kUnavailable && !conversation.heard());
    if (!may_come_back || Clock::now() - heard > kAwayLimit) return outcome;
    if (patience.IsInterrupted()) return Cancelled();
    poll(nullptr, 0, kAwayPauseMs);
  }
}

}  // namespace phobos
