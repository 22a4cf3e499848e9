// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/tune/pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/parallel.h"

namespace phobos {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// Less is brought in by whoever writes it before a thread has begun.
constexpr size_t kWorthThreads = 4 * kHugePage;
constexpr size_t kPiece = 2 * kHugePage;

uintptr_t Aligned(const void* address, size_t alignment) {
  return (reinterpret_cast<uintptr_t>(address) + alignment - 1) / alignment * alignment;
}

// A write that changes nothing, also while others write: madvise, which does the same, holds a lock
// that faults of other threads need. Who writes meanwhile is not ordered with this, on purpose.
__attribute__((no_sanitize("thread"))) void Touch(std::byte* page) {
  auto* byte = reinterpret_cast<unsigned char*>(page);
  unsigned char zero = 0;  // another value is there by a write: then the page is, too
  __atomic_compare_exchange_n(byte, &zero, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

}  // namespace

StatusOr<std::unique_ptr<OwnPages>> OwnPages::Make(size_t bytes) {
  const size_t alignment = bytes < kHugePage ? 1 : kHugePage;
  const size_t size = bytes + alignment - 1;
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return Status(Code::kResourceExhausted, "mmap of " + std::to_string(size) +
                                                " bytes for the reference: " + strerror(errno));
  }
  auto* data = reinterpret_cast<std::byte*>(Aligned(base, alignment));
  if (alignment == kHugePage) madvise(data, bytes, MADV_HUGEPAGE);  // small pages do, too
  return std::unique_ptr<OwnPages>(new OwnPages(base, size, data));
}

OwnPages::~OwnPages() { munmap(base_, size_); }

PagesAhead::PagesAhead(const std::vector<std::span<std::byte>>& blocks) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const std::span<std::byte> block : blocks) {
    if (block.size() < kWorthThreads) continue;
    // Whole pages; pieces end where huge pages do. What lies at the ends is touched soon enough.
    std::byte* begin = reinterpret_cast<std::byte*>(Aligned(block.data(), page));
    std::byte* const end = block.data() + block.size() -
                           reinterpret_cast<uintptr_t>(block.data() + block.size()) % page;
    while (begin < end) {
      auto* next = reinterpret_cast<std::byte*>(Aligned(begin + 1, kPiece));
      next = std::min(next, end);
      pieces_.emplace_back(begin, next);
      begin = next;
    }
  }
  threads_ = StartThreads(static_cast<int64_t>(pieces_.size()), Work, this);
}

PagesAhead::~PagesAhead() {
  next_.store(pieces_.size());
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
}

void* PagesAhead::Work(void* self) {
  auto& ahead = *static_cast<PagesAhead*>(self);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  while (true) {
    const size_t mine = ahead.next_.fetch_add(1);
    if (mine >= ahead.pieces_.size()) return nullptr;
    const std::span<std::byte> piece = ahead.pieces_[mine];
    for (size_t at = 0; at < piece.size(); at += page) Touch(piece.data() + at);
  }
}

}  // namespace phobos
