// SPDX-License-Identifier: Apache-2.0
//
// Where a listing stands between two pages. A listing shows the store as it was when its first page
// was read: bounds say which generations existed then, so rows that are added meanwhile neither
// shift nor repeat others. (A key that was tuned three times between two pages may be missing: its
// generation of then is gone.) Plain values, any thread.
#ifndef PHOBOS_CACHE_LIST_POSITION_H_
#define PHOBOS_CACHE_LIST_POSITION_H_

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/result_store.h"

namespace phobos::cache {

struct ListPosition {
  int64_t disk_bound = 0;    // newest generation's id in the database, at the first page
  int64_t memory_bound = 0;  // the same in the memory store
  // The row before the next one.
  int64_t finished_unix_ms = std::numeric_limits<int64_t>::max();
  std::string key_digest;
};

// The order of rows in a listing: newest first, equal times by digest of key.
bool IsListedBefore(const Listed& a, const Listed& b);

// True when a row with these values comes after `position`.
bool IsAfter(const ListPosition& position, int64_t finished_unix_ms, std::string_view key_digest);

// The page token for a position, and back. InvalidArgument: no token of this form.
std::string TokenFrom(const ListPosition& position);
absl::StatusOr<ListPosition> PositionFrom(std::string_view token);

// InvalidArgument unless 1 <= page_size <= 1000.
absl::Status CheckPageSize(int page_size);

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_LIST_POSITION_H_
