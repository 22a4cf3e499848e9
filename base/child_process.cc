// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/fd.h"

namespace phobos {
namespace {

constexpr useconds_t kLookAgainUs = 500;
constexpr int kUnknownEnd = 255 << 8;  // a wait status: exit status 255

absl::Duration Monotonic() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

// Everything the child needs between fork and exec, prepared before, because only async-signal-safe
// calls are allowed there.
struct Plan {
  std::vector<char*> argv;
  std::vector<ChildDescriptor> descriptors;
  int first_free = 3;  // lowest number above every descriptor of the child
  int64_t address_space_bytes = 0;
  pid_t parent = 0;
  int error_pipe = -1;
};

void ResetSignals() {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    // A file over the limit of its size is an error to tell of, not a crash, in every program of
    // ours.
    standard.sa_handler = signal == SIGXFSZ ? SIG_IGN : SIG_DFL;
    sigaction(signal, &standard, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Moves the descriptors to their numbers. They are first copied above all targets, so that no
// target overwrites a source.
bool PlaceDescriptors(Plan& plan) {
  // The old number is what tells of a failure of this very line.
  const int error_pipe = fcntl(plan.error_pipe, F_DUPFD_CLOEXEC, plan.first_free);
  if (error_pipe < 0) return false;
  plan.error_pipe = error_pipe;
  for (ChildDescriptor& descriptor : plan.descriptors) {
    descriptor.ours = fcntl(descriptor.ours, F_DUPFD_CLOEXEC, plan.first_free);
    if (descriptor.ours < 0) return false;
  }
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0) return false;
  for (const ChildDescriptor& descriptor : plan.descriptors) {
    if (dup2(descriptor.ours, descriptor.theirs) < 0) return false;
  }
  // The numbers below first_free that nobody asked for, then all above: close-on-exec keeps the
  // error pipe until then.
  for (int fd = 3; fd < plan.first_free; ++fd) {
    const bool wanted = std::any_of(plan.descriptors.begin(), plan.descriptors.end(),
                                    [fd](const ChildDescriptor& d) { return d.theirs == fd; });
    if (!wanted) close(fd);
  }
  constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  return syscall(SYS_close_range, plan.first_free, ~0U, kCloseOnExec) == 0;
}

bool Confine(const Plan& plan) {
  if (setpgid(0, 0) != 0) return false;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  if (getppid() != plan.parent) return false;  // it died before the line above
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (plan.address_space_bytes > 0) {
    // A user's own limit (ulimit -v) stays where it is lower: only root may raise it.
    rlimit limit = {};
    if (getrlimit(RLIMIT_AS, &limit) != 0) return false;
    limit.rlim_max = std::min(limit.rlim_max, static_cast<rlim_t>(plan.address_space_bytes));
    limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
    if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
  }
  return true;
}

[[noreturn]] void RunChild(Plan& plan) {
  ResetSignals();
  if (PlaceDescriptors(plan) && Confine(plan)) execv(plan.argv[0], plan.argv.data());
  const int error = errno;
  (void)!write(plan.error_pipe, &error, sizeof(error));
  _exit(127);
}

absl::Status ChildError(int error, const std::string& program) {
  const std::string text = absl::StrCat("cannot start ", program, ": ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace

absl::StatusOr<pid_t> StartChild(const ChildOptions& options) {
  Plan plan;
  for (const std::string& argument : options.argv) {
    plan.argv.push_back(const_cast<char*>(argument.c_str()));
  }
  if (plan.argv.empty()) return absl::InvalidArgumentError("a child needs a program to run");
  plan.argv.push_back(nullptr);
  plan.descriptors = options.descriptors;
  for (const ChildDescriptor& descriptor : plan.descriptors) {
    plan.first_free = std::max(plan.first_free, descriptor.theirs + 1);
  }
  plan.address_space_bytes = options.address_space_bytes;
  plan.parent = getpid();
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) return ChildError(errno, options.argv[0]);
  plan.error_pipe = error_pipe[1];

  const pid_t pid = fork();
  if (pid == 0) RunChild(plan);
  const int fork_error = errno;
  close(error_pipe[1]);
  if (pid < 0) {
    close(error_pipe[0]);
    return ChildError(fork_error, options.argv[0]);
  }
  setpgid(pid, pid);  // the child does it too: whichever comes first
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(error_pipe[0], &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  close(error_pipe[0]);
  if (got == 0) return pid;  // the pipe closed by exec
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return ChildError(got == sizeof(error) ? error : EIO, options.argv[0]);
}

bool AwaitChild(pid_t pid, absl::Duration limit) {
  const absl::Duration end = Monotonic() + limit;
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  for (bool is_over = false;;) {
    siginfo_t ended = {};
    const int result = waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (result == 0 && ended.si_pid != 0) return true;
    if (result < 0 && errno != EINTR) return true;  // no child of ours any more
    const int64_t left_ms = absl::ToInt64Milliseconds(end - Monotonic());
    if (left_ms <= 0) return false;
    // Over, and yet not to be collected: its debugger comes first.
    if (is_over) usleep(kLookAgainUs);
    pollfd entry = {process.get(), POLLIN, 0};
    const int wait_ms = static_cast<int>(std::min<int64_t>(left_ms, process.ok() ? 60'000 : 1));
    is_over = poll(&entry, 1, wait_ms) > 0;
  }
}

std::optional<ChildEnd> CollectChild(pid_t pid) {
  int status = 0;
  rusage usage = {};
  pid_t got = 0;
  do {
    got = wait4(pid, &status, WNOHANG, &usage);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return std::nullopt;
  if (got < 0) status = kUnknownEnd;
  return ChildEnd{status, absl::DurationFromTimeval(usage.ru_utime) +
                              absl::DurationFromTimeval(usage.ru_stime)};
}

std::string DescribeExit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return absl::StrCat("signal ", signal, " (", strsignal(signal), ")");
  }
  return absl::StrCat("exit status ", WEXITSTATUS(wait_status));
}

}  // namespace phobos
