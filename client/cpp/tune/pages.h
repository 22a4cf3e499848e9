// SPDX-License-Identifier: Apache-2.0
//
// What makes large memory cheap to write: OwnPages, a block of memory in huge pages where the
// kernel has them, PagesAhead, threads that bring a block's pages in while others already write it,
// and CopyBytes, a copy by a few threads. A page at a time, at its first touch, costs several times
// what copying the bytes does.
#ifndef PHOBOS_CLIENT_CPP_TUNE_PAGES_H_
#define PHOBOS_CLIENT_CPP_TUNE_PAGES_H_

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/launch/status.h"

namespace phobos {

// Zeroed memory of this process alone; a forked child has a copy. One thread.
class OwnPages {
 public:
  // ResourceExhausted. `bytes` > 0.
  static StatusOr<std::unique_ptr<OwnPages>> Make(size_t bytes);
  ~OwnPages();
  OwnPages(const OwnPages&) = delete;
  OwnPages& operator=(const OwnPages&) = delete;

  std::byte* data() const { return data_; }

 private:
  OwnPages(void* base, size_t size, std::byte* data) : base_(base), size_(size), data_(data) {}

  void* const base_;
  const size_t size_;
  std::byte* const data_;
};

// Changes no byte, so that the blocks may be read and written meanwhile. Where it cannot help (no
// threads to be had, little memory) it does nothing. One thread makes and destroys it.
class PagesAhead {
 public:
  // The blocks, in the order in which they are wanted, must be mapped for writing as long as it
  // lives.
  explicit PagesAhead(const std::vector<std::span<std::byte>>& blocks);
  // Waits for the pieces that its threads are at, and leaves the rest.
  ~PagesAhead();
  PagesAhead(const PagesAhead&) = delete;
  PagesAhead& operator=(const PagesAhead&) = delete;

 private:
  static void* Work(void* self);

  std::vector<std::span<std::byte>> pieces_;
  std::atomic<size_t> next_ = 0;
  std::vector<pthread_t> threads_;
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_TUNE_PAGES_H_
