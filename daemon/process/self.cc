// SPDX-License-Identifier: Apache-2.0
#include "daemon/process/self.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

namespace phobos::process {

absl::StatusOr<Fd> BlockStopSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t stops;
  sigemptyset(&stops);
  for (const int stop : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&stops, stop);
  if (pthread_sigmask(SIG_BLOCK, &stops, nullptr) != 0) {
    return absl::ErrnoToStatus(errno, "pthread_sigmask");
  }
  Fd fd(signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.ok()) return absl::ErrnoToStatus(errno, "signalfd");
  return fd;
}

void KeepFilesOurs() { umask(umask(0) | 022); }

void RaiseFileLimit() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

void KeepMemorySmall() {
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_TRIM_THRESHOLD, 256 * 1024);
}

void TrimMemory() { malloc_trim(0); }

int RunnableThreads() {
  std::FILE* load = std::fopen("/proc/loadavg", "re");
  if (load == nullptr) return 1;
  int runnable = 1;
  const int fields = std::fscanf(load, "%*f %*f %*f %d/", &runnable);
  std::fclose(load);
  return fields == 1 ? runnable : 1;
}

int64_t ResidentBytes() {
  std::FILE* statm = std::fopen("/proc/self/statm", "re");
  if (statm == nullptr) return 0;
  long long total = 0;
  long long resident = 0;
  const int fields = std::fscanf(statm, "%lld %lld", &total, &resident);
  std::fclose(statm);
  return fields == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace phobos::process
