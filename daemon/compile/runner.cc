// SPDX-License-Identifier: Apache-2.0
#include "daemon/compile/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/fd.h"
#include "base/read_to_end.h"
#include "base/status_macros.h"
#include "daemon/compile/command.h"
#include "daemon/compile/manifest.h"
#include "daemon/compile/memory.h"
#include "daemon/error/error.h"

namespace phobos::compile {
namespace {

namespace fs = std::filesystem;

using compiler::v1::KernelDescription;
using compiler::v1::Manifest;
using compiler::v1::Variant;

// Exit statuses of phobos-compile that are answers; any other end is a crash.
constexpr int kDone = 0;
constexpr int kSourceIsWrong = 1;
constexpr int kUsage = 2;
constexpr int kNotWritten = 3;

// How much of what a compiler said before it crashed goes into a reason.
constexpr size_t kMostLastWords = 2000;

// A part of a run that did not end gets its share of the limit, but no less than this part of it.
constexpr double kLeastShare = 0.125;

// A compiler built with a sanitizer reserves more address space than any limit allows.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PHOBOS_SANITIZED 1
#endif
#endif
#ifdef PHOBOS_SANITIZED
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif

// The system refuses to take what the compiler writes into `folder`.
absl::Status NotWritten(const std::string& folder, absl::string_view why) {
  return error::Make(absl::StatusCode::kUnavailable, tuner::v1::ERROR_REASON_MACHINE,
                     absl::StrCat("what the compiler makes cannot be written into ", folder, " (",
                                  absl::StripAsciiWhitespace(why).substr(0, kMostLastWords), ")"),
                     error::kDiskRemedy);
}

// What a compiler that ended with kNotWritten lacked: its last words are a call and the system's
// word for why it failed.
absl::Status Lacked(const std::string& folder, absl::string_view errors) {
  for (const int code : {ENOMEM, EAGAIN, EMFILE, ENFILE, EFBIG}) {
    absl::string_view call = absl::StripAsciiWhitespace(errors);
    if (absl::ConsumeSuffix(&call, absl::StrCat(": ", std::generic_category().message(code)))) {
      return error::FromErrno(code, absl::StrCat("the compiler's ", call));
    }
  }
  return NotWritten(folder, errors);
}

// A new folder that is removed with all that is in it.
class WorkFolder {
 public:
  static absl::StatusOr<WorkFolder> Make(const std::string& parent) {
    std::error_code error;
    fs::create_directories(parent, error);
    std::string path = parent + "/compile-XXXXXX";
    if (error || mkdtemp(path.data()) == nullptr) {
      return NotWritten(parent, error ? error.message() : std::generic_category().message(errno));
    }
    return WorkFolder(std::move(path));
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, std::string())) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }

  const std::string& path() const { return path_; }

 private:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// NotFound: there is no such file. Internal: a folder is there, or something else that the compiler
// was not to make.
absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  const int code = file.ok() ? ReadToEnd(file.get(), text) : errno;
  if (code == 0) return text;
  const absl::Status status = error::FromErrno(code, file.ok() ? "read" : "open", path);
  const bool is_ours =
      !absl::IsNotFound(status) && error::DetailOf(status).reason() == tuner::v1::ErrorReason();
  return is_ours ? absl::InternalError(status.message()) : status;
}

absl::Status SourceIsWrong(const std::string& errors) {
  return error::Make(absl::StatusCode::kInvalidArgument, tuner::v1::ERROR_REASON_BAD_SOURCE,
                     std::string(absl::StripTrailingAsciiWhitespace(errors)));
}

CompiledVariant Failed(const compiler::v1::VariantSettings& settings, std::string reason) {
  CompiledVariant failed;
  failed.variant.set_index(settings.index());
  *failed.variant.mutable_settings() = settings.settings();
  failed.variant.set_status(compiler::v1::VARIANT_STATUS_COMPILE_ERROR);
  failed.variant.set_reason(std::move(reason));
  return failed;
}

