// SPDX-License-Identifier: Apache-2.0
//
// The ResultStore on disk: one SQLite database in WAL mode with synchronous=FULL, schema in
// schema.h. Any thread.
#ifndef PHOBOS_CACHE_SQLITE_STORE_H_
#define PHOBOS_CACHE_SQLITE_STORE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cache/result_store.h"

namespace phobos::cache {

// Opens or makes the database at `path` (its folder must exist) and brings an older schema up to
// date. What is damaged is never lost and never fatal: a corrupt file is renamed to
// <path>.damaged-<unix time> and a new one is made; a newer schema is left untouched. Where nothing
// can be remembered (read-only, full, newer) the store answers from what is readable, keeps new
// generations in memory, and Health() says why. Errors: InvalidArgument (no such folder),
// ResourceExhausted.
absl::StatusOr<std::unique_ptr<ResultStore>> OpenSqliteStore(const std::string& path);

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_SQLITE_STORE_H_
