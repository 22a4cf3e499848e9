// SPDX-License-Identifier: Apache-2.0
//
// What a command line of phobosctl asks for, and the text that says what it may ask. Pure, any
// thread.
#ifndef PHOBOS_CLIENT_CLI_COMMAND_H_
#define PHOBOS_CLIENT_CLI_COMMAND_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/phobos/tuner/v1/cache.pb.h"

namespace phobos::cli {

enum class Verb { kHelp, kVersion, kStatus, kResultsList, kResultsShow };
enum class Format { kText, kJson };

struct Command {
  Verb verb = Verb::kHelp;
  Format format = Format::kText;
  std::string socket;              // empty: where clients look
  tuner::v1::ResultFilter filter;  // results list
  int64_t limit = 0;               // results list; 0: all
  std::string key_digest;          // results show
  int64_t generation = 0;          // results show; 0: the current one
};

// InvalidArgument says what is wrong and names the flag or command that was meant, where one is
// near.
absl::StatusOr<Command> Parse(int argc, const char* const* argv);

// The text of --help, with examples.
std::string Help();

}  // namespace phobos::cli

#endif  // PHOBOS_CLIENT_CLI_COMMAND_H_
