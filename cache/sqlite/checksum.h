// SPDX-License-Identifier: Apache-2.0
//
// The checksum of a stored generation. SQLite notices a damaged page only by its structure; this
// notices damage inside a Result. No protection against intent. Pure, any thread.
#ifndef PHOBOS_CACHE_SQLITE_CHECKSUM_H_
#define PHOBOS_CACHE_SQLITE_CHECKSUM_H_

#include <cstdint>
#include <string_view>

namespace phobos::cache {

// What a launch or a tune decides by.
struct CheckedColumns {
  std::string_view key_digest;
  int64_t number = 0;
  int64_t best_ns = 0;
  std::string_view winner;
  std::string_view options;
  std::string_view result;
};

// CRC-32, zlib's. On disk: forever.
int64_t ChecksumOf(const CheckedColumns& columns);

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_SQLITE_CHECKSUM_H_
