// SPDX-License-Identifier: Apache-2.0
//
// What Tunes has a GPU's worker do before a job has it: start, link what is compiled, copy what
// the caller handed over. All of it beside the caller's reference.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/engine/join/tunes.h"

namespace phobos::engine {
namespace {

// Of what the reference may answer: the tensors that the kernel writes.
int64_t MostExpectedBytes(const compiler::v1::KernelDescription& description,
                          const tuner::Arguments& arguments) {
  int64_t bytes = 0;
  for (const compiler::v1::Parameter& parameter : description.parameters()) {
    for (const tuner::Arguments::Copied& copied : arguments.tensors()) {
      if (parameter.is_written() && copied.parameter == parameter.name()) {
        bytes += copied.bytes + tuner::kTensorAlignment;
      }
    }
  }
  return bytes;
}

}  // namespace

void Tunes::ServeOnly(const Bench& bench, uid_t uid) {
  bool is_another_users = false;
  {
    const absl::MutexLock lock(&mutex_);
    uid_t& served = served_.try_emplace(bench.device->uuid(), uid).first->second;
    is_another_users = std::exchange(served, uid) != uid;
  }
  if (is_another_users) bench.worker->Stop();
}

void Tunes::DoAhead(const JobPtr& job, uid_t uid, std::function<void(worker::Supervisor&)> work) {
  const tuner::v1::Device& device = job->subject().device;
  if (!absl::StartsWith(device.chip(), "sm_")) return;
  queues_.at(device.uuid())->PushWork([this, job, uid, work = std::move(work)] {
    if (job->stop()) return;
    for (const Bench& bench : benches_) {
      if (bench.device->uuid() != job->subject().device.uuid()) continue;
      ServeOnly(bench, uid);
      work(*bench.worker);
    }
  });
}

void Tunes::StartAhead(const JobPtr& job) {
  DoAhead(job, job->subject().uid,
          [](worker::Supervisor& worker) { worker.Expect({}).IgnoreError(); });
}

void Tunes::LinkAhead(const JobPtr& job, const compile::CompiledSpace& space) {
  std::vector<worker::VariantSetup> variants;
  for (const compile::CompiledVariant& variant : space.variants) {
    if (variant.artifact_path.empty()) continue;
    worker::VariantSetup& setup = variants.emplace_back();
    setup.set_variant(variant.variant.index());
    setup.set_artifact_path(variant.artifact_path);
    *setup.mutable_artifact() = variant.variant.artifact();
    if (variant.recording_path.empty()) continue;
    setup.mutable_recording()->set_artifact_path(variant.recording_path);
    *setup.mutable_recording()->mutable_recording() = variant.variant.recording();
  }
  DoAhead(job, job->subject().uid, [variants = std::move(variants)](worker::Supervisor& worker) {
    if (worker.pid() != 0) worker.Expect(variants).IgnoreError();
  });
}

void Tunes::EndCopy(const JobPtr& job, const Job::Copy& copy,
                    absl::StatusOr<std::shared_ptr<tuner::Arguments>> arguments) {
  // Looked at now: once they are handed over, answers are added to them.
  const auto owned = copy.is_expected || !arguments.ok() ? nullptr : *arguments;
  worker::PreloadCall call;
  worker::SharedMemory memory;
  int64_t expected_bytes = 0;
  if (owned != nullptr) {
    call = owned->PreloadCall();
    memory = owned->memory()[0];
    expected_bytes = MostExpectedBytes(job->subject().kernel->description, *owned);
  }
  {
    const absl::MutexLock lock(&mutex_);
    Do(job, job->OnCopied(copy, std::move(arguments), settings_.now()));
  }
  if (owned == nullptr) return;
  copying_.Add([this, bytes = expected_bytes, uid = copy.uid] { copies_.Prepare(bytes, uid); });
  DoAhead(job, copy.uid, [call = std::move(call), memory, owned](worker::Supervisor& worker) {
    if (worker.pid() != 0) worker.Preload(call, memory).IgnoreError();
  });
}

}  // namespace phobos::engine