CompiledVariant Excluded(const compiler::v1::VariantSettings& settings) {
  CompiledVariant excluded = Failed(settings, settings.excluded_reason());
  excluded.variant.set_status(compiler::v1::VARIANT_STATUS_EXCLUDED);
  return excluded;
}

absl::Status CannotBeRun(const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("the compiler cannot be run (", why,
                   "); install phobos-compile beside phobosd or give --compiler=PATH"));
}

// An error of a room that knows no remedies, with one where the machine lacks something.
absl::Status WithRemedy(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status) || !error::DetailOf(status).remedy().empty()) {
    return status;
  }
  return error::Make(status.code(), tuner::v1::ERROR_REASON_MACHINE, std::string(status.message()),
                     error::kLimitsRemedy);
}

// A run's error, where a program that is not there, or may not be run, is not taken for a kernel
// that the text does not have.
absl::Status NotStarted(const std::string& compiler, const absl::Status& status) {
  const bool is_about_program = absl::IsNotFound(status) || absl::IsPermissionDenied(status);
  if (!is_about_program) return WithRemedy(status);
  return CannotBeRun(absl::StrCat(compiler, ": ", status.message()));
}

// The compiling of some variants of one source: what is remembered, then runs for the rest.
class Compilation {
 public:
  Compilation(const Options& options, const std::string& fingerprint, CommandRunner& commands,
              const Source& source, const KernelDescription& description, const std::string& chip,
              cache::ResultStore& store, cache::ArtifactStore& artifacts)
      : options_(options),
        fingerprint_(fingerprint),
        commands_(commands),
        source_(source),
        description_(description),
        chip_(chip),
        memory_(store, fingerprint),
        artifacts_(artifacts) {
    space_.compiler_fingerprint = fingerprint;
  }

  // The outcomes of `wanted`, in that order.
  absl::StatusOr<CompiledSpace> Run(const std::vector<int>& wanted) {
    is_single_ = wanted.size() == 1;
    outcomes_.resize(static_cast<size_t>(description_.variants_size()));
    std::vector<int> open;
    for (const int index : wanted) {
      if (!Answer(index)) open.push_back(index);
    }
    for (const std::vector<int>& stretch : Stretches(open)) {
      RETURN_IF_ERROR(RunPart(stretch, options_.limit));
    }
    for (const int index : wanted) {
      space_.variants.push_back(*std::move(outcomes_[static_cast<size_t>(index)]));
    }
    return std::move(space_);
  }

 private:
  // Whether a variant's outcome is known without a compiler.
  bool Answer(int index) {
    std::optional<CompiledVariant>& outcome = outcomes_[static_cast<size_t>(index)];
    const compiler::v1::VariantSettings& settings = description_.variants(index);
    if (!settings.excluded_reason().empty()) {
      outcome = Excluded(settings);
      return true;
    }
    std::optional<Memory::Known> known =
        memory_.RecallVariant(source_, description_, index, chip_, artifacts_);
    if (!known.has_value()) return false;
    if (!known->slots.empty()) space_.slots = std::move(known->slots);
    outcome = std::move(known->variant);
    return true;
  }

  // The open variants as stretches for `--variants A-B`: nothing that is known lies inside one, but
  // excluded variants may.
  std::vector<std::vector<int>> Stretches(const std::vector<int>& open) const {
    std::vector<std::vector<int>> stretches;
    for (const int index : open) {
      const bool joins = !stretches.empty() && AllExcluded(stretches.back().back() + 1, index);
      if (!joins) stretches.emplace_back();
      stretches.back().push_back(index);
    }
    return stretches;
  }

  bool AllExcluded(int first, int end) const {
    for (int i = first; i < end; ++i) {
      if (description_.variants(i).excluded_reason().empty()) return false;
    }
    return true;
  }

