// SPDX-License-Identifier: Apache-2.0
//
// phobos-compile: reads the command line and a file, runs what it asks for, prints the result.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/codegen/kernel/machine_code.h"
#include "compiler/main/backend.h"
#include "compiler/main/compile.h"
#include "compiler/main/fingerprint.h"
#include "compiler/main/options.h"
#include "compiler/main/progress.h"
#include "compiler/main/report.h"
#include "compiler/main/selection.h"
#include "compiler/manifest/description.h"
#include "compiler/manifest/files.h"
#include "compiler/sema/kernel.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kMachineLacks = 3;  // room on a disk, memory, descriptors
constexpr int kCrashed = 4;

constexpr int kManifestFormat = 1;

// Ends the process: a thread without memory can neither go on nor return an error.
[[noreturn]] void EndWithoutMemory() {
  static std::atomic_flag is_told;
  while (is_told.test_and_set()) pause();  // another thread ends the process
  constexpr std::string_view kLine = "memory: Cannot allocate memory\n";
  (void)!write(STDERR_FILENO, kLine.data(), kLine.size());
  _exit(kMachineLacks);
}

int64_t ThreadCpuNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

int Complain(const absl::Status& status, int exit_code) {
  std::cerr << (exit_code == kUsage ? "phobos-compile: " : "") << std::string(status.message())
            << "\n";
  if (exit_code == kUsage) std::cerr << "phobos-compile --help shows how it is written\n";
  return exit_code;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::string text;
  const auto read = [&](std::istream& stream) {
    // One byte more than the front end reads, so that it can say that the file is too long.
    text.resize(kMaxSourceBytes + 1);
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(stream.gcount());
    return !stream.bad();
  };
  if (path == "-") {
    if (read(std::cin)) return text;
    return absl::NotFoundError("standard input cannot be read");
  }
  std::ifstream file(path, std::ios::binary);
  if (file && read(file)) return text;
  return absl::NotFoundError(Concat(path, ": cannot be read; is it a file, and yours to read?"));
}

int PrintDescription(const Options& options, const Source& source, const sema::Kernel& kernel) {
  const v1::KernelDescription description = Describe(source, kernel);
  if (options.format == Options::Format::kText) {
    std::cout << DescriptionPage(source.file_name(), kernel, description);
    return kDone;
  }
  const absl::StatusOr<std::string> json = ToJson(description);
  if (!json.ok()) return Complain(json.status(), kFailed);
  std::cout << *json;
  return kDone;
}

int ExitCodeOf(const absl::Status& status) {
  if (absl::IsUnavailable(status)) return kMachineLacks;
  return absl::IsAborted(status) ? kCrashed : kFailed;
}

// Errors: as CompileVariants; Unavailable where the results cannot be written.
absl::StatusOr<v1::Manifest> Compile(const Compilation& compilation,
                                     const std::vector<int64_t>& indexes) {
  if (!compilation.out.empty()) RETURN_IF_ERROR(MakeFolder(compilation.out));
  ProgressLine progress(compilation.kernel.name, indexes.size());
  ASSIGN_OR_RETURN(
      std::vector<v1::Variant> variants,
      CompileVariants(compilation, indexes, [&](size_t done) { progress.Show(done); }));
  v1::Manifest manifest;
  manifest.set_format(kManifestFormat);
  manifest.set_compiler_fingerprint(CompilerFingerprint());
  manifest.set_chip(NameOf(compilation.chip));
  *manifest.mutable_description() = Describe(compilation.source, compilation.kernel);
  for (v1::Variant& variant : variants) *manifest.add_variants() = std::move(variant);
  manifest.set_races_checked(compilation.check_races);
  for (std::string& slot : Slots(compilation.kernel)) manifest.add_slots(std::move(slot));
  if (compilation.out.empty()) return manifest;
  ASSIGN_OR_RETURN(const std::string json, ToJson(manifest));
  RETURN_IF_ERROR(WriteFile(compilation.out, "manifest.json", json));
  return manifest;
}

