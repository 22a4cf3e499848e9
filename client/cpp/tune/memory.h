// SPDX-License-Identifier: Apache-2.0
//
// Memory: where the tensors of a tune are, as far as handing them over wants to know. Addresses are
// the caller's values. One thread.
#ifndef PHOBOS_CLIENT_CPP_TUNE_MEMORY_H_
#define PHOBOS_CLIENT_CPP_TUNE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/launch/status.h"

namespace phobos {

class Memory {
 public:
  virtual ~Memory() = default;

  // Waits for what still writes the tensors, so that they may be read.
  virtual Status Settle() = 0;

  // A tensor in an allocation that another process can open.
  struct Shared {
    std::string handle;        // BufferRef.cuda_ipc_handle: a secret
    int64_t offset_bytes = 0;  // of the tensor in the allocation
  };
  // Nothing: this memory cannot be opened elsewhere.
  virtual StatusOr<std::optional<Shared>> Share(uint64_t address) = 0;

  // Copies a tensor's bytes to the host.
  virtual Status Copy(void* to, uint64_t from, int64_t bytes) = 0;

  // A tensor's bytes on the host, perhaps in `buffer`, which then is made large enough.
  virtual StatusOr<const std::byte*> Look(uint64_t address, int64_t bytes,
                                          std::vector<std::byte>& buffer) = 0;
};

// This process's own.
class HostMemory : public Memory {
 public:
  Status Settle() override { return Status(); }
  StatusOr<std::optional<Shared>> Share(uint64_t) override { return std::optional<Shared>(); }
  Status Copy(void* to, uint64_t from, int64_t bytes) override;
  StatusOr<const std::byte*> Look(uint64_t address, int64_t bytes,
                                  std::vector<std::byte>& buffer) override;
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_TUNE_MEMORY_H_
