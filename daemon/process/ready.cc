// SPDX-License-Identifier: Apache-2.0
#include "daemon/process/ready.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace phobos::process {
namespace {

constexpr off_t kLargestLog = 1 << 20;

void WriteLine(Fd& fd, std::string line) {
  if (!fd.ok()) return;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = write(fd.get(), line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // the starter is gone; there is nobody to tell
    done += n;
  }
  fd.Reset();
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[512];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof(buffer))) > 0 || (n < 0 && errno == EINTR)) {
    if (n > 0) text.append(buffer, n);
  }
  return text;
}

// The caller's part of GoToBackground.
[[noreturn]] void WaitAndExit(Fd pipe, pid_t child) {
  const std::string line = ReadAll(pipe.get());
  waitpid(child, nullptr, 0);
  const bool is_ready = line.starts_with("ready ");
  std::fputs(line.empty() ? "error the daemon ended before it listened\n" : line.c_str(),
             is_ready ? stdout : stderr);
  std::fflush(nullptr);
  _exit(is_ready ? 0 : 1);
}

}  // namespace

void SayReady(Fd& fd, const std::string& socket) { WriteLine(fd, absl::StrCat("ready ", socket)); }

void SayError(Fd& fd, const absl::Status& status) {
  WriteLine(fd, absl::StrCat("error ", status.message()));
}

absl::StatusOr<Fd> GoToBackground() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  Fd reading(ends[0]);
  Fd writing(ends[1]);
  const pid_t child = fork();
  if (child < 0) return absl::ErrnoToStatus(errno, "fork");
  if (child > 0) {
    writing.Reset();
    WaitAndExit(std::move(reading), child);
  }
  setsid();
  const pid_t grandchild = fork();
  if (grandchild < 0) return absl::ErrnoToStatus(errno, "fork");
  if (grandchild > 0) _exit(0);
  return writing;
}

absl::StatusOr<Fd> Detach(const std::string& log_file) {
  setsid();  // fails for a session leader, which has none to leave
  if (chdir("/") != 0) return absl::ErrnoToStatus(errno, "chdir /");
  struct stat found = {};
  const bool is_large = stat(log_file.c_str(), &found) == 0 && found.st_size > kLargestLog;
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const Fd log(open(log_file.c_str(),
                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (is_large ? O_TRUNC : 0), 0600));
  if (!null.ok() || !log.ok()) return absl::ErrnoToStatus(errno, absl::StrCat("open ", log_file));
  Fd former(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  if (dup2(null.get(), STDIN_FILENO) < 0 || dup2(null.get(), STDOUT_FILENO) < 0 ||
      dup2(log.get(), STDERR_FILENO) < 0) {
    return absl::ErrnoToStatus(errno, "dup2");
  }
  return former;
}

}  // namespace phobos::process
