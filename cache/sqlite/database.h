// SPDX-License-Identifier: Apache-2.0
//
// Opens results.db in whatever state it is: new, current, older, newer, damaged, or where nothing
// can be written. Decides what may be done with it and says why when that is less than everything.
// REQUIRES of all: nobody else in this process has the file open. One thread.
#ifndef PHOBOS_CACHE_SQLITE_DATABASE_H_
#define PHOBOS_CACHE_SQLITE_DATABASE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache/sqlite/connection.h"
#include "cache/sqlite/schema.h"

namespace phobos::cache {

// Two connections, so that a lookup never waits for a commit.
struct Database {
  std::optional<Connection> reading;  // absent: nothing is readable
  std::optional<Connection> writing;  // absent: nothing can be written, for as long as it is open
  std::string problem;                // one sentence for the operator, empty when all is well
};

// Reads every page once (quick_check; about 0.6 ms a MiB). InvalidArgument: the folder is not
// there. ResourceExhausted: no memory. Everything else is told in `problem`.
absl::StatusOr<Database> OpenDatabase(const std::string& path,
                                      absl::Span<const Migration> migrations = Migrations());

// For a database that turned out to be damaged: renames it to <path>.damaged-<unix time>, makes a
// new one with all that can still be read of it, and opens that. A new database that cannot be made
// leaves the damaged one where it is, to be read.
absl::StatusOr<Database> RepairDatabase(const std::string& path,
                                        absl::Span<const Migration> migrations = Migrations());

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_SQLITE_DATABASE_H_
