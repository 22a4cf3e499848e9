// SPDX-License-Identifier: Apache-2.0
#include "compiler/main/options.h"

#include <getopt.h>

#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/passes/pipeline.h"

namespace phobos::compiler {
namespace {

constexpr char kHelp[] =
    R"(phobos-compile: compiles the kernels of a Python file, without running Python.

usage: phobos-compile FILE.py [options]       FILE may be - for standard input

what to do
  --describe             show the kernel: parameters, extents, key, search space, conditions
  --print-ir[=STAGE]     show the tile IR of the chosen variants, as the source says it, or as it is
                         after a stage: lower (what the source says), stage (what is compiled),
                         record (the race-recording form)
  (neither)              compile the chosen variants

which kernel, which variants
  --kernel NAME          the kernel, when the file has several
  --all-variants         the whole search space
  --variants A-B         those with index A to B, both included; --variants A is one
  --set NAME=VALUE       the variant with this value; repeat it for each constant, the others take
                         their first choice
  (none)                 variant 0: each constant's first choice

how
  --chip NAME            native (default), x86-64-v3, x86-64-v4, a CPU name such as znver5, or a
                         GPU: sm_75, sm_80, sm_86, sm_89, sm_90
  --check-races          decide for each variant whether two blocks can touch one element
  --jobs N               variants compiled at once (default: one for each CPU)

results
  --out DIR              write artifacts and manifest.json there; without it nothing is written
  --format text|json     text is a table for people; json is the manifest (or, with --describe, the
                         description) of docs/compiler_contract.md
  --file-name NAME       what messages call the file (for FILE -)
  --version              print the fingerprint: what of the compiler changes the code it makes
  --help                 print this

exit status
  0  done; single variants may have failed, and the result says so
  1  the source is wrong, or no variant could be compiled
  2  the command line is wrong, or the file cannot be read
  3  the machine lacks something: room for the results, memory, descriptors

examples
  phobos-compile add.py --describe
  phobos-compile add.py --all-variants --check-races --out build/add
  phobos-compile gemm.py --kernel gemm --set BM=64 --set BN=128 --print-ir=stage
  phobos-compile - --file-name cell.py --all-variants --format json < cell.py
)";

enum Flag {
  kDescribe = 256,
  kPrintIr,
  kKernel,
  kAllVariants,
  kVariants,
  kSet,
  kChip,
  kCheckRaces,
  kJobs,
  kOut,
  kFormat,
  kFileName,
  kVersion,
  kHelpFlag,
};

constexpr option kFlags[] = {
    {"describe", no_argument, nullptr, kDescribe},
    {"print-ir", optional_argument, nullptr, kPrintIr},
    {"kernel", required_argument, nullptr, kKernel},
    {"all-variants", no_argument, nullptr, kAllVariants},
    {"variants", required_argument, nullptr, kVariants},
    {"set", required_argument, nullptr, kSet},
    {"chip", required_argument, nullptr, kChip},
    {"check-races", no_argument, nullptr, kCheckRaces},
    {"jobs", required_argument, nullptr, kJobs},
    {"out", required_argument, nullptr, kOut},
    {"format", required_argument, nullptr, kFormat},
    {"file-name", required_argument, nullptr, kFileName},
    {"version", no_argument, nullptr, kVersion},
    {"help", no_argument, nullptr, kHelpFlag},
    {nullptr, 0, nullptr, 0},
};

constexpr int kMaxJobs = 1024;

absl::Status Wrong(const std::string& text) { return absl::InvalidArgumentError(text); }

// --all-variants, --variants and --set exclude each other.
absl::Status Select(Options::Selection selection, Options* options) {
  if (options->selection != Options::Selection::kFirst && options->selection != selection) {
    return Wrong("--all-variants, --variants and --set exclude each other; give one of them");
  }
  options->selection = selection;
  return absl::OkStatus();
}

absl::Status Act(Options::Action action, Options* options) {
  if (options->action != Options::Action::kCompile && options->action != action) {
    return Wrong(
        "--describe, --print-ir, --version and --help exclude each other; give one of them");
  }
  options->action = action;
  return absl::OkStatus();
}

absl::Status ReadStage(std::string_view stage, Options* options) {
  RETURN_IF_ERROR(Act(Options::Action::kPrintIr, options));
  options->ir_stage = stage.empty() ? passes::kLowered : stage;
  const absl::Status status = passes::PassesUpTo(options->ir_stage).status();
  return status.ok() ? status : Wrong(Concat("--print-ir: ", std::string(status.message())));
}

absl::Status ReadRange(std::string_view text, Options* options) {
  RETURN_IF_ERROR(Select(Options::Selection::kRange, options));
  const size_t dash = text.find('-');
  const std::string_view last = dash == std::string_view::npos ? text : text.substr(dash + 1);
  const bool is_read = absl::SimpleAtoi(ForAbseil(text.substr(0, dash)), &options->first) &&
                       absl::SimpleAtoi(ForAbseil(last), &options->last);
  if (is_read && options->first >= 0 && options->first <= options->last) return absl::OkStatus();
  return Wrong(Concat("--variants ", text, ": write two indexes, --variants 0-7, or one"));
}

absl::Status ReadSetting(std::string_view text, Options* options) {
  RETURN_IF_ERROR(Select(Options::Selection::kSet, options));
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return Wrong(Concat("--set ", text, ": write --set NAME=VALUE"));
  }
  std::string name(text.substr(0, equals));
  for (const auto& [other, value] : options->settings) {
    if (other == name) return Wrong(Concat("--set ", name, " is given twice"));
  }
  options->settings.emplace_back(std::move(name), text.substr(equals + 1));
  return absl::OkStatus();
}

