// SPDX-License-Identifier: Apache-2.0
#include "cache/sqlite/schema.h"

#include "base/concat.h"
#include "base/status_macros.h"

namespace phobos::cache {
namespace {

// "Phob" in ASCII; in the file's header, where file(1) and FitOf see it. Forever.
constexpr int kApplicationId = 0x50686f62;

constexpr char kVersion1[] = R"sql(
-- One row. A program older than oldest_reader does not even read this database.
CREATE TABLE schema_version (version INTEGER NOT NULL, oldest_reader INTEGER NOT NULL) STRICT;

-- What a Result holds for. digest is the SHA-256 of text.
CREATE TABLE result_key (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,
  kernel TEXT NOT NULL,
  source_digest TEXT NOT NULL,
  chip TEXT NOT NULL,
  card_name TEXT NOT NULL
) STRICT;
CREATE INDEX result_key_by_kernel ON result_key (kernel);

-- The extents of a key, in the order that the kernel declares.
CREATE TABLE key_value (
  key_id INTEGER NOT NULL REFERENCES result_key (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (key_id, position)
) STRICT, WITHOUT ROWID;

-- One finished tune. id is the order of storing and is never used again; number counts from 1 within the key. result is a
-- serialized phobos.tuner.v1.Result; checksum is over it and the columns served with it (checksum.h).
CREATE TABLE generation (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key_id INTEGER NOT NULL REFERENCES result_key (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  pinned INTEGER NOT NULL,
  finished_unix_ms INTEGER NOT NULL,
  winner TEXT NOT NULL,
  best_ns INTEGER NOT NULL,
  contended INTEGER NOT NULL,
  variants_timed INTEGER NOT NULL,
  variants_total INTEGER NOT NULL,
  options TEXT NOT NULL,
  extents TEXT NOT NULL,
  compiler_fingerprint TEXT NOT NULL,
  driver TEXT NOT NULL,
  card_uuid TEXT NOT NULL,
  asked_by TEXT NOT NULL,
  checksum INTEGER NOT NULL,
  result BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX generation_by_number ON generation (key_id, number);
CREATE INDEX generation_by_service ON generation (key_id, pinned DESC, number DESC);
CREATE INDEX generation_by_time ON generation (finished_unix_ms DESC);

-- The variants of a generation and their samples, oldest first, separated by spaces. best_ns 0: not timed.
CREATE TABLE variant (
  generation_id INTEGER NOT NULL REFERENCES generation (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  settings TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT NOT NULL,
  best_ns INTEGER NOT NULL,
  median_ns INTEGER NOT NULL,
  artifact_digest TEXT NOT NULL,
  samples_ns TEXT NOT NULL,
  PRIMARY KEY (generation_id, position)
) STRICT, WITHOUT ROWID;

-- What is remembered between tunes and can be found out again.
CREATE TABLE fact (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT;
)sql";

constexpr Migration kMigrations[] = {
    {.to = 1, .oldest_reader = 1, .sql = kVersion1},
};

absl::StatusOr<int64_t> VersionOf(Connection& connection) {
  ASSIGN_OR_RETURN(const int64_t tables, connection.Ask("SELECT count(*) FROM sqlite_schema"));
  return tables == 0 ? absl::StatusOr<int64_t>(0)
                     : connection.Ask("SELECT version FROM schema_version");
}

}  // namespace

absl::Span<const Migration> Migrations() { return kMigrations; }

absl::StatusOr<Fit> FitOf(Connection& connection, int known) {
  ASSIGN_OR_RETURN(const int64_t tables, connection.Ask("SELECT count(*) FROM sqlite_schema"));
  if (tables == 0) return Fit::kEmpty;
  ASSIGN_OR_RETURN(const int64_t application, connection.Ask("PRAGMA application_id"));
  if (application != kApplicationId) return Fit::kForeign;
  ASSIGN_OR_RETURN(const int64_t version, connection.Ask("SELECT version FROM schema_version"));
  if (version < known) return Fit::kOlder;
  if (version == known) return Fit::kCurrent;
  ASSIGN_OR_RETURN(const int64_t oldest_reader,
                   connection.Ask("SELECT oldest_reader FROM schema_version"));
  return oldest_reader <= known ? Fit::kReadable : Fit::kForeign;
}

absl::Status Migrate(Connection& connection, absl::Span<const Migration> migrations) {
  // These three cannot be part of a transaction; each is harmless to repeat.
  RETURN_IF_ERROR(connection.Execute("PRAGMA page_size = 8192"));
  RETURN_IF_ERROR(connection.Execute("PRAGMA journal_mode = WAL"));
  RETURN_IF_ERROR(connection.Execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON"));
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection));
  ASSIGN_OR_RETURN(const int64_t from, VersionOf(connection));
  for (const Migration& migration : migrations) {
    if (migration.to <= from) continue;
    RETURN_IF_ERROR(connection.Execute(migration.sql));
    RETURN_IF_ERROR(connection.Execute(
        Concat("DELETE FROM schema_version; INSERT INTO schema_version VALUES (", migration.to,
               ", ", migration.oldest_reader, "); PRAGMA application_id = ", kApplicationId)));
  }
  return transaction.Commit();
}

}  // namespace phobos::cache
