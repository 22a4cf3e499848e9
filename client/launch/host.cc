// SPDX-License-Identifier: Apache-2.0
#include "client/launch/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/printed_text.h"

namespace phobos::launch {
namespace {

// LLVM's and Linux's names for one feature differ in marks ("sse4.1", "sse4_1"); these differ in
// more.
constexpr std::pair<std::string_view, std::string_view> kLinuxNames[] = {
    {"64bit", "lm"},        {"bmi", "bmi1"},         {"crc32", "sse42"},
    {"lzcnt", "abm"},       {"pclmul", "pclmulqdq"}, {"prfchw", "3dnowprefetch"},
    {"rdrnd", "rdrand"},    {"sahf", "lahflm"},      {"sha", "shani"},
    {"shstk", "usershstk"}, {"sse3", "pni"},         {"x87", "fpu"},
};

std::string WithoutMarks(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '.' && c != '_' && c != '-') plain += c;
  }
  return plain;
}

std::string LinuxName(const std::string& llvm_name) {
  const std::string plain = WithoutMarks(llvm_name);
  for (const auto& [llvm, linux_name] : kLinuxNames) {
    if (plain == llvm) return std::string(linux_name);
  }
  return plain;
}

// The processor's features as Linux lists them, marks taken out, sorted; empty when it does not
// say.
std::vector<std::string> MachineFeatures() {
  std::vector<std::string> features;
  FILE* file = fopen("/proc/cpuinfo", "re");
  if (file == nullptr) return features;
  char* line = nullptr;
  size_t capacity = 0;
  // All processors of a machine have the same; the first one's list will do.
  while (getline(&line, &capacity, file) > 0) {
    if (strncmp(line, "flags", 5) != 0) continue;
    char* rest = strchr(line, ':');
    if (rest == nullptr) continue;
    char* state = nullptr;
    for (char* word = strtok_r(rest + 1, " \n", &state); word != nullptr;
         word = strtok_r(nullptr, " \n", &state)) {
      features.push_back(WithoutMarks(word));
    }
    break;
  }
  free(line);
  fclose(file);
  std::sort(features.begin(), features.end());
  return features;
}

Status CheckFeatures(const std::string& path, const std::vector<std::string>& needed) {
  if (needed.empty()) return Status();
  const std::vector<std::string> present = MachineFeatures();
  std::string missing;
  for (const std::string& feature : needed) {
    if (std::binary_search(present.begin(), present.end(), LinuxName(feature))) continue;
    if (!missing.empty()) missing += ", ";
    missing += feature;
  }
  if (missing.empty()) return Status();
  return Status(Code::kFailedPrecondition, "this processor lacks " + missing + ", which " + path +
                                               " was compiled for; compile it for this machine");
}

// What an artifact calls, see Printing at Artifact in the manifest.
using PrintFunction = void (*)(const char* format, int64_t size, const void* const* values);

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd room = {fd, POLLOUT, 0};
      if (poll(&room, 1, /*timeout=*/-1) < 0 && errno != EINTR) return;
    } else if (errno != EINTR) {
      return;  // nobody reads it
    }
  }
}

void WriteToStandardError(const char* format, int64_t size, const void* const* values) {
  const std::string text = PrintedText(std::string_view(format, static_cast<size_t>(size)), values);
  // A pipe takes a long text in parts. This lock is one that a forked child does not inherit held.
  flockfile(stderr);
  WriteAll(STDERR_FILENO, text);
  funlockfile(stderr);
}

}  // namespace

StatusOr<std::unique_ptr<HostKernel>> HostKernel::Load(
    const std::string& path, const std::string& entry, int64_t scratch_bytes,
    const std::vector<std::string>& cpu_features) {
  if (access(path.c_str(), F_OK) != 0) {
    return Status(Code::kNotFound, "cannot load " + path + ": " + strerror(errno));
  }
  if (Status status = CheckFeatures(path, cpu_features); !status.ok()) return status;
  // Local, so that two artifacts with the same entry name do not meet; now, so that nothing is
  // resolved inside a launch.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status(Code::kInternal, std::string("dlopen: ") + dlerror());
  void* symbol = dlsym(library, entry.c_str());
  if (symbol == nullptr) {
    dlclose(library);
    return Status(Code::kNotFound, path + " has no function " + entry);
  }
  return std::unique_ptr<HostKernel>(
      new HostKernel(library, reinterpret_cast<Entry>(symbol), scratch_bytes));
}

std::unique_ptr<HostKernel> HostKernel::Of(Entry entry) {
  return std::unique_ptr<HostKernel>(new HostKernel(nullptr, entry, 0));
}

void HostKernel::PrintToStandardError() {
  void* variable = library_ == nullptr ? nullptr : dlsym(library_, "phobos_print");
  if (variable == nullptr) return;  // it prints nothing
  std::atomic_ref<PrintFunction>(*static_cast<PrintFunction*>(variable)) = &WriteToStandardError;
}

HostKernel::~HostKernel() {
  if (library_ != nullptr) dlclose(library_);
}

int DefaultThreads() {
  if (const char* wish = getenv("PHOBOS_THREADS"); wish != nullptr) {
    const long threads = strtol(wish, nullptr, 10);
    if (threads >= 1) return static_cast<int>(std::min<long>(threads, kMostThreads));
  }
  // A set of the usual size fails on machines with more processors; then a larger one is tried.
  for (size_t processors = CPU_SETSIZE; processors <= (1u << 16); processors *= 2) {
    const size_t bytes = CPU_ALLOC_SIZE(processors);
    cpu_set_t* set = CPU_ALLOC(processors);
    const bool known = set != nullptr && sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count >= 1) return std::min(count, kMostThreads);
  }
  return 1;
}

}  // namespace phobos::launch
