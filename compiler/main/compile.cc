// SPDX-License-Identifier: Apache-2.0
#include "compiler/main/compile.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/ir/printer.h"
#include "compiler/manifest/description.h"
#include "compiler/manifest/files.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/record.h"
#include "compiler/race/race.h"
#include "compiler/sema/lower.h"

namespace phobos::compiler {
namespace {

constexpr absl::Duration kWatchInterval = absl::Milliseconds(100);

absl::StatusOr<ir::Function> LowerAndVerify(const Compilation& compilation,
                                            const sema::Settings& settings) {
  ASSIGN_OR_RETURN(ir::Function function, sema::Lower(compilation.source, compilation.module,
                                                      compilation.kernel, settings));
  RETURN_IF_ERROR(passes::VerifyAfter(passes::kLowered, function));
  return function;
}

v1::RaceVerdict VerdictOf(race::Verdict verdict) {
  switch (verdict) {
    case race::Verdict::kRaceFree:
      return v1::RACE_VERDICT_RACE_FREE;
    case race::Verdict::kRace:
      return v1::RACE_VERDICT_RACE;
    case race::Verdict::kUnproven:
      return v1::RACE_VERDICT_UNPROVEN;
  }
  return v1::RACE_VERDICT_UNSPECIFIED;
}

// An error that says nothing of the variant: the machine lacks something, or the back end is lost.
bool IsOfNoVariant(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status);
}

// Errors: those that are of no variant.
absl::Status Fail(const absl::Status& status, v1::Variant* variant) {
  if (IsOfNoVariant(status)) return status;
  const bool is_over_limit = status.code() == absl::StatusCode::kResourceExhausted;
  variant->set_status(is_over_limit ? v1::VARIANT_STATUS_UNSUPPORTED
                                    : v1::VARIANT_STATUS_COMPILE_ERROR);
  const bool is_ours = status.code() == absl::StatusCode::kInternal;
  variant->set_reason(
      Concat(is_ours ? "the compiler is at fault: " : "", std::string(status.message())));
  return absl::OkStatus();
}

// `kind`: "", or what the file is beside the variant's artifact. Errors: those of the disk alone.
absl::StatusOr<v1::Artifact> StoreArtifact(const Compilation& compilation, int32_t index,
                                           std::string_view kind, Code code) {
  const bool is_host = std::holds_alternative<host::Chip>(compilation.chip);
  code.artifact.set_file(is_host ? Concat(compilation.kernel.name, ".", index, kind, ".so")
                                 : Concat(code.artifact.digest(), ".ptx"));
  if (!compilation.out.empty()) {
    RETURN_IF_ERROR(WriteFile(compilation.out, code.artifact.file(), code.bytes));
  }
  return std::move(code.artifact);
}

v1::Shadow::Content ContentOf(passes::ShadowContent content) {
  switch (content) {
    case passes::ShadowContent::kLastWrite:
      return v1::Shadow::LAST_WRITE;
    case passes::ShadowContent::kFirstWrite:
      return v1::Shadow::FIRST_WRITE;
    case passes::ShadowContent::kLastRead:
      return v1::Shadow::LAST_READ;
    case passes::ShadowContent::kFirstRead:
      return v1::Shadow::FIRST_READ;
    case passes::ShadowContent::kLastAtomic:
      return v1::Shadow::LAST_ATOMIC;
    case passes::ShadowContent::kFirstAtomic:
      return v1::Shadow::FIRST_ATOMIC;
    case passes::ShadowContent::kStamp:
      return v1::Shadow::STAMP;
    case passes::ShadowContent::kClash:
      return v1::Shadow::CLASH;
  }
  return v1::Shadow::CONTENT_UNSPECIFIED;
}

// The race-recording form of a variant that was compiled. Errors: those that are of no variant.
absl::StatusOr<v1::Recording> CompileRecording(const Compilation& compilation,
                                               const ir::Function& function,
                                               const std::set<int32_t>& proved, int32_t index) {
  v1::Recording recording;
  passes::Recording made = passes::Record(function, proved);
  absl::StatusOr<Code> code = absl::UnknownError("not made");
  if (absl::Status status = passes::VerifyAfter(passes::kRecorded, made.function); !status.ok()) {
    code = std::move(status);
  } else {
    code = GenerateCode(made.function, compilation.chip);
  }
  if (IsOfNoVariant(code.status())) return code.status();
  if (!code.ok()) {
    recording.set_reason(std::string(code.status().message()));
    return recording;
  }
  for (const passes::Shadow& shadow : made.shadows) {
    v1::Shadow* added = recording.add_shadows();
    added->set_parameter(function.params[shadow.param].name);
    added->set_content(ContentOf(shadow.content));
    for (const int32_t line : shadow.lines) {
      added->add_places(Concat(function.file_name, ":", line));
    }
  }
  ASSIGN_OR_RETURN(*recording.mutable_artifact(),
                   StoreArtifact(compilation, index, ".recording", *std::move(code)));
  return recording;
}

absl::Status CompileInto(const Compilation& compilation, const sema::Settings& settings,
                         v1::Variant* variant) {
  const std::string excluded = sema::ExcludedReason(compilation.kernel, settings);
  if (!excluded.empty()) {
    variant->set_status(v1::VARIANT_STATUS_EXCLUDED);
    variant->set_reason(excluded);
    return absl::OkStatus();
  }
  absl::StatusOr<ir::Function> function = LowerAndVerify(compilation, settings);
  if (!function.ok()) return Fail(function.status(), variant);
  std::set<int32_t> proved;
  if (compilation.check_races) {
    race::Report report = race::Check(*function);
    proved = std::move(report.proved_params);
    variant->set_race_verdict(VerdictOf(report.verdict));
    variant->set_race_detail(report.detail);
    if (report.verdict == race::Verdict::kRace) {
      variant->set_status(v1::VARIANT_STATUS_RACE);
      variant->set_reason(report.detail);
      return absl::OkStatus();
    }
  }
  absl::StatusOr<Code> code = GenerateCode(*function, compilation.chip);
  if (!code.ok()) return Fail(code.status(), variant);
  variant->set_status(v1::VARIANT_STATUS_COMPILED);
  ASSIGN_OR_RETURN(*variant->mutable_artifact(),
                   StoreArtifact(compilation, variant->index(), "", *std::move(code)));
  if (variant->race_verdict() != v1::RACE_VERDICT_UNPROVEN) return absl::OkStatus();
  ASSIGN_OR_RETURN(*variant->mutable_recording(),
                   CompileRecording(compilation, *function, proved, variant->index()));
  return absl::OkStatus();
}

absl::StatusOr<v1::Variant> CompileOne(const Compilation& compilation, int64_t index) {
  const int64_t begin = compilation.thread_cpu_ns();
  const sema::Settings settings = compilation.kernel.VariantSettings(index);
  v1::Variant variant;
  variant.set_index(static_cast<int32_t>(index));
  for (v1::Constant& constant : ToProto(settings)) *variant.add_settings() = std::move(constant);
  RETURN_IF_ERROR(CompileInto(compilation, settings, &variant));
  variant.set_compile_ns(compilation.thread_cpu_ns() - begin);
  return variant;
}

void* RunWork(void* work) {
  (*static_cast<const std::function<void()>*>(work))();
  return nullptr;
}

// Fewer than `count`, perhaps none, where the system refuses.
std::vector<pthread_t> StartThreads(size_t count, std::function<void()>* work) {
  std::vector<pthread_t> threads;
  pthread_t thread;
  while (threads.size() < count && pthread_create(&thread, nullptr, RunWork, work) == 0) {
    threads.push_back(thread);
  }
  return threads;
}

}  // namespace

