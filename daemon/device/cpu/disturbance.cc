// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cpu/disturbance.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_format.h"

namespace phobos::device {
namespace {

constexpr double kNoiseShare = 0.02;
constexpr int64_t kNoiseNs = 20'000;  // a launch

// The start of a small file; empty when it cannot be read.
std::string ReadStart(int folder, const char* path) {
  const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::string();
  char bytes[512];
  const ssize_t got = read(fd, bytes, sizeof(bytes));
  close(fd);
  return std::string(bytes, got > 0 ? static_cast<size_t>(got) : 0);
}

int64_t WaitedNs() {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return 0;
  int64_t sum = 0;
  while (const dirent* task = readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    const std::string path = std::string(task->d_name) + "/schedstat";
    long long running = 0, waited = 0;
    if (sscanf(ReadStart(dirfd(tasks), path.c_str()).c_str(), "%lld %lld", &running, &waited) ==
        2) {
      sum += waited;
    }
  }
  closedir(tasks);
  return sum;
}

int64_t StolenNs() {
  long long user, nice, system, idle, iowait, irq, softirq, steal;
  const std::string line = ReadStart(AT_FDCWD, "/proc/stat");
  if (sscanf(line.c_str(), "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &user, &nice, &system,
             &idle, &iowait, &irq, &softirq, &steal) != 8) {
    return 0;
  }
  return steal * (1'000'000'000 / sysconf(_SC_CLK_TCK));
}

}  // namespace

SchedulerTimes ReadSchedulerTimes() { return {WaitedNs(), StolenNs()}; }

std::string Disturbance(const SchedulerTimes& before, const SchedulerTimes& after,
                        const Work& work) {
  const int64_t stolen = after.stolen_ns - before.stolen_ns;
  const int64_t lost = after.waited_ns - before.waited_ns + stolen;
  const double all = static_cast<double>(work.wall_ns) * work.threads;
  const double noise = kNoiseShare * all + static_cast<double>(kNoiseNs * work.launches);
  if (static_cast<double>(lost) <= noise) return std::string();
  return absl::StrFormat(
      "other work had the processors for %.1f ms of %.1f ms (%.1f ms by the hypervisor)",
      static_cast<double>(lost) / 1e6, all / 1e6, static_cast<double>(stolen) / 1e6);
}

}  // namespace phobos::device