  // One run for a stretch, or, when it crashes or takes too long, two for its halves. A variant
  // that crashes alone gets a second run: the cause may have been the machine's.
  absl::Status RunPart(const std::vector<int>& part, absl::Duration limit, int attempt = 1) {
    ASSIGN_OR_RETURN(const WorkFolder folder, WorkFolder::Make(options_.work_folder));
    const absl::StatusOr<Ended> run = commands_.Run(CompileCommand(part, folder, limit));
    if (!run.ok()) return NotStarted(options_.compiler, run.status());
    const Ended& ended = *run;
    ++space_.runs;
    space_.cpu_time += ended.cpu_time;
    if (ended.exit_status == kDone || ended.exit_status == kSourceIsWrong) {
      return TakeManifest(part, folder, ended);
    }
    if (ended.exit_status == kNotWritten) return Lacked(options_.work_folder, ended.errors);
    if (ended.exit_status == kUsage) {
      return absl::InternalError(
          absl::StrCat(options_.compiler, " refused its command line: ", ended.errors));
    }
    if (part.size() == 1) {
      if (!ended.timed_out && attempt == 1) return RunPart(part, limit, attempt + 1);
      Condemn(part[0], ended);
      return absl::OkStatus();
    }
    const auto middle = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
    const absl::Duration less = std::max(limit / 2, options_.limit * kLeastShare);
    RETURN_IF_ERROR(RunPart({part.begin(), middle}, less));
    return RunPart({middle, part.end()}, less);
  }

  void Condemn(int index, const Ended& ended) {
    CompiledVariant failed = Failed(
        description_.variants(index),
        absl::StrCat("the compiler failed on this variant alone: ", ended.how,
                     ended.errors.empty() ? "" : "\n", ended.errors.substr(0, kMostLastWords)));
    // A compiler does not kill itself so: the system, short of memory, or somebody did. That says
    // nothing of the next time.
    if (ended.signal == SIGKILL) {
      outcomes_[static_cast<size_t>(index)] = std::move(failed);
    } else {
      Keep(std::move(failed));
    }
  }

  Command CompileCommand(const std::vector<int>& part, const WorkFolder& folder,
                         absl::Duration limit) const {
    Command command;
    command.argv = {options_.compiler,
                    "-",
                    "--file-name",
                    source_.file_name,
                    "--kernel",
                    source_.kernel,
                    "--chip",
                    chip_,
                    "--check-races",
                    "--out",
                    folder.path(),
                    "--jobs",
                    absl::StrCat(options_.jobs),
                    "--format",
                    "text"};
    const bool is_whole =
        AllExcluded(0, part.front()) && AllExcluded(part.back() + 1, description_.variants_size());
    if (is_whole) {
      command.argv.push_back("--all-variants");
    } else {
      command.argv.push_back("--variants");
      command.argv.push_back(absl::StrCat(part.front(), "-", part.back()));
    }
    command.input = source_.text;
    command.limit = limit;
    command.runs_in_pauses = is_single_;
    command.address_space_bytes = kLimitsMemory ? options_.memory_bytes : 0;
    return command;
  }

  absl::Status TakeManifest(const std::vector<int>& part, const WorkFolder& folder,
                            const Ended& ended) {
    const absl::StatusOr<std::string> json = ReadWhole(folder.path() + "/manifest.json");
    if (absl::IsNotFound(json.status())) {
      if (ended.exit_status == kSourceIsWrong) return SourceIsWrong(ended.errors);
      return absl::InternalError(
          absl::StrCat(options_.compiler, " wrote no manifest and said that all went well"));
    }
    RETURN_IF_ERROR(json.status());
    ASSIGN_OR_RETURN(const Manifest manifest,
                     ParseManifest(*json, Asked{description_, fingerprint_, chip_}));
    space_.slots.assign(manifest.slots().begin(), manifest.slots().end());
    for (const int index : part) {
      const auto found =
          std::find_if(manifest.variants().begin(), manifest.variants().end(),
                       [index](const Variant& variant) { return variant.index() == index; });
      if (found == manifest.variants().end()) {
        Keep(Failed(description_.variants(index), "the compiler said nothing of this variant"));
        continue;
      }
      RETURN_IF_ERROR(TakeVariant(*found, folder));
    }
    return absl::OkStatus();
  }