absl::StatusOr<std::vector<v1::Variant>> CompileVariants(const Compilation& compilation,
                                                         const std::vector<int64_t>& indexes,
                                                         const Watch& watch) {
  std::vector<v1::Variant> variants(indexes.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> has_failed = false;
  absl::Mutex mutex;
  size_t done = 0;       // under the mutex
  absl::Status failure;  // under the mutex: the first
  std::function<void()> work = [&] {
    for (size_t i = next++; i < indexes.size(); i = next++) {
      absl::StatusOr<v1::Variant> outcome = absl::UnknownError("not compiled");
      if (!has_failed) outcome = CompileOne(compilation, indexes[i]);
      const absl::MutexLock lock(&mutex);
      ++done;
      if (outcome.ok()) {
        variants[i] = *std::move(outcome);
      } else if (!has_failed.exchange(true)) {
        failure = outcome.status();
      }
    }
  };
  const size_t jobs = std::min<size_t>(std::max(compilation.jobs, 1), indexes.size());
  const std::vector<pthread_t> threads = StartThreads(jobs, &work);
  if (threads.empty()) work();
  const auto all_are_done = [&] { return done == indexes.size(); };
  bool ends = false;
  while (!ends) {
    mutex.Lock();
    ends = mutex.AwaitWithTimeout(absl::Condition(&all_are_done), kWatchInterval);
    const size_t done_now = done;
    mutex.Unlock();
    watch(done_now);
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  RETURN_IF_ERROR(failure);
  return variants;
}

absl::StatusOr<std::string> PrintIr(const Compilation& compilation, int64_t index,
                                    std::string_view stage) {
  const bool is_host = std::holds_alternative<host::Chip>(compilation.chip);
  ASSIGN_OR_RETURN(
      const std::span<const passes::Pass> passes,
      passes::PassesUpTo(stage, is_host ? passes::Passes() : passes::PassesForThreads()));
  const sema::Settings settings = compilation.kernel.VariantSettings(index);
  ASSIGN_OR_RETURN(ir::Function function, LowerAndVerify(compilation, settings));
  ASSIGN_OR_RETURN(function, passes::Run(std::move(function), passes));
  return Concat("# variant ", index, " after ", stage, "\n", ir::Print(function));
}

}  // namespace phobos::compiler
