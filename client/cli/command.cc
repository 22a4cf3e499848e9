// SPDX-License-Identifier: Apache-2.0
#include "client/cli/command.h"

#include <getopt.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace phobos::cli {
namespace {

using Setter = absl::Status (*)(const std::string& value, Command& command);

struct Flag {
  const char* name;
  const char* argument;  // null: the flag takes none
  const char* help;
  Setter set;
};

absl::Status SetFormat(const std::string& value, Command& command) {
  if (value != "text" && value != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("'", value, "' is no format; write text or json"));
  }
  command.format = value == "json" ? Format::kJson : Format::kText;
  return absl::OkStatus();
}

absl::Status SetSocket(const std::string& value, Command& command) {
  command.socket = value;
  return absl::OkStatus();
}

absl::Status SetKernel(const std::string& value, Command& command) {
  command.filter.set_kernel(value);
  return absl::OkStatus();
}

absl::Status SetChip(const std::string& value, Command& command) {
  command.filter.set_chip(value);
  return absl::OkStatus();
}

absl::Status SetCard(const std::string& value, Command& command) {
  command.filter.set_card_name(value);
  return absl::OkStatus();
}

absl::Status SetSource(const std::string& value, Command& command) {
  command.filter.set_source_digest(value);
  return absl::OkStatus();
}

absl::Status AddKey(const std::string& value, Command& command) {
  const size_t equals = value.find('=');
  int64_t number = 0;
  if (equals == std::string::npos || equals == 0 ||
      !absl::SimpleAtoi(value.substr(equals + 1), &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", value, "' is no extent of a key; write for example N=1024"));
  }
  tuner::v1::Extent& extent = *command.filter.add_key();
  extent.set_name(value.substr(0, equals));
  extent.set_value(number);
  return absl::OkStatus();
}

absl::Status SetStale(const std::string&, Command& command) {
  command.filter.set_stale(true);
  return absl::OkStatus();
}

absl::Status SetPositive(const std::string& value, int64_t& number) {
  if (absl::SimpleAtoi(value, &number) && number >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", value, "' is not a whole number of at least 1"));
}

absl::Status SetLimit(const std::string& value, Command& command) {
  return SetPositive(value, command.limit);
}

absl::Status SetGeneration(const std::string& value, Command& command) {
  return SetPositive(value, command.generation);
}

constexpr Flag kFlags[] = {
    {"format", "text|json", "how to write the answer [text]", SetFormat},
    {"socket", "PATH", "the daemon's socket [$PHOBOS_SOCKET, else where clients look]", SetSocket},
    {"kernel", "NAME", "results list: of this kernel only", SetKernel},
    {"key", "NAME=VALUE", "results list: with this value in the key; may be repeated", AddKey},
    {"chip", "NAME", "results list: for this chip only", SetChip},
    {"card", "NAME", "results list: of this card only", SetCard},
    {"source", "DIGEST", "results list: of this source, by 4 digits or more", SetSource},
    {"stale", nullptr, "results list: timed by another compiler than the present one", SetStale},
    {"limit", "N", "results list: the newest N only", SetLimit},
    {"generation", "N", "results show: this one instead of the current", SetGeneration},
    {"help", nullptr, "show this text", nullptr},
    {"version", nullptr, "show the version", nullptr},
};

// Reads the flags; what is left are the words of the command.
absl::StatusOr<std::vector<std::string>> ReadFlags(int argc, const char* const* argv,
                                                   Command& command) {
  std::vector<option> table;
  for (const Flag& flag : kFlags) {
    table.push_back(
        {flag.name, flag.argument == nullptr ? no_argument : required_argument, nullptr, 0});
  }
  table.push_back({});
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) arguments.push_back(const_cast<char*>(argv[i]));
  arguments.push_back(nullptr);
  optind = 0;  // starts getopt anew
  opterr = 0;
  int index = 0;
  int code = 0;
  bool wants_help = false;
  bool wants_version = false;
  while ((code = getopt_long(argc, arguments.data(), ":", table.data(), &index)) != -1) {
    if (code != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(code == ':' ? "a value is missing after " : "unknown flag ",
                       arguments[optind - 1], "; phobosctl --help lists the flags"));
    }
    const Flag& flag = kFlags[index];
    if (flag.set == nullptr) {
      (absl::string_view(flag.name) == "help" ? wants_help : wants_version) = true;
      continue;
    }
    const absl::Status status = flag.set(optarg == nullptr ? "" : optarg, command);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag.name, ": ", status.message()));
    }
  }
  std::vector<std::string> words;
  if (wants_help || wants_version) {
    words.push_back(wants_help ? "help" : "version");
    return words;
  }
  for (int i = optind; i < argc; ++i) words.push_back(arguments[i]);
  return words;
}

absl::Status Unknown(const std::vector<std::string>& words) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::StrJoin(words, " "),
                   "' is no command; there are: status, results list, results show DIGEST "
                   "(phobosctl --help says more)"));
}

absl::Status ReadVerb(const std::vector<std::string>& words, Command& command) {
  if (words.empty()) return absl::OkStatus();  // help
  if (words[0] == "help" && words.size() == 1) return absl::OkStatus();
  if (words[0] == "version" && words.size() == 1) {
    command.verb = Verb::kVersion;
    return absl::OkStatus();
  }
  if (words[0] == "status" && words.size() == 1) {
    command.verb = Verb::kStatus;
    return absl::OkStatus();
  }
  if (words[0] != "results" || words.size() < 2) return Unknown(words);
  if (words[1] == "list" && words.size() == 2) {
    command.verb = Verb::kResultsList;
    return absl::OkStatus();
  }
  if (words[1] != "show") return Unknown(words);
  if (words.size() != 3) {
    return absl::InvalidArgumentError(
        "results show takes one key digest, or its first 4 digits or more; phobosctl results list "
        "shows them");
  }
  command.verb = Verb::kResultsShow;
  command.key_digest = words[2];
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Command> Parse(int argc, const char* const* argv) {
  Command command;
  ASSIGN_OR_RETURN(const std::vector<std::string> words, ReadFlags(argc, argv, command));
  RETURN_IF_ERROR(ReadVerb(words, command));
  return command;
}

std::string Help() {
  std::string text =
      "phobosctl shows what the tuner's daemon does and keeps.\n\n"
      "  phobosctl status                 what the daemon is doing, its devices and caches\n"
      "  phobosctl results list           the stored Results, newest first\n"
      "  phobosctl results show DIGEST    one Result with every variant\n\n"
      "Flags:\n";
  for (const Flag& flag : kFlags) {
    std::string left = absl::StrCat("  --", flag.name);
    if (flag.argument != nullptr) absl::StrAppend(&left, "=", flag.argument);
    left.resize(std::max<size_t>(left.size() + 1, 26), ' ');
    absl::StrAppend(&text, left, flag.help, "\n");
  }
  absl::StrAppend(&text,
                  "\nExamples:\n"
                  "  phobosctl results list --kernel=add --key=N=16777216\n"
                  "  phobosctl results show 3f9a\n"
                  "  phobosctl results list --stale --format=json | jq '.results[].kernel'\n\n"
                  "JSON is that of proto/phobos/tuner/v1 (64-bit numbers are texts there).\n"
                  "Exit status: 0, 1 where the daemon cannot be reached or refuses, 2 for a wrong "
                  "command line.\n");
  return text;
}

}  // namespace phobos::cli