  absl::Status TakeVariant(const Variant& variant, const WorkFolder& folder) {
    const compiler::v1::VariantSettings& settings = description_.variants(variant.index());
    if (absl::Status status = CheckVariant(variant, description_); !status.ok()) {
      Keep(Failed(settings, std::string(status.message())));
      return absl::OkStatus();
    }
    CompiledVariant compiled = {variant, std::string(), std::string()};
    if (variant.status() == compiler::v1::VARIANT_STATUS_COMPILED) {
      absl::Status taken = TakeArtifact(variant.artifact(), folder, compiled.artifact_path);
      if (taken.ok() && variant.recording().has_artifact()) {
        taken = TakeArtifact(variant.recording().artifact(), folder, compiled.recording_path);
      }
      if (absl::IsNotFound(taken) || absl::IsDataLoss(taken)) {
        Keep(Failed(settings, absl::StrCat("the compiler's manifest is wrong about its artifact: ",
                                           std::string(taken.message()))));
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(taken);
    }
    Keep(std::move(compiled));
    return absl::OkStatus();
  }

  absl::Status TakeArtifact(const compiler::v1::Artifact& artifact, const WorkFolder& folder,
                            std::string& path) {
    absl::StatusOr<std::string> place =
        artifacts_.Adopt(absl::StrCat(folder.path(), "/", artifact.file()), artifact.digest(),
                         ArtifactExtension(artifact.file()));
    if (absl::IsUnavailable(place.status())) {
      return error::Make(absl::StatusCode::kUnavailable, tuner::v1::ERROR_REASON_MACHINE,
                         std::string(place.status().message()), error::kDiskRemedy);
    }
    if (!place.ok()) return WithRemedy(place.status());
    path = *std::move(place);
    return absl::OkStatus();
  }

  void Keep(CompiledVariant outcome) {
    memory_.RememberVariant(source_, description_, chip_, outcome.variant, space_.slots);
    const auto index = static_cast<size_t>(outcome.variant.index());
    outcomes_[index] = std::move(outcome);
  }

  const Options& options_;
  const std::string& fingerprint_;
  CommandRunner& commands_;
  const Source& source_;
  const KernelDescription& description_;
  const std::string& chip_;
  Memory memory_;
  cache::ArtifactStore& artifacts_;
  std::vector<std::optional<CompiledVariant>> outcomes_;  // by index
  bool is_single_ = false;
  CompiledSpace space_;
};

class ProcessRunner : public Runner {
 public:
  explicit ProcessRunner(Options options) : options_(std::move(options)) {}

  absl::Status AskFingerprint() {
    Command command;
    command.argv = {options_.compiler, "--version"};
    command.keep_output = true;
    command.limit = options_.limit;
    command.address_space_bytes = kLimitsMemory ? options_.memory_bytes : 0;
    const absl::StatusOr<Ended> ended = RunTwice(command);
    std::string why = ended.ok() ? ended->how : std::string(ended.status().message());
    if (ended.ok() && ended->exit_status == kDone) {
      fingerprint_ = std::string(absl::StripAsciiWhitespace(ended->output));
      if (!fingerprint_.empty()) return absl::OkStatus();
      why = "it printed nothing";
    }
    return CannotBeRun(absl::StrCat(options_.compiler, " --version: ", why));
  }

  const std::string& fingerprint() const override { return fingerprint_; }