int CompileAndReport(const Options& options, const Compilation& compilation,
                     const std::vector<int64_t>& indexes) {
  const absl::StatusOr<v1::Manifest> manifest = Compile(compilation, indexes);
  if (!manifest.ok()) return Complain(manifest.status(), ExitCodeOf(manifest.status()));
  if (options.format == Options::Format::kText) {
    std::cout << ManifestTable(*manifest);
  } else {
    const absl::StatusOr<std::string> json = ToJson(*manifest);
    if (!json.ok()) return Complain(json.status(), kFailed);
    std::cout << *json;
  }
  for (const v1::Variant& variant : manifest->variants()) {
    if (variant.status() == v1::VARIANT_STATUS_COMPILED) return kDone;
  }
  return kFailed;
}

int PrintVariants(const Options& options, const Compilation& compilation,
                  const std::vector<int64_t>& indexes) {
  for (const int64_t index : indexes) {
    const absl::StatusOr<std::string> text = PrintIr(compilation, index, options.ir_stage);
    if (!text.ok()) return Complain(text.status(), kFailed);
    std::cout << *text;
  }
  return kDone;
}

int RunOnFile(const Options& options) {
  absl::StatusOr<std::string> text = ReadFile(options.file);
  if (!text.ok()) return Complain(text.status(), kUsage);
  const std::string name = options.file == "-" ? "<stdin>" : options.file;
  const Source source(options.file_name.empty() ? name : options.file_name, *std::move(text));
  const absl::StatusOr<ast::Module> module = Parse(source);
  if (!module.ok()) return Complain(module.status(), kFailed);
  const absl::StatusOr<sema::Analysis> analysis = sema::AnalyzeModule(source, *module);
  if (!analysis.ok()) return Complain(analysis.status(), kFailed);
  if (const absl::Status errors = ErrorsOf(*analysis, options); !errors.ok()) {
    return Complain(errors, kFailed);
  }
  const absl::StatusOr<const sema::Kernel*> kernel = SelectKernel(*analysis, options);
  if (!kernel.ok()) return Complain(kernel.status(), kUsage);
  if (options.action == Options::Action::kDescribe)
    return PrintDescription(options, source, **kernel);
  const absl::StatusOr<std::vector<int64_t>> indexes = SelectVariants(**kernel, options);
  if (!indexes.ok()) return Complain(indexes.status(), kUsage);
  absl::StatusOr<Chip> chip = ResolveChip(options.chip);
  if (!chip.ok()) return Complain(chip.status(), kUsage);
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  const Compilation compilation{source,
                                *module,
                                **kernel,
                                *std::move(chip),
                                options.check_races,
                                options.out,
                                options.jobs > 0 ? options.jobs : cpus,
                                ThreadCpuNanoseconds};
  if (options.action == Options::Action::kPrintIr)
    return PrintVariants(options, compilation, *indexes);
  return CompileAndReport(options, compilation, *indexes);
}

void PrepareForLacks() {
  signal(SIGXFSZ, SIG_IGN);  // a file that is too large for a limit is an error of its write
  std::set_new_handler(EndWithoutMemory);
  codegen::EndWithoutMemoryBy(EndWithoutMemory);
}

int Run(int argc, char** argv) {
  const absl::StatusOr<Options> options = ParseOptions(argc, argv);
  if (!options.ok()) return Complain(options.status(), kUsage);
  if (options->action == Options::Action::kHelp) {
    std::cout << HelpText();
    return kDone;
  }
  if (options->action == Options::Action::kVersion) {
    const std::string fingerprint = CompilerFingerprint();
    const bool is_json = options->format == Options::Format::kJson;
    std::cout << (is_json ? Concat("{\"compiler_fingerprint\": \"", fingerprint, "\"}")
                          : fingerprint)
              << "\n";
    return kDone;
  }
  return RunOnFile(*options);
}

}  // namespace
}  // namespace phobos::compiler

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  phobos::compiler::PrepareForLacks();
  const int code = phobos::compiler::Run(argc, argv);
  std::cout.flush();
  if (std::cout) return code;
  std::cerr << "phobos-compile: the result could not be written\n";
  return phobos::compiler::kMachineLacks;
}
