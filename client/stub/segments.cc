// SPDX-License-Identifier: Apache-2.0
#include "client/stub/segments.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "client/stub/unix_socket.h"

namespace phobos::stub {

Segments::~Segments() {
  for (auto& [id, mapping] : mappings_) munmap(mapping.bytes, mapping.size);
}

std::vector<uint64_t> Segments::Unused() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint64_t> ids;
  for (const auto& [id, mapping] : mappings_) {
    if (mapping.uses == 0) ids.push_back(id);
  }
  return ids;
}

StatusOr<std::byte*> Segments::Use(const SegmentGrant& grant) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto found = mappings_.find(grant.segment);
  if (found == mappings_.end()) {
    StatusOr<Mapping> mapping = Fetch(grant);
    if (!mapping.ok()) return mapping.status();
    found = mappings_.emplace(grant.segment, *std::move(mapping)).first;
  }
  Mapping& mapping = found->second;
  if (grant.bytes < 0 || static_cast<uint64_t>(grant.bytes) > mapping.size) {
    return Status(Code::kInternal, "the daemon granted " + std::to_string(grant.bytes) +
                                       " bytes of a segment of " + std::to_string(mapping.size));
  }
  ++mapping.uses;
  return mapping.bytes;
}

Status Segments::LayOver(std::byte* at, uint64_t segment, int64_t offset, size_t bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = mappings_.find(segment);
  if (found == mappings_.end()) {
    return Status(Code::kInternal, "segment " + std::to_string(segment) + " is not in use");
  }
  const void* laid = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                          found->second.memory.get(), offset);
  if (laid != MAP_FAILED) return Status();
  return Status(Code::kResourceExhausted, "mmap of " + std::to_string(bytes) +
                                              " bytes for the reference: " + strerror(errno));
}

void Segments::Done(uint64_t segment) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = mappings_.find(segment);
  if (found == mappings_.end()) return;
  --found->second.uses;
  found->second.used = Clock::now();
}

void Segments::DropUnused(Clock::duration idle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Clock::time_point now = Clock::now();
  for (auto i = mappings_.begin(); i != mappings_.end();) {
    const Mapping& mapping = i->second;
    if (mapping.uses > 0 || now - mapping.used < idle) {
      ++i;
      continue;
    }
    munmap(mapping.bytes, mapping.size);
    i = mappings_.erase(i);
  }
}

StatusOr<Segments::Mapping> Segments::Fetch(const SegmentGrant& grant) const {
  if (grant.ticket.empty()) {
    return Status(Code::kInternal, "the daemon believes that segment " +
                                       std::to_string(grant.segment) + " is held here");
  }
  StatusOr<Fd> side = Connect(side_socket_);
  if (!side.ok()) return side.status();
  StatusOr<Received> received = Exchange(side->get(), grant.ticket);
  if (!received.ok()) return received.status();
  // Memory behind the file's end would be a SIGBUS at the first touch.
  struct stat file = {};
  if (fstat(received->fd.get(), &file) != 0) {
    return Status(Code::kInternal, std::string("fstat of shared memory: ") + strerror(errno));
  }
  if (received->number <= 0 || file.st_size < received->number) {
    return Status(Code::kInternal, "the side socket handed out " + std::to_string(file.st_size) +
                                       " bytes of shared memory as " +
                                       std::to_string(received->number));
  }
  Mapping mapping;
  mapping.side = *std::move(side);
  mapping.size = static_cast<size_t>(received->number);
  void* bytes =
      mmap(nullptr, mapping.size, PROT_READ | PROT_WRITE, MAP_SHARED, received->fd.get(), 0);
  if (bytes == MAP_FAILED) {
    return Status(Code::kResourceExhausted, "mmap of " + std::to_string(mapping.size) +
                                                " bytes of shared memory: " + strerror(errno));
  }
  // A child that is forked meanwhile has no use for it and must not keep it alive.
  madvise(bytes, mapping.size, MADV_DONTFORK);
  mapping.bytes = static_cast<std::byte*>(bytes);
  mapping.memory = std::move(received->fd);
  return mapping;
}

}  // namespace phobos::stub