  absl::StatusOr<KernelDescription> Describe(const Source& source,
                                             cache::ResultStore& store) override {
    Memory memory(store, fingerprint_);
    if (auto known = memory.RecallDescription(source); known.has_value()) return *std::move(known);
    Command command;
    command.argv = {options_.compiler, "-",        "--file-name",
                    source.file_name,  "--kernel", source.kernel,
                    "--describe",      "--format", "json"};
    command.input = source.text;
    command.keep_output = true;
    command.limit = options_.limit;
    command.runs_in_pauses = true;
    command.address_space_bytes = kLimitsMemory ? options_.memory_bytes : 0;
    const absl::StatusOr<Ended> described = RunTwice(command);
    if (!described.ok()) return NotStarted(options_.compiler, described.status());
    const Ended& ended = *described;
    if (ended.exit_status == kSourceIsWrong) {
      return SourceIsWrong(ended.errors);
    }
    // Of the command line only the kernel's name is the caller's.
    if (ended.exit_status == kUsage) {
      absl::string_view line = ended.errors;
      absl::ConsumePrefix(&line, "phobos-compile: ");
      return absl::NotFoundError(line.substr(0, line.find('\n')));
    }
    if (ended.exit_status == kNotWritten) return Lacked(options_.work_folder, ended.errors);
    if (ended.exit_status != kDone) {
      return absl::InternalError(absl::StrCat("the compiler failed on ", source.file_name, ": ",
                                              ended.how, "\n", ended.errors));
    }
    ASSIGN_OR_RETURN(KernelDescription description, ParseDescription(ended.output));
    if (description.kernel() != source.kernel) {
      return absl::InternalError(absl::StrCat("the compiler described ", description.kernel(),
                                              " instead of ", source.kernel));
    }
    memory.RememberDescription(source, description);
    return description;
  }

  absl::StatusOr<CompiledSpace> CompileAll(const Source& source,
                                           const KernelDescription& description,
                                           const std::string& chip, cache::ResultStore& store,
                                           cache::ArtifactStore& artifacts) override {
    std::vector<int> all;
    for (const auto& settings : description.variants()) all.push_back(settings.index());
    return Compile(source, description, all, chip, store, artifacts);
  }

  absl::StatusOr<CompiledVariant> CompileOne(const Source& source,
                                             const KernelDescription& description, int variant,
                                             const std::string& chip, cache::ResultStore& store,
                                             cache::ArtifactStore& artifacts) override {
    if (variant < 0 || variant >= description.variants_size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(description.kernel(), " has no variant ", variant));
    }
    ASSIGN_OR_RETURN(CompiledSpace space,
                     Compile(source, description, {variant}, chip, store, artifacts));
    return std::move(space.variants.front());
  }

  void Pause() override { commands_.Pause(); }
  void Resume() override { commands_.Resume(); }
  void Stop() override { commands_.Stop(); }

 private:
  // A command that dies gets a second run: the cause may have been the machine's.
  absl::StatusOr<Ended> RunTwice(const Command& command) {
    absl::StatusOr<Ended> ended = commands_.Run(command);
    return ended.ok() && ended->signal != 0 ? commands_.Run(command) : ended;
  }

  absl::StatusOr<CompiledSpace> Compile(const Source& source, const KernelDescription& description,
                                        const std::vector<int>& variants, const std::string& chip,
                                        cache::ResultStore& store,
                                        cache::ArtifactStore& artifacts) {
    return Compilation(options_, fingerprint_, commands_, source, description, chip, store,
                       artifacts)
        .Run(variants);
  }

  const Options options_;
  CommandRunner commands_;
  std::string fingerprint_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Runner>> Runner::Start(Options options) {
  std::error_code in_vain;  // then a run tells what is wrong with the folder
  fs::remove_all(options.work_folder, in_vain);
  auto runner = std::make_unique<ProcessRunner>(std::move(options));
  RETURN_IF_ERROR(runner->AskFingerprint());
  return runner;
}

}  // namespace phobos::compile
