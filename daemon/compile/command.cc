// SPDX-License-Identifier: Apache-2.0
#include "daemon/compile/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/child_process.h"
#include "base/fd.h"
#include "base/status_macros.h"
#include "daemon/error/error.h"

namespace phobos::compile {
namespace {

constexpr size_t kMostOutput = size_t{64} << 20;
constexpr size_t kMostErrors = size_t{64} << 10;

absl::Duration Monotonic() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

// Two connected descriptors, ours without blocking.
struct Pipe {
  Fd ours;
  Fd theirs;
};

// A socketpair, not a pipe: a write to a child that is gone must be an error, not a signal.
absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return error::FromErrno(errno, "socketpair");
  }
  Pipe pipe = {Fd(ends[0]), Fd(ends[1])};
  if (fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK) != 0) return error::FromErrno(errno, "fcntl");
  return pipe;
}

// Reads what there is; keeps the first `most` bytes. Closes at the end of the stream.
void Drain(Fd& from, std::string& into, size_t most) {
  char bytes[16384];
  while (from.ok()) {
    const ssize_t got = read(from.get(), bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      from.Reset();
      return;
    }
    into.append(bytes, std::min(static_cast<size_t>(got), most - into.size()));
  }
}

// Writes as much as is taken; closes when all is written or nobody reads.
void Feed(Fd& to, const std::string& from, size_t& written) {
  while (to.ok()) {
    if (written == from.size()) {
      to.Reset();
      return;
    }
    const ssize_t put = send(to.get(), from.data() + written, from.size() - written, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0) {
      to.Reset();
      return;
    }
    written += static_cast<size_t>(put);
  }
}

}  // namespace

// One command under way.
class CommandRunner::Child {
 public:
  Child(CommandRunner& runner, const Command& command) : runner_(runner), command_(command) {}

  absl::StatusOr<Ended> Run() {
    ASSIGN_OR_RETURN(Pipe input, MakePipe());
    ASSIGN_OR_RETURN(Pipe errors, MakePipe());
    Pipe output;
    std::vector<int> standard = {input.theirs.get(), -1, errors.theirs.get()};
    if (command_.keep_output) {
      ASSIGN_OR_RETURN(output, MakePipe());
      standard[1] = output.theirs.get();
    }
    ASSIGN_OR_RETURN(pid_, runner_.Start(command_, standard));
    input_ = std::move(input.ours);
    output_ = std::move(output.ours);
    errors_ = std::move(errors.ours);
    // Only the child's copies are left, so that its end is the end of the streams.
    input.theirs.Reset(), output.theirs.Reset(), errors.theirs.Reset();
    const absl::Status watched = Watch();
    const absl::Status reaped = Reap();
    Drain(output_, ended_.output, kMostOutput);
    Drain(errors_, ended_.errors, kMostErrors);
    RETURN_IF_ERROR(watched);
    if (was_stopped_) return error::Stopping();
    RETURN_IF_ERROR(reaped);
    return std::move(ended_);
  }