absl::Status ReadFlag(int flag, Options* options) {
  const std::string_view value = optarg == nullptr ? "" : optarg;
  switch (flag) {
    case kDescribe:
      return Act(Options::Action::kDescribe, options);
    case kPrintIr:
      return ReadStage(value, options);
    case kVersion:
      return Act(Options::Action::kVersion, options);
    case kHelpFlag:
      return Act(Options::Action::kHelp, options);
    case kAllVariants:
      return Select(Options::Selection::kAll, options);
    case kVariants:
      return ReadRange(value, options);
    case kSet:
      return ReadSetting(value, options);
    case kKernel:
      options->kernel = value;
      return absl::OkStatus();
    case kChip:
      options->chip = value;
      return absl::OkStatus();
    case kCheckRaces:
      options->check_races = true;
      return absl::OkStatus();
    case kOut:
      options->out = value;
      return value.empty() ? Wrong("--out needs the name of a folder") : absl::OkStatus();
    case kFileName:
      options->file_name = value;
      return absl::OkStatus();
    case kJobs:
      if (absl::SimpleAtoi(ForAbseil(value), &options->jobs) && options->jobs >= 1 &&
          options->jobs <= kMaxJobs) {
        return absl::OkStatus();
      }
      return Wrong(Concat("--jobs ", value, ": write a number from 1 to ", kMaxJobs));
    case kFormat:
      if (value != "text" && value != "json")
        return Wrong(Concat("--format ", value, ": write text or json"));
      options->format = value == "json" ? Options::Format::kJson : Options::Format::kText;
      return absl::OkStatus();
    default:
      return absl::InternalError("unreached");
  }
}

}  // namespace

absl::StatusOr<Options> ParseOptions(int argc, char** argv) {
  Options options;
  opterr = 0;
  optind = 0;  // getopt begins anew
  while (true) {
    // The colon tells a missing value from an unknown flag.
    const int flag = getopt_long(argc, argv, ":", kFlags, nullptr);
    if (flag == -1) break;
    if (flag == ':') return Wrong(Concat(argv[optind - 1], " needs a value"));
    if (flag == '?') {
      const bool is_short = optopt > 0 && optopt < 128;
      return Wrong(Concat("unknown option ",
                          is_short ? Concat("-", std::string(1, optopt)) : argv[optind - 1]));
    }
    RETURN_IF_ERROR(ReadFlag(flag, &options));
  }
  if (options.action == Options::Action::kVersion || options.action == Options::Action::kHelp)
    return options;
  if (optind >= argc) return Wrong("name the file to compile: phobos-compile FILE.py");
  if (optind + 1 < argc)
    return Wrong(Concat("one file at a time; '", argv[optind + 1], "' is a second one"));
  options.file = argv[optind];
  return options;
}

std::string_view HelpText() { return kHelp; }

}  // namespace phobos::compiler
