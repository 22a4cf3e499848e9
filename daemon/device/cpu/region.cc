// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cpu/region.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace phobos::device {
namespace {

// Both sides keep a whole huge page, so that the data begins and ends at one.
constexpr int64_t kGuard = int64_t{2} << 20;

}  // namespace

absl::StatusOr<Region> Region::Map(int64_t bytes) {
  const int64_t size = (bytes + kGuard - 1) / kGuard * kGuard;
  const int64_t mapped = size + 3 * kGuard;
  void* whole = mmap(nullptr, static_cast<size_t>(mapped), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("mmap of ", mapped, " bytes failed"));
  }
  auto* begin = static_cast<std::byte*>(whole);
  const int64_t skip = kGuard - static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin)) % kGuard;
  Region region;
  region.data_ = begin + skip + kGuard;
  region.bytes_ = size;
  // What lies before and after the guards is given back, so that the region alone is left.
  munmap(begin, static_cast<size_t>(skip));
  const int64_t tail = mapped - skip - 2 * kGuard - size;
  if (tail > 0) munmap(region.data_ + size + kGuard, static_cast<size_t>(tail));
  if (mprotect(region.data_, static_cast<size_t>(size), PROT_READ | PROT_WRITE) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("mprotect of ", size, " bytes failed"));
  }
  madvise(region.data_, static_cast<size_t>(size), MADV_HUGEPAGE);
  return region;
}

int64_t Region::ResidentBytes() const {
  constexpr int64_t kStretch = int64_t{1} << 30;
  const int64_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> states(static_cast<size_t>(std::min(bytes_, kStretch) / page));
  int64_t pages = 0;
  for (int64_t at = 0; at < bytes_; at += kStretch) {
    const int64_t size = std::min(kStretch, bytes_ - at);
    if (mincore(data_ + at, static_cast<size_t>(size), states.data()) != 0) continue;
    pages += std::count_if(states.begin(), states.begin() + size / page,
                           [](unsigned char state) { return (state & 1) != 0; });
  }
  return pages * page;
}

Region::Region(Region&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Region::~Region() {
  if (data_ != nullptr) munmap(data_ - kGuard, static_cast<size_t>(bytes_ + 2 * kGuard));
}

}  // namespace phobos::device
