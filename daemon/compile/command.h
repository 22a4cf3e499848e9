// SPDX-License-Identifier: Apache-2.0
//
// Runs commands as children, each in a process group of its own, within limits of time and memory;
// all of them can be paused. Knows nothing of compilers. Run blocks until its command has ended;
// any thread.
#ifndef PHOBOS_DAEMON_COMPILE_COMMAND_H_
#define PHOBOS_DAEMON_COMPILE_COMMAND_H_

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace phobos::compile {

// What is run, and within which limits.
struct Command {
  std::vector<std::string> argv;    // argv[0] is a path
  std::string input;                // written to its standard input
  bool keep_output = false;         // else its standard output is thrown away
  absl::Duration limit;             // not counting the time in which it was paused
  int64_t address_space_bytes = 0;  // 0: no limit
  // A short one that somebody waits for: pauses leave it alone, and its limit counts them.
  bool runs_in_pauses = false;
};

// How a command ended.
struct Ended {
  bool timed_out = false;  // killed for running past its limit
  int exit_status = -1;    // -1: it did not exit by itself
  int signal = 0;          // that ended it; 0: it exited, or timed out
  std::string how;  // "exit status 1", "signal 11 (Segmentation fault)", "ran longer than 120.0 s"
  std::string output;  // the first 64 MiB of its standard output, when kept
  std::string errors;  // the first 64 KiB of its standard error
  absl::Duration cpu_time;
};

class CommandRunner {
 public:
  // `end_limit`: how long a command that was killed is waited for. One that hangs in a call of the
  // system ends when that call does.
  explicit CommandRunner(absl::Duration end_limit = absl::Seconds(5)) : end_limit_(end_limit) {}

  // Runs the command to its end; what it leaves of its process group is killed. Waits while paused,
  // unless the command runs in pauses too. Errors: it could not be started (as StartChild), or not
  // be watched; Unavailable: Stop was called; Internal: it was killed and has not ended within
  // `end_limit`; a later Run collects it.
  absl::StatusOr<Ended> Run(const Command& command);

  // Whether a command that was killed has not ended to this day; collects those that have.
  bool HasUnended();

  // Suspends all commands and lets none start, until as many Resumes have come.
  void Pause();
  // REQUIRES: a Pause before it.
  void Resume();
  // Kills all commands and lets none start any more. For the end of the process.
  void Stop();

 private:
  class Child;
  // Starts the child with standard input, output and error as given (-1: /dev/null, for the error
  // ours), and writes it down as running; waits for the end of a pause.
  absl::StatusOr<pid_t> Start(const Command& command, const std::vector<int>& standard);
  void CollectUnended() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A clock that stands still in a pause. Setting the time of day does not move it.
  absl::Duration ActiveTime();
  void SignalAll(int signal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool CanStart(const Command& command) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || command.runs_in_pauses || pauses_ == 0;
  }

  const absl::Duration end_limit_;

  absl::Mutex mutex_;
  // Children that are not waited for yet, so that their numbers are theirs: those that pauses
  // suspend, and the others.
  std::set<pid_t> running_ ABSL_GUARDED_BY(mutex_);
  std::set<pid_t> exempt_ ABSL_GUARDED_BY(mutex_);
  std::vector<pid_t> unended_ ABSL_GUARDED_BY(mutex_);  // killed, and to be collected
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int pauses_ ABSL_GUARDED_BY(mutex_) = 0;               // without their Resume
  absl::Duration paused_since_ ABSL_GUARDED_BY(mutex_);  // on the monotonic clock
  absl::Duration paused_time_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phobos::compile

#endif  // PHOBOS_DAEMON_COMPILE_COMMAND_H_
