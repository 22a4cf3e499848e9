// SPDX-License-Identifier: Apache-2.0
//
// phobosctl: reads the command line, asks the daemon, writes the answer. Values and layout are
// other files'.
#include <google/protobuf/util/json_util.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "client/cli/command.h"
#include "client/cli/daemon.h"
#include "client/cli/report.h"
#include "client/cpp/text.h"
#include "proto/phobos/tuner/v1/cache.pb.h"

namespace phobos::cli {
namespace {

absl::StatusOr<std::string> Json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (status.ok()) return text;
  return absl::InternalError("MessageToJsonString: " + std::string(status.message()));
}

absl::StatusOr<std::string> Status(Daemon& daemon, Format format) {
  ASSIGN_OR_RETURN(const tuner::v1::GetStatusResponse status, daemon.GetStatus());
  if (format == Format::kJson) return Json(status);
  return StatusText(status, absl::ToUnixMillis(absl::Now()));
}

absl::StatusOr<std::string> ResultsList(Daemon& daemon, const Command& command) {
  ASSIGN_OR_RETURN(const std::vector<tuner::v1::ResultSummary> results,
                   daemon.ListResults(command.filter, command.limit));
  if (command.format == Format::kText && !results.empty()) return ResultsText(results);
  if (command.format == Format::kText) {
    ASSIGN_OR_RETURN(const std::vector<tuner::v1::ResultSummary> all, daemon.ListResults({}, 0));
    return NoneFitsText(command.filter, all);
  }
  tuner::v1::ListResultsResponse all;
  for (const tuner::v1::ResultSummary& result : results) *all.add_results() = result;
  return Json(all);
}

absl::StatusOr<std::string> ResultsShow(Daemon& daemon, const Command& command) {
  ASSIGN_OR_RETURN(const tuner::v1::Result result,
                   daemon.GetResult(command.key_digest, command.generation));
  return command.format == Format::kJson ? Json(result) : ResultText(result);
}

absl::StatusOr<std::string> Answer(const Command& command) {
  if (command.verb == Verb::kHelp) return Help();
  if (command.verb == Verb::kVersion) return std::string("phobosctl ") + kVersion + "\n";
  ASSIGN_OR_RETURN(Daemon daemon, Daemon::Connect(command.socket));
  switch (command.verb) {
    case Verb::kResultsList:
      return ResultsList(daemon, command);
    case Verb::kResultsShow:
      return ResultsShow(daemon, command);
    default:
      return Status(daemon, command.format);
  }
}

void Say(const absl::Status& status) {
  std::fprintf(stderr, "phobosctl: %s\n", Utf8Of(std::string(status.message())).c_str());
}

int Run(int argc, const char* const* argv) {
  const absl::StatusOr<Command> command = Parse(argc, argv);
  if (!command.ok()) {
    Say(command.status());
    return 2;
  }
  const absl::StatusOr<std::string> answer = Answer(*command);
  if (!answer.ok()) {
    Say(answer.status());
    return 1;
  }
  std::fwrite(answer->data(), 1, answer->size(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace phobos::cli

int main(int argc, char** argv) { return phobos::cli::Run(argc, argv); }
