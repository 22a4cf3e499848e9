// SPDX-License-Identifier: Apache-2.0
#include "cache/sqlite/connection.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "base/concat.h"
#include "base/status_macros.h"

namespace phobos::cache {
namespace {

constexpr int kBusyTimeoutMs = 5000;

absl::StatusCode CodeOf(int result) {
  switch (result & 0xff) {  // the low byte is the kind, the rest says where
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return absl::StatusCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status ErrorFrom(int result, sqlite3* database, std::string_view call) {
  if (result == SQLITE_OK || result == SQLITE_ROW || result == SQLITE_DONE) return absl::OkStatus();
  // The connection's message is about its latest error, which need not be this one (a memory
  // shortage leaves none).
  const bool own = database != nullptr && sqlite3_errcode(database) == (result & 0xff);
  const char* path = database == nullptr ? nullptr : sqlite3_db_filename(database, "main");
  return absl::Status(
      CodeOf(result),
      Concat(call, ": ", own ? sqlite3_errmsg(database) : sqlite3_errstr(result), " (SQLite code ",
             result, ")", path == nullptr || *path == '\0' ? "" : Concat(" at ", path)));
}

// SQLite's URI form of a path; '?', '#' and '%' would mean something in it.
std::string Uri(const std::string& path, std::string_view query) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '/' || c == '.' || c == '-' || c == '_' ||
        absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      uri += c;
    } else {
      absl::StrAppendFormat(&uri, "%%%02x", static_cast<unsigned char>(c));
    }
  }
  return Concat(uri, query);
}

}  // namespace

std::string Statement::Text(int i) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), i);  // before the size, as SQLite asks
  const int size = sqlite3_column_bytes(statement_.get(), i);
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

absl::Status Statement::Check(int result, std::string_view call) const {
  return ErrorFrom(result, sqlite3_db_handle(statement_.get()), call);
}

absl::Status Statement::Bind(int i, int64_t value) {
  return Check(sqlite3_bind_int64(statement_.get(), i, value), "sqlite3_bind_int64");
}

absl::Status Statement::Bind(int i, std::string_view text) {
  const char* bytes = text.data() == nullptr ? "" : text.data();  // a null pointer would bind NULL
  return Check(
      sqlite3_bind_text64(statement_.get(), i, bytes, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8),
      "sqlite3_bind_text64");
}

absl::Status Statement::Bind(int i, Blob blob) {
  const char* bytes = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
  return Check(sqlite3_bind_blob64(statement_.get(), i, bytes, blob.bytes.size(), SQLITE_TRANSIENT),
               "sqlite3_bind_blob64");
}

absl::StatusOr<bool> Statement::Next() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  const absl::Status status =
      Check(result, "sqlite3_step");  // before Reset, which may change the message
  Reset();
  if (!status.ok()) return status;
  return false;
}

absl::Status Statement::RunWithRow(const Statement& row) {
  Reset();
  const int columns = sqlite3_column_count(row.statement_.get());
  for (int i = 0; i < columns; ++i) {
    RETURN_IF_ERROR(Check(
        sqlite3_bind_value(statement_.get(), i + 1, sqlite3_column_value(row.statement_.get(), i)),
        "sqlite3_bind_value"));
  }
  return Next().status();
}

absl::StatusOr<Connection> Connection::Open(const std::string& path, Mode mode) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE;
  flags |=
      mode == Mode::kReadWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  if (mode == Mode::kReadWrite) {
    // SQLite would make it 0644; its log and index get the mode of the file. Only a file that is
    // new: closing another descriptor of one that is open would drop SQLite's locks. What fails
    // here fails in SQLite too.
    const int made = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made >= 0) close(made);
  }
  sqlite3* database = nullptr;
  const int result = sqlite3_open_v2(
      Uri(path, mode == Mode::kImmutable ? "?immutable=1" : "").c_str(), &database, flags, nullptr);
  Connection connection(database);  // SQLite wants even a failed one closed
  RETURN_IF_ERROR(ErrorFrom(result, database, Concat("sqlite3_open_v2(", path, ")")));
  sqlite3_busy_timeout(database, kBusyTimeoutMs);
  return connection;
}

absl::Status Connection::Execute(std::string_view sql) {
  return ErrorFrom(
      sqlite3_exec(database_.get(), std::string(sql).c_str(), nullptr, nullptr, nullptr),
      database_.get(), "sqlite3_exec");
}

absl::StatusOr<Statement> Connection::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  RETURN_IF_ERROR(ErrorFrom(result, database_.get(), "sqlite3_prepare_v3"));
  return Statement(statement);
}

absl::StatusOr<std::string> Connection::AskText(std::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Next());
  if (!row) return absl::NotFoundError(Concat("no row answers ", sql));
  return statement.Text(0);
}

absl::StatusOr<int64_t> Connection::Ask(std::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Next());
  if (!row) return absl::NotFoundError(Concat("no row answers ", sql));
  return statement.Int(0);
}

absl::StatusOr<Transaction> Transaction::Begin(Connection& connection) {
  RETURN_IF_ERROR(connection.Execute("BEGIN IMMEDIATE"));
  return Transaction(connection);
}

Transaction::~Transaction() {
  // Some errors have rolled back already. A rollback that fails leaves nothing either: the log's
  // end was never written.
  if (connection_ != nullptr && connection_->in_transaction())
    connection_->Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  RETURN_IF_ERROR(connection_->Execute("COMMIT"));
  connection_ = nullptr;
  return absl::OkStatus();
}

}  // namespace phobos::cache
