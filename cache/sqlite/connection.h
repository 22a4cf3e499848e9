// SPDX-License-Identifier: Apache-2.0
//
// Connection and Statement: SQLite with Status, and the only place where SQLite's errors become
// ours. Knows no table. Neither is thread-safe: whoever owns a Connection guards it, and its
// Statements, with one mutex.
#ifndef PHOBOS_CACHE_SQLITE_CONNECTION_H_
#define PHOBOS_CACHE_SQLITE_CONNECTION_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace phobos::cache {

// A parameter that is bytes, not text.
struct Blob {
  std::string_view bytes;
};

// One prepared statement: start it, then step through its rows. A read holds a view of the database
// from its first row until its last one or Reset; a statement alone is a transaction of its own.
// Lives no longer than its Connection.
class Statement {
 public:
  // Starts over with these values for ?1, ?2, ...; text and blobs are copied. Internal: a value too
  // many.
  template <typename... Values>
  absl::Status Start(const Values&... values);

  // Start, then to the end; rows are not looked at. For statements that write.
  template <typename... Values>
  absl::Status Run(const Values&... values);

  // The next row: false when there is none. Errors: as Connection::Execute.
  absl::StatusOr<bool> Next();

  // Ends the read early, so that it holds no lock on the database. Done by itself at the last row.
  void Reset() { sqlite3_reset(statement_.get()); }

  // Column `i` of the present row, from 0; the text is a copy. REQUIRES: Next() gave true, and
  // nothing was started since. A value of another type is converted as SQLite does.
  int64_t Int(int i) const { return sqlite3_column_int64(statement_.get(), i); }
  std::string Text(int i) const;  // of a text or a blob

  // Run with every column of `row`'s present row for ?1, ?2, ..., types kept. REQUIRES: as many
  // parameters as columns.
  absl::Status RunWithRow(const Statement& row);

 private:
  friend class Connection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  absl::Status Bind(int i, int64_t value);
  absl::Status Bind(int i, std::string_view text);
  absl::Status Bind(int i, Blob blob);
  absl::Status Check(int result, std::string_view call) const;

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// One open database file. Waits up to 5 s for another process's lock. Closed when destroyed, after
// its last statement; the last connection to a file writes the log back and removes it.
class Connection {
 public:
  enum class Mode {
    kReadWrite,  // made when missing, with its log for this user alone (0600)
    kReadOnly,
    kImmutable,  // without locks or a log: for a folder that cannot be written to
  };
  // Nothing is read from the file yet, so a damaged one opens. Errors: as Execute.
  static absl::StatusOr<Connection> Open(const std::string& path, Mode mode);

  // Runs statements separated by ';'. Errors: Unavailable (full or read-only disk, I/O error,
  // locked for 5 s), DataLoss (no database, or a damaged one), ResourceExhausted (no memory), else
  // Internal. The message has SQLite's words.
  absl::Status Execute(std::string_view sql);
  // Compiles one statement, to be run many times. Errors: as Execute; Internal is an SQL error, and
  // that includes a table or column that is not there.
  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // The first column of the first row. NotFound: there is no row.
  absl::StatusOr<int64_t> Ask(std::string_view sql);
  absl::StatusOr<std::string> AskText(std::string_view sql);

  // Row id of the last INSERT on this connection that succeeded.
  int64_t last_insert_id() const { return sqlite3_last_insert_rowid(database_.get()); }
  // True also where kReadWrite was asked for and the file's permissions do not allow it.
  bool read_only() const { return sqlite3_db_readonly(database_.get(), "main") == 1; }
  bool in_transaction() const { return sqlite3_get_autocommit(database_.get()) == 0; }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  explicit Connection(sqlite3* database) : database_(database) {}

  std::unique_ptr<sqlite3, Close> database_;
};

// A write transaction that rolls back unless Commit succeeded. Takes the database's write lock at
// Begin, so that no later statement fails for want of it. At most one at a time on a connection,
// which must outlive it.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Connection& connection);
  ~Transaction();
  Transaction(Transaction&& other) noexcept : connection_(other.connection_) {
    other.connection_ = nullptr;
  }
  Transaction& operator=(Transaction&&) = delete;

  absl::Status Commit();

 private:
  explicit Transaction(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
};

template <typename... Values>
absl::Status Statement::Start(const Values&... values) {
  Reset();
  int i = 0;
  absl::Status status;
  const auto bind = [&](const auto& value) {
    if (++i; status.ok()) status = Bind(i, value);
  };
  (bind(values), ...);
  return status;
}

template <typename... Values>
absl::Status Statement::Run(const Values&... values) {
  absl::Status status = Start(values...);
  while (status.ok()) {
    const absl::StatusOr<bool> row = Next();
    status = row.status();
    if (!row.ok() || !*row) break;
  }
  Reset();
  return status;
}

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_SQLITE_CONNECTION_H_
