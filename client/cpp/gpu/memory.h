// SPDX-License-Identifier: Apache-2.0
//
// GpuMemory: the tensors of a tune in a card's memory. Shared through CUDA IPC where the program's
// allocator can, else copied to the host. One thread.
#ifndef PHOBOS_CLIENT_CPP_GPU_MEMORY_H_
#define PHOBOS_CLIENT_CPP_GPU_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "client/cpp/gpu/gpu.h"
#include "client/cpp/tune/memory.h"
#include "client/launch/status.h"

namespace phobos {

class GpuMemory : public Memory {
 public:
  // `stream`: the caller's, on which the tensors were written.
  GpuMemory(std::shared_ptr<Gpu> gpu, cuda::Stream stream)
      : gpu_(std::move(gpu)), stream_(stream) {}
  ~GpuMemory() override;

  // FailedPrecondition: the stream is being captured.
  Status Settle() override;
  StatusOr<std::optional<Shared>> Share(uint64_t address) override;
  Status Copy(void* to, uint64_t from, int64_t bytes) override;
  StatusOr<const std::byte*> Look(uint64_t address, int64_t bytes,
                                  std::vector<std::byte>& buffer) override;

 private:
  const std::shared_ptr<Gpu> gpu_;
  const cuda::Stream stream_;
  cuda::Stream copying_ = nullptr;  // our own: it waits for nobody's work
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_GPU_MEMORY_H_
