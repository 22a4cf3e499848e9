// SPDX-License-Identifier: Apache-2.0
#include "client/cli/command.h"

#include <getopt.h>

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/cpp/text.h"

namespace phobos::cli {
namespace {

using Setter = absl::Status (*)(const std::string& value, Command& command);

struct Flag {
  const char* name;
  const char* argument;  // null: the flag takes none
  Verb verb;             // whose flag it is; kHelp: every command's
  const char* help;
  Setter set;
};

constexpr size_t kShortestDigest = 4;
constexpr size_t kLongestDigest = 64;

// A digest or its beginning, in lower case.
absl::StatusOr<std::string> ReadDigest(const std::string& value) {
  const bool is_hex = absl::c_all_of(value, absl::ascii_isxdigit);
  if (is_hex && value.size() >= kShortestDigest && value.size() <= kLongestDigest) {
    return absl::AsciiStrToLower(value);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", value, "' is no digest; write its first ",
                                                 kShortestDigest,
                                                 " hexadecimal digits or more, "
                                                 "such as 3f9a0c"));
}

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
  ASSIGN_OR_RETURN(*command.filter.mutable_source_digest(), ReadDigest(value));
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
  const std::string name = value.substr(0, equals);
  for (const tuner::v1::Extent& other : command.filter.key()) {
    if (other.name() == name) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is given twice; give it one value"));
    }
  }
  tuner::v1::Extent& extent = *command.filter.add_key();
  extent.set_name(name);
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
    {"format", "text|json", Verb::kHelp, "how to write the answer [text]", SetFormat},
    {"socket", "PATH", Verb::kHelp, "the daemon's socket [$PHOBOS_SOCKET, else where clients look]",
     SetSocket},
    {"kernel", "NAME", Verb::kResultsList, "of this kernel only", SetKernel},
    {"key", "NAME=VALUE", Verb::kResultsList, "with this value in the key; may be repeated",
     AddKey},
    {"chip", "NAME", Verb::kResultsList, "for this chip only", SetChip},
    {"card", "NAME", Verb::kResultsList, "of this card only", SetCard},
    {"source", "DIGEST", Verb::kResultsList, "of this source, by 4 digits or more", SetSource},
    {"stale", nullptr, Verb::kResultsList, "timed by another compiler than the present one",
     SetStale},
    {"limit", "N", Verb::kResultsList, "the newest N only", SetLimit},
    {"generation", "N", Verb::kResultsShow, "this one instead of the current", SetGeneration},
    {"help", nullptr, Verb::kHelp, "show this text", nullptr},
    {"version", nullptr, Verb::kHelp, "show the version", nullptr},
};

// What getopt_long gives for kFlags[i] is kFirst + i.
constexpr int kFirst = 256;

const char* Words(Verb verb) {
  return verb == Verb::kResultsShow ? "results show" : "results list";
}

absl::Status NotRead(int code, const char* word) {
  const bool takes_none = code == '?' && optopt >= kFirst;
  return absl::InvalidArgumentError(
      takes_none ? absl::StrCat("--", kFlags[optopt - kFirst].name, " takes no value, not ", word)
                 : absl::StrCat(code == ':' ? "a value is missing after " : "unknown flag ", word,
                                "; phobosctl --help lists the flags"));
}

absl::Status SetFlag(const Flag& flag, const std::string& value, Command& command) {
  if (flag.argument != nullptr && value.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag.name,
                                                   ": the value is empty; write --", flag.name, "=",
                                                   flag.argument, ", or leave the flag out"));
  }
  // What the daemon is asked for is text; a path is not.
  if (flag.verb != Verb::kHelp && !IsUtf8(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag.name, ": '", Utf8Of(value), "' is not UTF-8 text"));
  }
  const absl::Status status = flag.set(value, command);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--", flag.name, ": ", status.message()));
}

// The words of a command line that are no flags, and the flags that are one command's.
struct Read {
  std::vector<std::string> words;
  std::vector<const Flag*> flags;
};