 private:
  // Until the child has ended or its time is up.
  absl::Status Watch() {
    const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (!process.ok()) return error::FromErrno(errno, "pidfd_open");
    const absl::Duration end = Clock() + command_.limit;
    size_t written = 0;
    while (true) {
      Feed(input_, command_.input, written);
      Drain(output_, ended_.output, kMostOutput);
      Drain(errors_, ended_.errors, kMostErrors);
      const absl::Duration left = end - Clock();
      if (left <= absl::ZeroDuration()) {
        ended_.timed_out = true;
        return absl::OkStatus();
      }
      // A descriptor of -1 is left out.
      pollfd entries[] = {{process.get(), POLLIN, 0},
                          {input_.get(), POLLOUT, 0},
                          {output_.get(), POLLIN, 0},
                          {errors_.get(), POLLIN, 0}};
      const int64_t wait =
          std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1, std::numeric_limits<int>::max());
      if (poll(entries, std::size(entries), static_cast<int>(wait)) < 0 && errno != EINTR) {
        return error::FromErrno(errno, "poll");
      }
      if (entries[0].revents != 0) return absl::OkStatus();
    }
  }

  absl::Duration Clock() const {
    return command_.runs_in_pauses ? Monotonic() : runner_.ActiveTime();
  }

  // Kills what is left of the group and collects the child. The group is killed before the child is
  // waited for: until then its number cannot be given to another.
  absl::Status Reap() {
    {
      const absl::MutexLock lock(&runner_.mutex_);
      runner_.running_.erase(pid_);
      runner_.exempt_.erase(pid_);
      was_stopped_ = runner_.is_stopped_;
      kill(-pid_, SIGKILL);
    }
    AwaitChild(pid_, runner_.end_limit_);
    const std::optional<ChildEnd> end = CollectChild(pid_);
    const std::string overrun =
        absl::StrFormat("ran longer than %.1f s", absl::ToDoubleSeconds(command_.limit));
    if (!end.has_value()) return Unended(ended_.timed_out ? overrun : "was killed");
    ended_.cpu_time = end->cpu_time;
    if (ended_.timed_out) {
      ended_.how = overrun;
      return absl::OkStatus();
    }
    ended_.how = DescribeExit(end->wait_status);
    if (WIFEXITED(end->wait_status)) ended_.exit_status = WEXITSTATUS(end->wait_status);
    if (WIFSIGNALED(end->wait_status)) ended_.signal = WTERMSIG(end->wait_status);
    return absl::OkStatus();
  }

  absl::Status Unended(const std::string& why) {
    const absl::MutexLock lock(&runner_.mutex_);
    runner_.unended_.push_back(pid_);
    return absl::InternalError(absl::StrCat(command_.argv[0], " ", why, ", and process ", pid_,
                                            " has not ended since it was killed: it hangs in a "
                                            "call of the system (a disk's, a driver's)"));
  }

  CommandRunner& runner_;
  const Command& command_;
  pid_t pid_ = 0;
  Fd input_, output_, errors_;
  Ended ended_;
  bool was_stopped_ = false;
};

absl::StatusOr<Ended> CommandRunner::Run(const Command& command) {
  return Child(*this, command).Run();
}

bool CommandRunner::HasUnended() {
  const absl::MutexLock lock(&mutex_);
  CollectUnended();
  return !unended_.empty();
}

void CommandRunner::CollectUnended() {
  std::erase_if(unended_, [](pid_t pid) { return CollectChild(pid).has_value(); });
}

absl::StatusOr<pid_t> CommandRunner::Start(const Command& command,
                                           const std::vector<int>& standard) {
  ChildOptions options;
  options.argv = command.argv;
  options.address_space_bytes = command.address_space_bytes;
  for (size_t i = 0; i < standard.size(); ++i) {
    if (standard[i] >= 0) options.descriptors.push_back({standard[i], static_cast<int>(i)});
  }
  // Under the lock, so that no pause can miss a child that is just being born.
  const absl::MutexLock lock(&mutex_);
  CollectUnended();
  const auto can_start = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return CanStart(command); };
  mutex_.Await(absl::Condition(&can_start));
  if (is_stopped_) return error::Stopping();
  ASSIGN_OR_RETURN(const pid_t pid, StartChild(options));
  (command.runs_in_pauses ? exempt_ : running_).insert(pid);
  return pid;
}

absl::Duration CommandRunner::ActiveTime() {
  const absl::MutexLock lock(&mutex_);
  return (pauses_ > 0 ? paused_since_ : Monotonic()) - paused_time_;
}

void CommandRunner::SignalAll(int signal) {
  for (const pid_t pid : running_) kill(-pid, signal);
}

void CommandRunner::Stop() {
  const absl::MutexLock lock(&mutex_);
  is_stopped_ = true;
  SignalAll(SIGKILL);
  for (const pid_t pid : exempt_) kill(-pid, SIGKILL);
}

void CommandRunner::Pause() {
  const absl::MutexLock lock(&mutex_);
  if (++pauses_ > 1) return;
  paused_since_ = Monotonic();
  SignalAll(SIGSTOP);
}

void CommandRunner::Resume() {
  const absl::MutexLock lock(&mutex_);
  if (--pauses_ > 0) return;
  paused_time_ += Monotonic() - paused_since_;
  SignalAll(SIGCONT);
}

}  // namespace phobos::compile
