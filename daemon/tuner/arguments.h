// SPDX-License-Identifier: Apache-2.0
//
// Arguments: the daemon's own copies of one job's tensors and expected answers, in pooled shared
// memory that workers map. From ArgsOwned on the tune depends on nobody else's memory. A CopyPool
// keeps the memory of ended jobs mapped and warm for the next one of the same user, and lets go of
// it when idle: what one uid handed over is never in memory that a job of another one gets.
// CopyPool: any thread. Arguments: one thread until complete, then constant.
#ifndef PHOBOS_DAEMON_TUNER_ARGUMENTS_H_
#define PHOBOS_DAEMON_TUNER_ARGUMENTS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/worker/worker.h"

namespace phobos::tuner {

class CopyPool {
 public:
  // At most `limit_bytes` are held at once, in use and idle.
  explicit CopyPool(int64_t limit_bytes);
  ~CopyPool();
  CopyPool(const CopyPool&) = delete;
  CopyPool& operator=(const CopyPool&) = delete;

  // Has memory of that size ready for `uid`'s next copy, so that it need not be made then. Where
  // there is no room nothing happens.
  void Prepare(int64_t bytes, uid_t uid);
  // Gives idle memory back to the system. What Arguments hold stays.
  void Trim();
  // Bytes of shared memory that exist for this pool, in use and idle.
  int64_t held_bytes() const;

 private:
  friend class Arguments;
  struct State;
  std::shared_ptr<State> state_;
};

// Where tensors lie in a copy: at multiples of this.
inline constexpr int64_t kTensorAlignment = 256;

// A tensor's bytes in an allocation of another process on the device.
struct ForeignBytes {
  std::string cuda_ipc_handle;  // a secret; empty: there are none
  int64_t offset_bytes = 0;
  int64_t bytes = 0;
};

// Bytes of one tensor: that the caller keeps readable for the call only, or on the device.
struct TensorBytes {
  std::string parameter;
  absl::Span<const std::byte> bytes;
  int address_mod_256 = 0;
  ForeignBytes foreign = {};  // where it has a handle, `bytes` is empty
};

class Arguments {
 public:
  // Copies every tensor's bytes, on behalf of `uid`; blocks for as long as that takes. Those on the
  // device only get their place: FetchCall() is then to be done. May outlive the pool.
  // ResourceExhausted: over the pool's limit, with both numbers and the remedy, or the system gives
  // no memory (OUT_OF_MEMORY) or descriptor (MACHINE), with the remedy.
  static absl::StatusOr<std::unique_ptr<Arguments>> Copy(CopyPool& pool, uid_t uid,
                                                         const std::vector<TensorBytes>& tensors);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // What the worker is to copy from the device into the first of memory(); of Copy's tensors.
  worker::FetchCall FetchCall(const std::vector<TensorBytes>& tensors) const;

  // Adds the reference's answers. InvalidArgument: a size that is not the tensor's, an unknown
  // parameter.
  absl::Status CopyExpected(const std::vector<TensorBytes>& expected);
  // Replaces an argument's bytes. InvalidArgument: as CopyExpected.
  absl::Status Replace(const std::vector<TensorBytes>& tensors);

  // Where one tensor's bytes are.
  struct Copied {
    std::string parameter;
    int memory = 0;  // index into memory()
    int64_t offset_bytes = 0;
    int64_t bytes = 0;
    int address_mod_256 = 0;
    int expected_memory = -1;  // -1: the reference did not return it
    int64_t expected_offset_bytes = 0;
  };
  // In the order of Copy.
  const std::vector<Copied>& tensors() const { return tensors_; }
  // Names the arguments' bytes as they are now, and no others while the pool lives. Not 0.
  uint64_t token() const { return token_; }
  // What the worker is to copy to its device before the job begins, from the first of memory().
  worker::PreloadCall PreloadCall() const;
  // Descriptors for the worker; owned by this.
  const std::vector<worker::SharedMemory>& memory() const { return memory_; }

 private:
  Arguments(std::shared_ptr<CopyPool::State> pool, uid_t uid);
  // The tensor of that name; InvalidArgument: there is none, or it has another size.
  absl::StatusOr<Copied*> Find(const TensorBytes& tensor);

  const std::shared_ptr<CopyPool::State> pool_;
  const uid_t uid_;
  uint64_t token_;
  std::vector<Copied> tensors_;
  std::vector<worker::SharedMemory> memory_;
  std::vector<std::byte*> mapped_;
};

}  // namespace phobos::tuner

#endif  // PHOBOS_DAEMON_TUNER_ARGUMENTS_H_
