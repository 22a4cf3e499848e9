// SPDX-License-Identifier: Apache-2.0
//
// What the daemon shares with its worker process, as that one sees it. MappingPool: the caller's
// tensors, mapped for reading. Keeps the mappings of the calls before, because the daemon hands out
// the same pooled memory again and mapping it anew costs a fault a page. One thread.
#ifndef PHOBOS_DAEMON_WORKER_LINK_MAPPING_H_
#define PHOBOS_DAEMON_WORKER_LINK_MAPPING_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/fd.h"

namespace phobos::worker {

class MappingPool {
 public:
  MappingPool() = default;
  ~MappingPool();
  MappingPool(const MappingPool&) = delete;
  MappingPool& operator=(const MappingPool&) = delete;

  // Maps each descriptor's memory whole, and lets go of what neither this call names nor the one
  // before it did: a preload names the arguments only, between two jobs that name the answers, too.
  // What is mapped is memory, also when its sender has let go of it and counts it no more. The
  // spans hold until the next call. InvalidArgument: memory that its sender could shrink under us.
  absl::StatusOr<std::vector<absl::Span<const std::byte>>> Map(const std::vector<Fd>& descriptors);

 private:
  // One descriptor's memory. Device and inode name it, whatever number its descriptor has.
  struct Mapping {
    dev_t device = 0;
    ino_t inode = 0;
    const std::byte* address = nullptr;
    int64_t bytes = 0;
    int64_t last_call = 0;  // that named it
  };
  // In mappings_: the one there is, else a new one. Holds until mappings_ changes.
  absl::StatusOr<Mapping*> Find(int fd);
  static void Unmap(const Mapping& mapping);

  std::vector<Mapping> mappings_;
  int64_t calls_ = 0;
};

// A descriptor's memory, mapped whole for writing, for as long as this lives.
class WritableMapping {
 public:
  static absl::StatusOr<WritableMapping> Map(int fd);
  WritableMapping(WritableMapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  ~WritableMapping();

  absl::Span<std::byte> bytes() const { return bytes_; }

 private:
  explicit WritableMapping(absl::Span<std::byte> bytes) : bytes_(bytes) {}
  absl::Span<std::byte> bytes_;
};

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_LINK_MAPPING_H_
