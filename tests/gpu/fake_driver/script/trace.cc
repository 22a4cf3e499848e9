// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/fake_driver/script/trace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

namespace phobos::fake {
namespace {

int OpenTrace() {
  const char* path = getenv("PHOBOS_FAKE_CUDA_TRACE");
  if (path == nullptr) return -1;
  return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

}  // namespace

Trace::Trace(const Script& script) : script_(script), fd_(OpenTrace()) {}

int Trace::Enter(const std::string& name, const std::string& what) {
  int64_t count = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    count = ++counts_[name];
  }
  if (fd_ >= 0 && name != "cuStreamQuery") {
    const std::string line =
        std::to_string(getpid()) + " " + name + (what.empty() ? "" : " " + what) + "\n";
    (void)!write(fd_, line.data(), line.size());
  }
  for (const Failure& stall : script_.stalls) {
    if (stall.function != name || !stall.when.IsDue(count)) continue;
    while (true) pause();
  }
  for (const Failure& failure : script_.failures) {
    if (failure.function == name && failure.when.IsDue(count)) return failure.when.result;
  }
  return 0;
}

}  // namespace phobos::fake
