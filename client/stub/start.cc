// SPDX-License-Identifier: Apache-2.0
#include "client/stub/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/fd.h"

namespace phobos::stub {
namespace {

constexpr std::string_view kCacheFolder = "PHOBOS_KERNEL_CACHE_DIR=";
constexpr size_t kLongestAnswer = 64 << 10;

// The environment, with a cache folder that does not depend on the working folder: the daemon's is
// /.
std::vector<std::string> DaemonEnvironment() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string variable = *entry;
    if (variable.starts_with(kCacheFolder) && variable.size() > kCacheFolder.size() &&
        variable[kCacheFolder.size()] != '/') {
      if (char* folder = getcwd(nullptr, 0); folder != nullptr) {
        variable.insert(kCacheFolder.size(), std::string(folder) + "/");
        free(folder);
      }
    }
    variables.push_back(std::move(variable));
  }
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Gives posix_spawn's error, or 0 and the child.
int Spawn(std::vector<std::string> arguments, int output, pid_t& child) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own, so that Ctrl-C of the caller's terminal is not meant for it; no signal
  // blocked or ignored because the caller blocks or ignores it.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> variables = DaemonEnvironment();
  const int error = posix_spawn(&child, arguments[0].c_str(), &actions, &attributes,
                                Pointers(arguments).data(), Pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// The rest of the line that begins with `word`, if the text has one that is whole.
bool FindLine(const std::string& text, std::string_view word, std::string& rest) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) return false;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.starts_with(word)) {
      rest = line.substr(word.size());
      return true;
    }
    begin = end + 1;
  }
  return false;
}

Status Failed(const std::string& program, const std::string& why) {
  return Status(Code::kUnavailable, "cannot start " + program + ": " + why);
}

// Reads until the daemon says that it is ready, or why it is not.
StatusOr<std::string> ReadAnswer(int fd, const std::string& program, const Patience& patience) {
  std::string text;
  std::string rest;
  while (true) {
    if (FindLine(text, "ready ", rest)) return rest;
    if (FindLine(text, "error ", rest)) return Failed(program, rest);
    if (Clock::now() >= patience.deadline) return Failed(program, "it does not get ready");
    pollfd ready = {fd, POLLIN, 0};
    const int count = poll(&ready, 1, static_cast<int>(kTick.count()));
    if (count <= 0) {
      if (patience.IsInterrupted()) return Status(Code::kCancelled, "the caller cancelled");
      continue;
    }
    char buffer[4096];
    const ssize_t size = read(fd, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0 || text.size() > kLongestAnswer) {
      return Failed(program, text.empty() ? "it ended at once" : text);
    }
    text.append(buffer, static_cast<size_t>(size));
  }
}

}  // namespace

StatusOr<std::string> StartPrivateDaemon(const std::string& program, const std::string& socket,
                                         const Patience& patience) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failed(program, std::string("pipe2: ") + strerror(errno));
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  pid_t child = -1;
  const int error =
      Spawn({program, "--private", "--background", "--socket=" + socket}, writing.get(), child);
  if (error != 0) return Failed(program, strerror(error));
  writing.Reset();
  StatusOr<std::string> answer = ReadAnswer(reading.get(), program, patience);
  // What was started only waits for the daemon to be ready; without an answer it is given up.
  if (!answer.ok()) kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return answer;
}

}  // namespace phobos::stub
