// SPDX-License-Identifier: Apache-2.0
//
// Options: everything about a daemon that can be chosen, read once from the command line and the
// environment, constant afterwards and handed down by value or const reference. Not the wire's
// options of a tune (TuneOptions). Any thread.
#ifndef PHOBOS_DAEMON_OPTIONS_OPTIONS_H_
#define PHOBOS_DAEMON_OPTIONS_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::options {

struct Options {
  // Behaviour.

  // Path of the Unix socket. Default: $PHOBOS_SOCKET, else /run/phobos/tuner.sock for root's own
  // (not private) daemon, else $XDG_RUNTIME_DIR/phobos/tuner.sock, else /tmp/phobos-UID/tuner.sock.
  std::string socket;
  // Root of the kernel cache. Default: $PHOBOS_KERNEL_CACHE_DIR, else /var/cache/phobos for root's
  // own daemon, else
  // ~/.phobos/kernel-cache. On a network file system /var/tmp/phobos-UID is used instead, and the
  // status says so.
  std::string cache_dir;
  // Serves its own uid only, keeps its socket in a folder of mode 0700, and ends when idle.
  // Default: false. Clients start daemons with it.
  bool is_private = false;
  // Goes to the background (two forks) and returns to the caller once it listens. Default: false.
  bool background = false;
  // Descriptor to which one line is written once it listens, or why it cannot (process/ready.h).
  // Default: -1, none.
  int ready_fd = -1;
  // A private daemon ends after this long without a call. Default: 15 min. 0: never.
  absl::Duration idle_exit = absl::Minutes(15);
  // Devices, in the order in which clients are shown them: "cuda" (every GPU), "cuda:UUID", "cpu",
  // or "fake:FILE" for tests. The host chip is last where it is there at all. Default: cuda,cpu.
  std::vector<std::string> devices = {"cuda", "cpu"};
  // How the winner is chosen where a request leaves it open. Default: the fastest.
  tuner::v1::TieBreak tie_break = tuner::v1::TIE_BREAK_FASTEST;
  // The compiler. Default: phobos-compile beside this program, else where a build of the tree has
  // it, else on $PATH.
  std::string compiler;

  // Performance and limits.

  // Variants compiled at once. Default: the number of CPUs this process may use.
  int compile_jobs = 0;
  // One run of the compiler is killed past this. Default: 120 s.
  absl::Duration compile_limit = absl::Seconds(120);
  // Size of the host chip's last-level cache, which is flushed before a timed launch, where the
  // machine does not tell it. Default: 0, 32 MiB then.
  int64_t llc_bytes = 0;
  // A worker process ends after this long without a job. Default: 60 s.
  absl::Duration worker_idle = absl::Seconds(60);
  // Artifacts kept, all of a chip's, least recently used go first. Default: 4 GiB.
  int64_t artifact_bytes = int64_t{4} << 30;
  // Shared memory handed out to one uid, and the daemon's own copies of arguments. Default: half of
  // the machine's memory each. More is refused with the numbers.
  int64_t segment_bytes = 0;
  int64_t copy_bytes = 0;
  // Caps for one uid: connections, calls at once, jobs waiting or running. Defaults: 256, 512, 64.
  int connections_per_uid = 256;
  int calls_per_uid = 512;
  int jobs_per_uid = 64;

  // This program's own path, to start workers with. Not a flag.
  std::string program;

  // For tests of the daemon: Results made with fewer rounds or a shorter warm-up are not what the
  // documents promise.

  // Clean rounds. Default: 20.
  int rounds = 20;
  // Least warm-up. Default: 300 ms.
  absl::Duration warm_up = absl::Milliseconds(300);
};

// What the command line asks for.
struct Command {
  enum class Kind { kServe, kWorker, kCards, kLook, kHelp, kVersion };
  Kind kind = Kind::kServe;
  Options options;            // kServe
  std::string worker_device;  // kWorker: as device::Open takes it
  int worker_socket = -1;     // kWorker
  std::string card;           // kLook: a GPU's uuid
};

// The machine, as far as defaults depend on it; a test gives its own.
struct Surroundings {
  std::function<std::string(const char* name)> environment;  // empty: not set
  int64_t uid = 0;
  std::string home;     // of the user, where $HOME is not set
  std::string program;  // absolute path of this program
  std::string folder;   // the working folder; empty: not to be had
  int cpus = 1;
  int64_t memory_bytes = 0;  // what this process may use; 0: unknown
  std::function<bool(const std::string& path)> is_executable;
};

// Of the process that calls it. memory_bytes: what this process may use; 0: unknown.
Surroundings HereAndNow(int64_t memory_bytes);

// Reads the flags, then fills what was left open. InvalidArgument: an unknown flag or a bad value,
// with the flag's name and what it takes; to serve where the memory is unknown, --segment-bytes and
// --copy-bytes must be given. REQUIRES: argv[0 .. argc).
absl::StatusOr<Command> Parse(int argc, const char* const* argv, const Surroundings& surroundings);

// The text of --help.
std::string Help();

}  // namespace phobos::options

#endif  // PHOBOS_DAEMON_OPTIONS_OPTIONS_H_
