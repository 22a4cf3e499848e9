// SPDX-License-Identifier: Apache-2.0
#include "daemon/options/options.h"

#include <getopt.h>
#include <pwd.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace phobos::options {
namespace {

using Setter = absl::Status (*)(const std::string& value, Command& command);

struct Flag {
  const char* name;
  const char* argument;  // null: the flag takes none
  const char* help;      // null: not shown
  Setter set;
};

absl::StatusOr<int64_t> Whole(const std::string& value, int64_t least) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", value, "' is not a whole number of at least ", least));
  }
  return number;
}

// "512", "64K", "8M", "4G": bytes in powers of 1024.
absl::StatusOr<int64_t> Bytes(const std::string& value) {
  std::string digits = value;
  int shift = 0;
  if (!digits.empty()) {
    const size_t unit = std::string("KMG").find(digits.back());
    if (unit != std::string::npos) {
      shift = 10 * (static_cast<int>(unit) + 1);
      digits.pop_back();
    }
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(digits, &number) || number < 0 || number > (INT64_MAX >> shift)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", value, "' is not a size; write bytes, or a number with K, M or G"));
  }
  return number << shift;
}

absl::StatusOr<absl::Duration> Span(const std::string& value) {
  absl::Duration span;
  if (value == "0") return absl::ZeroDuration();
  if (!absl::ParseDuration(value, &span) || span < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", value, "' is not a duration; write for example 90s, 15m or 250ms"));
  }
  return span;
}

template <auto Member>
absl::Status SetText(const std::string& value, Command& command) {
  if (value.empty()) return absl::InvalidArgumentError("the value is empty");
  command.options.*Member = value;
  return absl::OkStatus();
}

template <auto Member>
absl::Status SetTrue(const std::string&, Command& command) {
  command.options.*Member = true;
  return absl::OkStatus();
}

template <auto Member, int64_t least>
absl::Status SetWhole(const std::string& value, Command& command) {
  ASSIGN_OR_RETURN(const int64_t number, Whole(value, least));
  if (number > INT32_MAX)
    return absl::InvalidArgumentError(absl::StrCat("'", value, "' is too large"));
  command.options.*Member = static_cast<int>(number);
  return absl::OkStatus();
}

template <auto Member>
absl::Status SetBytes(const std::string& value, Command& command) {
  ASSIGN_OR_RETURN(command.options.*Member, Bytes(value));
  return absl::OkStatus();
}

template <auto Member>
absl::Status SetSpan(const std::string& value, Command& command) {
  ASSIGN_OR_RETURN(command.options.*Member, Span(value));
  return absl::OkStatus();
}

absl::Status SetDevices(const std::string& value, Command& command) {
  std::vector<std::string>& devices = command.options.devices;
  devices = absl::StrSplit(value, ',');
  const bool has_all_gpus = std::count(devices.begin(), devices.end(), "cuda") > 0;
  for (const std::string& device : devices) {
    const bool is_known = device == "cpu" || device == "cuda" || device.starts_with("cuda:") ||
                          device.starts_with("fake:");
    if (!is_known) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", device, "' is no device; write cuda, cuda:UUID or cpu"));
    }
    // One device has one queue and one worker.
    const bool is_there_twice = std::count(devices.begin(), devices.end(), device) > 1 ||
                                (has_all_gpus && device.starts_with("cuda:"));
    if (is_there_twice) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", device, "' is there twice (cuda is all GPUs); give each device once"));
    }
  }
  // A call that names no device means the last.
  std::stable_partition(devices.begin(), devices.end(),
                        [](const std::string& device) { return device != "cpu"; });
  return absl::OkStatus();
}

absl::Status SetTieBreak(const std::string& value, Command& command) {
  if (value == "fastest") {
    command.options.tie_break = tuner::v1::TIE_BREAK_FASTEST;
  } else if (value == "first-within-noise") {
    command.options.tie_break = tuner::v1::TIE_BREAK_FIRST_WITHIN_NOISE;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("'", value, "' is no policy; write fastest or first-within-noise"));
  }
  return absl::OkStatus();
}

absl::Status SetWorker(const std::string& value, Command& command) {
  command.kind = Command::Kind::kWorker;
  command.worker_device = value;
  return absl::OkStatus();
}

absl::Status SetWorkerSocket(const std::string& value, Command& command) {
  ASSIGN_OR_RETURN(const int64_t fd, Whole(value, 0));
  command.worker_socket = static_cast<int>(fd);
  return absl::OkStatus();
}

absl::Status SetLook(const std::string& value, Command& command) {
  command.kind = Command::Kind::kLook;
  command.card = value;
  return absl::OkStatus();
}

