// SPDX-License-Identifier: Apache-2.0
//
// Loads a host artifact and runs its blocks on a pool of threads. The daemon's worker and the
// clients both launch through here, so what is timed is what runs. The ABI is at Artifact in
// proto/phobos/compiler/v1/manifest.proto.
#ifndef PHOBOS_CLIENT_LAUNCH_HOST_H_
#define PHOBOS_CLIENT_LAUNCH_HOST_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/launch/grid.h"
#include "client/launch/per_process.h"
#include "client/launch/status.h"

namespace phobos::launch {

// One loaded artifact. Any thread. Unloaded when destroyed: no launch of it may be running then.
class HostKernel {
 public:
  using Entry = void (*)(const uint64_t* slots, const int64_t* grid, int64_t first_block,
                         int64_t end_block, void* scratch);

  // dlopens `path` (absolute). FailedPrecondition: the machine lacks one of `cpu_features` (LLVM's
  // names), named in the message; NotFound: no such file or symbol; Internal: the loader's words.
  static StatusOr<std::unique_ptr<HostKernel>> Load(const std::string& path,
                                                    const std::string& entry, int64_t scratch_bytes,
                                                    const std::vector<std::string>& cpu_features);
  // Code of this process instead of an artifact, for work that should run on a pool's threads.
  static std::unique_ptr<HostKernel> Of(Entry entry);
  ~HostKernel();
  HostKernel(const HostKernel&) = delete;
  HostKernel& operator=(const HostKernel&) = delete;

  // From now on what the kernel prints goes to standard error, a line and the elements that belong
  // to it in one write; an artifact that was not told so prints nothing. Other HostKernels of the
  // same file follow.
  void PrintToStandardError();

  Entry entry() const { return entry_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  friend class HostPool;
  HostKernel(void* library, Entry entry, int64_t scratch_bytes)
      : library_(library), entry_(entry), scratch_bytes_(scratch_bytes) {}
  void* const library_;
  const Entry entry_;
  const int64_t scratch_bytes_;
  // What a block took in the last launch of several blocks, or -1: whether waking threads is worth
  // it.
  mutable std::atomic<int64_t> block_ns_ = -1;
};

// The most threads a pool has.
constexpr int kMostThreads = 1024;

// Threads a pool of this process should have: $PHOBOS_THREADS, else the CPUs this process may run
// on.
int DefaultThreads();

// A pool of threads for launches, the caller's being one of them. Threads are started by the first
// launch that is worth them; after fork() the child's first such launch starts its own. Launches
// from several threads take turns. A launch that its kernel's last one says is over in less time
// than waking a thread takes runs on the caller alone.
class HostPool {
 public:
  explicit HostPool(int threads);  // >= 1
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  int threads() const { return threads_; }

  // Runs every block of the grid and returns when all are done. A grid of one block runs on the
  // calling thread at once. REQUIRES: slots fit the kernel; BlockCount(grid) is ok and > 0.
  void Run(const HostKernel& kernel, const uint64_t* slots, const Grid& grid);

 private:
  class State;
  const int threads_;
  const std::unique_ptr<PerProcess<State>> state_;
};

}  // namespace phobos::launch

#endif  // PHOBOS_CLIENT_LAUNCH_HOST_H_
