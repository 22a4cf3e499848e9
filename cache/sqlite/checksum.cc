// SPDX-License-Identifier: Apache-2.0
#include "cache/sqlite/checksum.h"

#include <zlib.h>

#include <string>

#include "base/concat.h"

namespace phobos::cache {

int64_t ChecksumOf(const CheckedColumns& columns) {
  const std::string numbers =
      Concat(columns.number, " ", columns.best_ns, " ", columns.result.size());
  uLong sum = crc32_z(0, nullptr, 0);
  for (const std::string_view part : {columns.key_digest, std::string_view(numbers), columns.winner,
                                      columns.options, columns.result}) {
    sum = crc32_z(sum, reinterpret_cast<const Bytef*>(part.data()), part.size());
    sum = crc32_z(sum, reinterpret_cast<const Bytef*>("\n"), 1);
  }
  return static_cast<int64_t>(sum);
}

}  // namespace phobos::cache
