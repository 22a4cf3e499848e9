// SPDX-License-Identifier: Apache-2.0
//
// Linker makes cubins, the card's own code, from PTX by the driver, several at once in threads, and
// keeps each beside its PTX, where the next worker and the clients find it. Expect and Take: one
// thread; the threads inside are its own.
#ifndef PHOBOS_DAEMON_DEVICE_CUDA_LINKER_H_
#define PHOBOS_DAEMON_DEVICE_CUDA_LINKER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "client/launch/cuda/driver.h"

namespace phobos::device {

class Linker {
 public:
  // Links for the card of `context`, on at most `threads` threads, started when first needed.
  Linker(std::shared_ptr<const launch::cuda::CudaDriver> driver, launch::cuda::Context context,
         int threads);
  // Waits for links that have begun.
  ~Linker();
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;

  // The file of a PTX at `ptx_path` will be taken: begins with it. `cubin_path`: where to keep what
  // comes of it; empty: nowhere. What is expected and never taken is let go some time.
  void Expect(const std::string& ptx_path, const std::string& cubin_path);

  // The cubin, waiting for it. What was not expected is linked now. InvalidArgument: the PTX is
  // bad, with the driver's log; FailedPrecondition: this driver cannot link it; NotFound: no file.
  absl::StatusOr<std::string> Take(const std::string& ptx_path, const std::string& cubin_path);

 private:
  // One PTX on its way. Its answer is null until it is there.
  struct Task {
    std::string ptx_path;
    std::string cubin_path;
    std::unique_ptr<absl::StatusOr<std::string>> cubin;
    size_t Bytes() const;  // of the answer
  };
  // With mutex_ held: queues a link; drops one, whose answer is there.
  std::shared_ptr<Task> Begin(const std::string& ptx_path, const std::string& cubin_path);
  void Forget(std::shared_ptr<Task> task);
  void Serve();
  absl::StatusOr<std::string> Link(const Task& task) const;

  const std::shared_ptr<const launch::cuda::CudaDriver> driver_;
  const launch::cuda::Context context_;
  const size_t most_threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // The rest is guarded by mutex_.
  std::map<std::string, std::shared_ptr<Task>> tasks_;  // by ptx_path, until taken
  std::deque<std::shared_ptr<Task>> queue_;
  std::deque<std::shared_ptr<Task>> answered_;  // and not taken, oldest first
  size_t answer_bytes_ = 0;                     // theirs
  std::vector<std::thread> threads_;
  bool is_ending_ = false;
};

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CUDA_LINKER_H_
