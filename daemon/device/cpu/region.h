// SPDX-License-Identifier: Apache-2.0
//
// Region: a stretch of private memory with an unreadable page on each side, in huge pages where the
// system has them, so that a kernel that runs away dies at once. One thread.
#ifndef PHOBOS_DAEMON_DEVICE_CPU_REGION_H_
#define PHOBOS_DAEMON_DEVICE_CPU_REGION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace phobos::device {

class Region {
 public:
  Region() = default;  // of no bytes
  // ResourceExhausted: the system has no such memory. No page of it is touched yet.
  static absl::StatusOr<Region> Map(int64_t bytes);
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  // Aligned to 2 MiB; null for a region of no bytes.
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }  // at least what was asked for
  // Of these, the bytes of pages that are in memory: that were touched and are not swapped out.
  // Walks the page tables: not for the fast path.
  int64_t ResidentBytes() const;

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CPU_REGION_H_