template <Command::Kind kind>
absl::Status SetKind(const std::string&, Command& command) {
  command.kind = kind;
  return absl::OkStatus();
}

constexpr Flag kFlags[] = {
    {"socket", "PATH", "listen on this Unix socket", SetText<&Options::socket>},
    {"cache-dir", "FOLDER", "keep Results and compiled kernels here", SetText<&Options::cache_dir>},
    {"private", nullptr, "serve this user only, end when idle", SetTrue<&Options::is_private>},
    {"background", nullptr, "go to the background once it listens", SetTrue<&Options::background>},
    {"ready-fd", "N", "write one line to this descriptor once it listens",
     SetWhole<&Options::ready_fd, 0>},
    {"idle-exit", "TIME", "a private daemon ends after this long without a call; 0: never [15m]",
     SetSpan<&Options::idle_exit>},
    {"devices", "LIST", "devices to tune on: cuda (all GPUs), cuda:UUID, cpu [cuda,cpu]",
     SetDevices},
    {"tie-break", "POLICY", "fastest, or first-within-noise: the same winner everywhere [fastest]",
     SetTieBreak},
    {"compiler", "PATH", "the compiler [phobos-compile beside this program]",
     SetText<&Options::compiler>},
    {"compile-jobs", "N", "variants compiled at once [the number of CPUs]",
     SetWhole<&Options::compile_jobs, 1>},
    {"compile-limit", "TIME", "a run of the compiler is killed past this [120s]",
     SetSpan<&Options::compile_limit>},
    {"llc-bytes", "SIZE", "last-level cache of the host chip, where the machine does not tell it",
     SetBytes<&Options::llc_bytes>},
    {"worker-idle", "TIME", "a worker process ends after this long without a job [60s]",
     SetSpan<&Options::worker_idle>},
    {"artifact-bytes", "SIZE", "compiled kernels kept for a chip [4G]",
     SetBytes<&Options::artifact_bytes>},
    {"segment-bytes", "SIZE", "shared memory lent to one user [half of the memory]",
     SetBytes<&Options::segment_bytes>},
    {"copy-bytes", "SIZE", "the daemon's copies of arguments, all jobs [half of the memory]",
     SetBytes<&Options::copy_bytes>},
    {"connections-per-uid", "N", "connections of one user [256]",
     SetWhole<&Options::connections_per_uid, 1>},
    {"calls-per-uid", "N", "calls of one user at once [512]", SetWhole<&Options::calls_per_uid, 1>},
    {"jobs-per-uid", "N", "tunes of one user, waiting or running [64]",
     SetWhole<&Options::jobs_per_uid, 1>},
    {"rounds", "N", "for tests: clean rounds of a tune; Results worth keeping have 20 [20]",
     SetWhole<&Options::rounds, 1>},
    {"warm-up", "TIME", "for tests: the least warm-up before the rounds [300ms]",
     SetSpan<&Options::warm_up>},
    {"worker", "DEVICE", nullptr, SetWorker},
    {"worker-socket", "N", nullptr, SetWorkerSocket},
    {"cards", nullptr, nullptr, SetKind<Command::Kind::kCards>},
    {"look-at-card", "UUID", nullptr, SetLook},
    {"help", nullptr, "show this text", SetKind<Command::Kind::kHelp>},
    {"version", nullptr, "show the version", SetKind<Command::Kind::kVersion>},
};

absl::StatusOr<Command> ReadFlags(int argc, const char* const* argv) {
  std::vector<option> table;
  for (const Flag& flag : kFlags) {
    table.push_back(
        {flag.name, flag.argument == nullptr ? no_argument : required_argument, nullptr, 0});
  }
  table.push_back({});
  Command command;
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) arguments.push_back(const_cast<char*>(argv[i]));
  arguments.push_back(nullptr);
  optind = 0;  // starts getopt anew
  opterr = 0;
  int index = 0;
  int code = 0;
  while ((code = getopt_long(argc, arguments.data(), ":", table.data(), &index)) != -1) {
    if (code != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(code == ':' ? "a value is missing after " : "unknown flag ",
                       arguments[optind - 1], "; phobosd --help lists the flags"));
    }
    const Flag& flag = kFlags[index];
    const absl::Status status = flag.set(optarg == nullptr ? "" : optarg, command);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag.name, ": ", status.message()));
    }
  }
  if (optind < argc) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", arguments[optind], "' is not a flag; phobosd takes flags only"));
  }
  return command;
}

std::string RuntimeFolder(const Surroundings& here) {
  const std::string runtime = here.environment("XDG_RUNTIME_DIR");
  return runtime.empty() ? absl::StrCat("/tmp/phobos-", here.uid)
                         : absl::StrCat(runtime, "/phobos");
}

