// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/link/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace phobos::worker {

MappingPool::~MappingPool() {
  for (const Mapping& mapping : mappings_) Unmap(mapping);
}

void MappingPool::Unmap(const Mapping& mapping) {
  munmap(const_cast<std::byte*>(mapping.address), static_cast<size_t>(mapping.bytes));
}

absl::StatusOr<WritableMapping> WritableMapping::Map(int fd) {
  struct stat status = {};
  if (fstat(fd, &status) != 0) return absl::ErrnoToStatus(errno, "fstat");
  const auto size = static_cast<size_t>(status.st_size);
  // Its pages come as they are written, which several threads do.
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
  return WritableMapping({static_cast<std::byte*>(address), size});
}

WritableMapping::~WritableMapping() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

absl::StatusOr<MappingPool::Mapping*> MappingPool::Find(int fd) {
  struct stat status = {};
  if (fstat(fd, &status) != 0) return absl::ErrnoToStatus(errno, "fstat");
  for (Mapping& mapping : mappings_) {
    const bool same = mapping.device == status.st_dev && mapping.inode == status.st_ino &&
                      mapping.bytes == status.st_size;
    if (same) return &mapping;
  }
  const int seals = fcntl(fd, F_GET_SEALS);  // -1: no memory that can be sealed
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError("memory that is not sealed against shrinking");
  }
  void* address = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
  mappings_.push_back(
      {status.st_dev, status.st_ino, static_cast<const std::byte*>(address), status.st_size});
  return &mappings_.back();
}

absl::StatusOr<std::vector<absl::Span<const std::byte>>> MappingPool::Map(
    const std::vector<Fd>& descriptors) {
  ++calls_;
  std::vector<absl::Span<const std::byte>> spans;
  for (const Fd& descriptor : descriptors) {
    ASSIGN_OR_RETURN(Mapping * mapping, Find(descriptor.get()));
    mapping->last_call = calls_;
    spans.emplace_back(mapping->address, static_cast<size_t>(mapping->bytes));
  }
  const auto old =
      std::partition(mappings_.begin(), mappings_.end(),
                     [this](const Mapping& mapping) { return mapping.last_call >= calls_ - 1; });
  for (auto mapping = old; mapping != mappings_.end(); ++mapping) Unmap(*mapping);
  mappings_.erase(old, mappings_.end());
  return spans;
}

}  // namespace phobos::worker
