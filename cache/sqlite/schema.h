// SPDX-License-Identifier: Apache-2.0
//
// The schema of results.db, its versions, and the steps between them. What a Result on disk looks
// like is told in schema.cc, column by column. One daemon writes a database; the user
// it belongs to may read it with the sqlite3 shell. Others may not, for it has texts of sources.
//
// A version that was released is never edited: its number and its SQL are on users' disks. A change
// is a new step at the end of kMigrations, and a dump of the version before it in
// tests/cache/testdata.
//
// A page is 8 KiB (set before anything is written), the journal a write-ahead log,
// synchronous=FULL. Times are Unix milliseconds, durations nanoseconds, digests lower-case
// hexadecimal SHA-256.
#ifndef PHOBOS_CACHE_SQLITE_SCHEMA_H_
#define PHOBOS_CACHE_SQLITE_SCHEMA_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache/sqlite/connection.h"

namespace phobos::cache {

// Brings a database from version `to - 1` to `to`.
struct Migration {
  int to = 0;
  // Version of the oldest program that may still read such a database (only read: it must not
  // write).
  int oldest_reader = 0;
  const char* sql = nullptr;
};

// All of them, from an empty file on. Pass a longer list in tests only.
absl::Span<const Migration> Migrations();

// What a database is to a program that knows versions up to `known`.
enum class Fit {
  kEmpty,  // a new file
  kOlder,  // Migrate brings it up to date
  kCurrent,
  kReadable,  // newer; may be read but not written
  kForeign,   // newer and not readable, or some other program's
};
absl::StatusOr<Fit> FitOf(Connection& connection, int known);

// Sets page size and journal, then runs the steps that are missing, all of them in one transaction.
// REQUIRES: the fit is kEmpty, kOlder or kCurrent.
absl::Status Migrate(Connection& connection, absl::Span<const Migration> migrations);

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_SQLITE_SCHEMA_H_