std::string DefaultCache(const Surroundings& here) {
  const std::string home = here.environment("HOME");
  return absl::StrCat(home.empty() ? here.home : home, "/.phobos/kernel-cache");
}

std::string DefaultCompiler(const Surroundings& here) {
  const std::string folder_of_program = here.program.substr(0, here.program.rfind('/') + 1);
  const std::string beside = absl::StrCat(folder_of_program, "phobos-compile");
  if (here.is_executable(beside)) return beside;
  const std::string built = absl::StrCat(folder_of_program, "../../compiler/main/phobos-compile");
  if (here.is_executable(built)) return built;
  for (const std::string& folder :
       std::vector<std::string>(absl::StrSplit(here.environment("PATH"), ':', absl::SkipEmpty()))) {
    const std::string path = absl::StrCat(folder, "/phobos-compile");
    if (here.is_executable(path)) return path;
  }
  return beside;
}

void FillDefaults(const Surroundings& here, Options& options) {
  const bool is_system = here.uid == 0 && !options.is_private;
  if (options.socket.empty()) options.socket = here.environment("PHOBOS_SOCKET");
  if (options.socket.empty()) {
    options.socket =
        is_system ? "/run/phobos/tuner.sock" : absl::StrCat(RuntimeFolder(here), "/tuner.sock");
  }
  if (options.cache_dir.empty()) options.cache_dir = here.environment("PHOBOS_KERNEL_CACHE_DIR");
  if (options.cache_dir.empty()) {
    options.cache_dir = is_system ? "/var/cache/phobos" : DefaultCache(here);
  }
  if (options.compiler.empty()) options.compiler = DefaultCompiler(here);
  // A daemon in the background has / as its folder, and names its socket to others.
  for (std::string* path : {&options.socket, &options.cache_dir, &options.compiler}) {
    *path = (std::filesystem::path(here.folder) / *path).lexically_normal().string();
  }
  options.program = here.program;
  if (options.segment_bytes == 0) options.segment_bytes = here.memory_bytes / 2;
  if (options.copy_bytes == 0) options.copy_bytes = here.memory_bytes / 2;
}

}  // namespace

Surroundings HereAndNow(int64_t memory_bytes) {
  Surroundings here;
  here.environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  here.uid = getuid();
  if (const passwd* user = getpwuid(getuid()); user != nullptr) here.home = user->pw_dir;
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program));
  if (length > 0) here.program.assign(program, length);
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) here.cpus = std::max(1, CPU_COUNT(&cpus));
  here.memory_bytes = memory_bytes;
  std::error_code error;
  here.folder = std::filesystem::current_path(error).string();
  here.is_executable = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; };
  return here;
}

absl::StatusOr<Command> Parse(int argc, const char* const* argv, const Surroundings& surroundings) {
  ASSIGN_OR_RETURN(Command command, ReadFlags(argc, argv));
  if (command.kind == Command::Kind::kWorker && command.worker_socket < 0) {
    return absl::InvalidArgumentError("--worker needs --worker-socket; the daemon starts workers");
  }
  Options& options = command.options;
  if (options.compile_jobs == 0) options.compile_jobs = surroundings.cpus;
  FillDefaults(surroundings, options);
  const bool knows_memory = options.segment_bytes > 0 && options.copy_bytes > 0;
  if (command.kind == Command::Kind::kServe && !knows_memory) {
    return absl::InvalidArgumentError(
        "how much memory this process may use is not known; give --segment-bytes and "
        "--copy-bytes");
  }
  for (const std::string& path : {options.socket, options.cache_dir}) {
    if (path.front() == '/') continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path, "' has no meaning without a working folder; give it from the root"));
  }
  return command;
}

std::string Help() {
  std::string text =
      "phobosd tunes kernels for this machine and keeps the Results.\n\n"
      "  phobosd [flags]\n\n";
  for (const Flag& flag : kFlags) {
    if (flag.help == nullptr) continue;
    std::string left = absl::StrCat("  --", flag.name);
    if (flag.argument != nullptr) absl::StrAppend(&left, "=", flag.argument);
    left.resize(std::max<size_t>(left.size() + 1, 30), ' ');
    absl::StrAppend(&text, left, flag.help, "\n");
  }
  absl::StrAppend(
      &text,
      "\nEnvironment: PHOBOS_SOCKET and PHOBOS_KERNEL_CACHE_DIR stand in for --socket and "
      "--cache-dir.\nStop it with SIGTERM; phobosctl status shows what it does.\n");
  return text;
}

}  // namespace phobos::options
