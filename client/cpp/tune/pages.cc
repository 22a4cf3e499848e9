// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/tune/pages.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

namespace phobos {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// Less is brought in by whoever writes it before a thread has begun.
constexpr size_t kWorthThreads = 4 * kHugePage;
constexpr size_t kPiece = 2 * kHugePage;
constexpr unsigned kMostThreads = 4;

#ifndef MADV_POPULATE_WRITE  // Linux 5.14
constexpr int MADV_POPULATE_WRITE = 23;
#endif

uintptr_t Aligned(const void* address, size_t alignment) {
  return (reinterpret_cast<uintptr_t>(address) + alignment - 1) / alignment * alignment;
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

PagesAhead::PagesAhead(std::vector<std::span<std::byte>> blocks) {
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
  // One processor is the caller's.
  const unsigned spare = std::max(std::thread::hardware_concurrency(), 1U) - 1;
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  while (!pieces_.empty() && threads_.size() < std::min(spare, kMostThreads)) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, Work, this) != 0) break;
    threads_.push_back(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PagesAhead::~PagesAhead() {
  next_.store(pieces_.size());
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
}

void* PagesAhead::Work(void* self) {
  auto& ahead = *static_cast<PagesAhead*>(self);
  while (true) {
    const size_t mine = ahead.next_.fetch_add(1);
    if (mine >= ahead.pieces_.size()) return nullptr;
    const std::span<std::byte> piece = ahead.pieces_[mine];
    if (madvise(piece.data(), piece.size(), MADV_POPULATE_WRITE) != 0) return nullptr;
  }
}

}  // namespace phobos