absl::StatusOr<Read> ReadFlags(int argc, const char* const* argv, Command& command) {
  std::vector<option> table;
  for (const Flag& flag : kFlags) {
    const int code = kFirst + static_cast<int>(table.size());
    table.push_back(
        {flag.name, flag.argument == nullptr ? no_argument : required_argument, nullptr, code});
  }
  table.push_back({});
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) arguments.push_back(const_cast<char*>(argv[i]));
  arguments.push_back(nullptr);
  optind = 0;  // starts getopt anew
  opterr = 0;
  int code = 0;
  Read read;
  bool wants_help = false;
  bool wants_version = false;
  while ((code = getopt_long(argc, arguments.data(), ":", table.data(), nullptr)) != -1) {
    if (code < kFirst) return NotRead(code, arguments[optind - 1]);
    const Flag& flag = kFlags[code - kFirst];
    if (flag.set == nullptr) {
      (absl::string_view(flag.name) == "help" ? wants_help : wants_version) = true;
      continue;
    }
    RETURN_IF_ERROR(SetFlag(flag, optarg == nullptr ? "" : optarg, command));
    if (flag.verb != Verb::kHelp) read.flags.push_back(&flag);
  }
  if (wants_help || wants_version) {
    return Read{.words = {wants_help ? "help" : "version"}};
  }
  for (int i = optind; i < argc; ++i) read.words.push_back(arguments[i]);
  if (read.words.empty() && argc > 1) {
    return absl::InvalidArgumentError(
        "flags, but no command; there are: status, results list, results show KEY_DIGEST (a flag's "
        "value may be the word meant as one; phobosctl --help says more)");
  }
  return read;
}

absl::Status Unknown(const std::vector<std::string>& words) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::StrJoin(words, " "),
                   "' is no command; there are: status, results list, results show KEY_DIGEST "
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
  ASSIGN_OR_RETURN(command.key_digest, ReadDigest(words[2]));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Command> Parse(int argc, const char* const* argv) {
  Command command;
  ASSIGN_OR_RETURN(const Read read, ReadFlags(argc, argv, command));
  RETURN_IF_ERROR(ReadVerb(read.words, command));
  for (const Flag* flag : read.flags) {
    if (flag->verb == command.verb || command.verb == Verb::kHelp) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", flag->name, " is a flag of phobosctl ",
                                                   Words(flag->verb), " alone; leave it out"));
  }
  return command;
}

std::string Help() {
  std::string text =
      "phobosctl shows what the tuner's daemon does and keeps.\n\n"
      "  phobosctl status                   what the daemon is doing, its devices and caches\n"
      "  phobosctl results list             the stored Results, newest first\n"
      "  phobosctl results show KEY_DIGEST  one Result with every variant\n\n"
      "Flags:\n";
  for (const Flag& flag : kFlags) {
    std::string left = absl::StrCat("  --", flag.name);
    if (flag.argument != nullptr) absl::StrAppend(&left, "=", flag.argument);
    left.resize(std::max<size_t>(left.size() + 1, 26), ' ');
    absl::StrAppend(&text, left, flag.verb == Verb::kHelp ? "" : Words(flag.verb),
                    flag.verb == Verb::kHelp ? "" : ": ", flag.help, "\n");
  }
  absl::StrAppend(
      &text,
      "\nExamples:\n"
      "  phobosctl status\n"
      "  phobosctl status --socket=/run/phobos/tuner.sock --format=json\n"
      "  phobosctl results list --kernel=add --key=N=16777216 --limit=10\n"
      "  phobosctl results list --stale --format=json | jq '.results[].kernel'\n"
      "  phobosctl results show 3f9a\n"
      "  phobosctl results show 3f9a --generation=2 --format=json\n\n"
      "JSON is that of proto/phobos/tuner/v1 (64-bit numbers are texts there). A spread "
      "is a fraction in\nJSON and in Python: 0.25 where tables say 25.0 %.\n"
      "A daemon is ended by kill with the pid that status shows; what it keeps stays.\n"
      "Exit status: 0, 1 where the daemon cannot be reached or refuses, 2 for a wrong "
      "command line.\n");
  return text;
}

}  // namespace phobos::cli
