// SPDX-License-Identifier: Apache-2.0
//
// The command line of phobos-compile. Pure but for --help's text, which is a constant. One thread.
#ifndef PHOBOS_COMPILER_MAIN_OPTIONS_H_
#define PHOBOS_COMPILER_MAIN_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace phobos::compiler {

struct Options {
  enum class Action { kCompile, kDescribe, kPrintIr, kVersion, kHelp };
  enum class Selection { kFirst, kAll, kRange, kSet };
  enum class Format { kText, kJson };

  Action action = Action::kCompile;
  std::string ir_stage;   // kPrintIr: after which stage, one of passes/pipeline.h
  std::string file;       // "-": standard input
  std::string file_name;  // in messages; empty: as `file`
  std::string kernel;     // empty: the only one of the file
  std::string chip = "native";
  Selection selection = Selection::kFirst;
  std::vector<std::pair<std::string, std::string>> settings;  // kSet: NAME, VALUE as written
  int64_t first = 0;                                          // kRange, both included
  int64_t last = 0;
  bool check_races = false;
  std::string out;  // empty: nothing is written
  int jobs = 0;     // 0: one for each CPU
  Format format = Format::kText;
};

// Reads argv. Errors: InvalidArgument, one line that says what is wrong and how it is written.
absl::StatusOr<Options> ParseOptions(int argc, char** argv);

// What --help prints.
std::string_view HelpText();

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_MAIN_OPTIONS_H_
