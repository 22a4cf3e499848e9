// SPDX-License-Identifier: Apache-2.0
//
// phobosd: reads the options and wires the rooms together. No logic lives here.
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "base/version.h"
#include "daemon/device/cpu/machine.h"
#include "daemon/main/serve.h"
#include "daemon/options/options.h"
#include "daemon/worker/supervisor.h"

int main(int argc, char** argv) {
  namespace options = phobos::options;
  // A control group may allow less than the machine has. Without /proc the flags must say it.
  const auto memory = phobos::device::ReadMemory({});
  const int64_t memory_bytes = memory.ok() ? memory->total_bytes : 0;
  const absl::StatusOr<options::Command> command =
      options::Parse(argc, argv, options::HereAndNow(memory_bytes));
  if (!command.ok()) {
    std::fprintf(stderr, "phobosd: %s\n", std::string(command.status().message()).c_str());
    return 2;
  }
  switch (command->kind) {
    case options::Command::Kind::kHelp:
      std::fputs(options::Help().c_str(), stdout);
      return 0;
    case options::Command::Kind::kVersion:
      std::printf("phobosd %s\n", phobos::kVersion);
      return 0;
    case options::Command::Kind::kWorker:
      return phobos::worker::WorkerMain(command->worker_socket, command->worker_device);
    case options::Command::Kind::kCards:
      return phobos::worker::CardsMain();
    case options::Command::Kind::kLook:
      return phobos::worker::LookMain(command->card);
    case options::Command::Kind::kServe:
      break;
  }
  const absl::Status status = phobos::Serve(command->options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "phobosd: %s\n", std::string(status.message()).c_str());
  return 1;
}
