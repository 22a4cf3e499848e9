// SPDX-License-Identifier: Apache-2.0
//
// The stand-in card's memory: host memory in memfds, so that other processes can open it, mapped
// twice. The address that the API gives out cannot be read or written by the process, as on a real
// card; the stream's thread works on the other mapping, which has unreadable pages on both sides.
// Any thread.
#ifndef PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_MEMORY_H_
#define PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "client/launch/cuda/declarations.h"

namespace phobos::fake {

namespace cuda = launch::cuda;

class Memory {
 public:
  explicit Memory(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  cuda::Result Allocate(int card, size_t bytes, cuda::DevicePointer* pointer);
  cuda::Result Free(cuda::DevicePointer pointer);
  cuda::Result AllocateHost(size_t bytes, void** memory);
  cuda::Result FreeHost(void* memory);
  void Left(size_t* free, size_t* total);

  // The allocation of the card that holds an address.
  struct Range {
    cuda::DevicePointer base = 0;
    size_t bytes = 0;
    std::byte* mapped = nullptr;  // what `base` is for the stream's thread
    int fd = -1;
    bool is_foreign = false;  // opened from a handle
    int card = 0;
  };
  std::optional<Range> Find(cuda::DevicePointer pointer);
  bool IsHostAllocation(cuda::DevicePointer pointer);

  // Where the stream's thread finds `bytes` at an address of the API: the card's, or the host's
  // own. Null: they run over the end of their allocation.
  std::byte* Translate(cuda::DevicePointer pointer, size_t bytes);

  cuda::Result Export(cuda::DevicePointer pointer, cuda::IpcHandle* handle);
  cuda::Result Import(int card, const cuda::IpcHandle& handle, cuda::DevicePointer* pointer);
  cuda::Result Close(cuda::DevicePointer pointer);

 private:
  cuda::Result Map(int card, int fd, size_t bytes, bool is_foreign, cuda::DevicePointer* pointer);
  cuda::Result Remove(cuda::DevicePointer pointer, bool is_foreign);

  const int64_t limit_bytes_;
  std::mutex mutex_;
  std::map<cuda::DevicePointer, Range> ranges_;  // by base
  std::map<cuda::DevicePointer, size_t> host_;   // by address
  int64_t used_bytes_ = 0;
};

}  // namespace phobos::fake

#endif  // PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_MEMORY_H_
