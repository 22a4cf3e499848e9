// SPDX-License-Identifier: Apache-2.0
//
// Copies what can be read of a damaged database into a new one. Reads row by row, so that one bad
// page costs the rows on it alone (an inner page of a table: the rows below it). One thread; nobody
// else uses either connection meanwhile.
#ifndef PHOBOS_CACHE_SQLITE_SALVAGE_H_
#define PHOBOS_CACHE_SQLITE_SALVAGE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "cache/sqlite/connection.h"

namespace phobos::cache {

struct Salvaged {
  int64_t generations = 0;  // copied, with key, values and, where readable, variants
  int64_t lost = 0;         // known to have been there, not readable or not with their checksum
};

// REQUIRES: `to` has the present schema and is empty. Facts are not copied: they can be found out
// again. A source that cannot be read at all gives zero generations. Errors: only those of writing
// to `to`.
absl::StatusOr<Salvaged> Salvage(Connection& from, Connection& to);

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_SQLITE_SALVAGE_H_
