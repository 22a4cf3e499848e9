// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/fake_driver/card/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace phobos::fake {
namespace {

constexpr size_t kPage = 4096;
// Of the addresses that are given out, as on a card.
constexpr size_t kAlignment = size_t{2} << 20;

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Addresses with nothing behind them.
std::byte* Reserve(size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

// What travels in a handle.
struct Ticket {
  int pid;
  int fd;
  size_t bytes;
};
static_assert(sizeof(Ticket) <= sizeof(cuda::IpcHandle));

}  // namespace

cuda::Result Memory::Allocate(int card, size_t bytes, cuda::DevicePointer* pointer) {
  if (bytes == 0) return cuda::kInvalidValue;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (used_bytes_ + static_cast<int64_t>(bytes) > limit_bytes_) return cuda::kOutOfMemory;
  const int fd = memfd_create("fake-cuda", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(RoundUp(bytes, kPage))) != 0) {
    return cuda::kOperatingSystem;
  }
  used_bytes_ += static_cast<int64_t>(bytes);
  return Map(card, fd, bytes, false, pointer);
}

cuda::Result Memory::Map(int card, int fd, size_t bytes, bool is_foreign,
                         cuda::DevicePointer* pointer) {
  const size_t pages = RoundUp(bytes, kPage);
  std::byte* shown = Reserve(pages + kAlignment);
  std::byte* around = Reserve(pages + 2 * kPage);
  if (shown == nullptr || around == nullptr) return cuda::kOperatingSystem;
  void* mapped = mmap(around + kPage, pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) return cuda::kOperatingSystem;
  const auto base = RoundUp(reinterpret_cast<size_t>(shown), kAlignment);
  ranges_[base] = {base, bytes, static_cast<std::byte*>(mapped), fd, is_foreign, card};
  *pointer = base;
  return cuda::kSuccess;
}

cuda::Result Memory::Remove(cuda::DevicePointer pointer, bool is_foreign) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = ranges_.find(pointer);
  if (found == ranges_.end() || found->second.is_foreign != is_foreign) return cuda::kInvalidValue;
  const Range range = found->second;
  ranges_.erase(found);
  if (!is_foreign) used_bytes_ -= static_cast<int64_t>(range.bytes);
  // The addresses stay reserved, so that nobody gets them again and a late use is seen.
  mprotect(range.mapped, RoundUp(range.bytes, kPage), PROT_NONE);
  close(range.fd);
  return cuda::kSuccess;
}

cuda::Result Memory::Free(cuda::DevicePointer pointer) { return Remove(pointer, false); }
cuda::Result Memory::Close(cuda::DevicePointer pointer) { return Remove(pointer, true); }

cuda::Result Memory::AllocateHost(size_t bytes, void** memory) {
  void* address = mmap(nullptr, RoundUp(bytes, kPage), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return cuda::kOutOfMemory;
  const std::lock_guard<std::mutex> lock(mutex_);
  host_[reinterpret_cast<cuda::DevicePointer>(address)] = bytes;
  *memory = address;
  return cuda::kSuccess;
}

cuda::Result Memory::FreeHost(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = host_.find(reinterpret_cast<cuda::DevicePointer>(memory));
  if (found == host_.end()) return cuda::kInvalidValue;
  munmap(memory, RoundUp(found->second, kPage));
  host_.erase(found);
  return cuda::kSuccess;
}

void Memory::Left(size_t* free, size_t* total) {
  const std::lock_guard<std::mutex> lock(mutex_);
  *total = static_cast<size_t>(limit_bytes_);
  *free = static_cast<size_t>(limit_bytes_ - used_bytes_);
}

std::optional<Memory::Range> Memory::Find(cuda::DevicePointer pointer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto above = ranges_.upper_bound(pointer);
  if (above == ranges_.begin()) return std::nullopt;
  const Range& range = (--above)->second;
  if (pointer >= range.base + range.bytes) return std::nullopt;
  return range;
}

bool Memory::IsHostAllocation(cuda::DevicePointer pointer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto above = host_.upper_bound(pointer);
  return above != host_.begin() && pointer < (--above)->first + above->second;
}

std::byte* Memory::Translate(cuda::DevicePointer pointer, size_t bytes) {
  const std::optional<Range> range = Find(pointer);
  if (!range.has_value()) return reinterpret_cast<std::byte*>(pointer);
  if (bytes > range->base + range->bytes - pointer) return nullptr;
  return range->mapped + (pointer - range->base);
}

cuda::Result Memory::Export(cuda::DevicePointer pointer, cuda::IpcHandle* handle) {
  const std::optional<Range> range = Find(pointer);
  if (!range.has_value() || range->is_foreign) return cuda::kInvalidValue;
  const Ticket ticket = {getpid(), range->fd, range->bytes};
  memset(handle, 0, sizeof(*handle));
  memcpy(handle, &ticket, sizeof(ticket));
  return cuda::kSuccess;
}

cuda::Result Memory::Import(int card, const cuda::IpcHandle& handle, cuda::DevicePointer* pointer) {
  Ticket ticket = {};
  memcpy(&ticket, &handle, sizeof(ticket));
  // The driver refuses a handle in the process that made it.
  if (ticket.pid == getpid()) return cuda::kInvalidContext;
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/fd/%d", ticket.pid, ticket.fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return cuda::kInvalidValue;
  const std::lock_guard<std::mutex> lock(mutex_);
  return Map(card, fd, ticket.bytes, true, pointer);
}

}  // namespace phobos::fake
