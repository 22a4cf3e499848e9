// SPDX-License-Identifier: Apache-2.0
#include "cache/sqlite/database.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "cache/sqlite/connection.h"
#include "cache/sqlite/salvage.h"

namespace phobos::cache {
namespace {

namespace fs = std::filesystem;

// A repair makes the new database under this name; when the old one is gone and this is there, only
// a rename is missing.
std::string UnfinishedRepair(const std::string& path) { return path + ".new"; }

absl::Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(Concat("rename ", from, " to ", to, ": ", error.message()));
}

void RemoveDatabase(const std::string& path) {
  std::error_code ignored;  // what cannot be removed shows when the database is made
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(path + suffix, ignored);
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

int LatestOf(absl::Span<const Migration> migrations) { return migrations.back().to; }

absl::Status CheckEveryPage(Connection& connection) {
  ASSIGN_OR_RETURN(const std::string verdict, connection.AskText("PRAGMA quick_check(1)"));
  return verdict == "ok" ? absl::OkStatus() : absl::DataLossError(Concat("quick_check: ", verdict));
}

// Opens for everything. DataLoss: damaged. Unavailable: not to be written, or (FailedPrecondition)
// not ours to write.
absl::StatusOr<Database> OpenWhole(const std::string& path,
                                   absl::Span<const Migration> migrations) {
  ASSIGN_OR_RETURN(Connection writing, Connection::Open(path, Connection::Mode::kReadWrite));
  ASSIGN_OR_RETURN(const Fit fit, FitOf(writing, LatestOf(migrations)));
  if (fit == Fit::kReadable || fit == Fit::kForeign) {
    return absl::FailedPreconditionError(
        "it was made by a newer or another program; move it away to start a new one");
  }
  if (writing.read_only())
    return absl::UnavailableError("it is read-only; make the file and its folder writable");
  RETURN_IF_ERROR(CheckEveryPage(writing));
  RETURN_IF_ERROR(Migrate(writing, migrations));
  ASSIGN_OR_RETURN(Connection reading, Connection::Open(path, Connection::Mode::kReadOnly));
  return Database{.reading = std::move(reading), .writing = std::move(writing)};
}

// Opens for reading alone, as far as that goes.
std::optional<Connection> OpenReading(const std::string& path,
                                      absl::Span<const Migration> migrations) {
  for (const Connection::Mode mode : {Connection::Mode::kReadOnly, Connection::Mode::kImmutable}) {
    absl::StatusOr<Connection> connection = Connection::Open(path, mode);
    if (!connection.ok()) continue;
    const absl::StatusOr<Fit> fit = FitOf(*connection, LatestOf(migrations));
    if (fit.ok() && (*fit == Fit::kCurrent || *fit == Fit::kReadable))
      return *std::move(connection);
  }
  return std::nullopt;
}

Database OpenWithoutWriting(const std::string& path, absl::Span<const Migration> migrations,
                            const absl::Status& why) {
  Database database = {.reading = OpenReading(path, migrations)};
  database.problem = Concat("New Results are kept in memory only, until this daemon ends, because ",
                            path, " cannot be written (", why.message(), "). Results in it are ",
                            database.reading.has_value() ? "still" : "not",
                            " used. Remove the cause, then restart the daemon.");
  return database;
}

std::string FreeDamagedName(const std::string& path) {
  const std::string name = Concat(path, ".damaged-", absl::ToUnixSeconds(absl::Now()));
  std::string free = name;
  for (int i = 2; Exists(free) || Exists(free + "-wal"); ++i) free = Concat(name, "-", i);
  return free;
}

// Takes the log of a database that was renamed to `aside` away from `path`, with the log's index:
// SQLite would replay it into the next database of that name.
absl::Status PutLogAside(const std::string& path, const std::string& aside) {
  if (Exists(path + "-wal")) RETURN_IF_ERROR(Rename(path + "-wal", aside + "-wal"));
  std::error_code error;
  fs::remove(path + "-shm", error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(Concat("remove ", path, "-shm: ", error.message()));
}

absl::Status SyncFolder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, Concat("open ", folder));
  const int result = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  return result == 0 ? absl::OkStatus() : absl::ErrnoToStatus(error, Concat("fsync ", folder));
}

// Makes the new database beside the old one and puts it in its place. Returns what to tell the
// operator.
absl::StatusOr<std::string> Replace(const std::string& path,
                                    absl::Span<const Migration> migrations) {
  const std::string fresh = UnfinishedRepair(path);
  RemoveDatabase(fresh);
  Salvaged salvaged;
  {
    ASSIGN_OR_RETURN(Connection to, Connection::Open(fresh, Connection::Mode::kReadWrite));
    RETURN_IF_ERROR(Migrate(to, migrations));
    ASSIGN_OR_RETURN(Connection from, Connection::Open(path, Connection::Mode::kReadOnly));
    ASSIGN_OR_RETURN(salvaged, Salvage(from, to));
    RETURN_IF_ERROR(to.Execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  }
  const std::string aside = FreeDamagedName(path);
  RETURN_IF_ERROR(Rename(path, aside));
  RETURN_IF_ERROR(PutLogAside(path, aside));
  RETURN_IF_ERROR(Rename(fresh, path));
  RETURN_IF_ERROR(SyncFolder(fs::path(path).parent_path().string()));
  return Concat("The database of Results was damaged. It is kept as ", aside, "; ",
                salvaged.generations, " Results were read back and up to ", salvaged.lost,
                " were not, which the next tunes make again. Nothing needs to be done; "
                "remove that file when it "
                "is of no more use.");
}

}  // namespace

absl::StatusOr<Database> OpenDatabase(const std::string& path,
                                      absl::Span<const Migration> migrations) {
  const std::string folder = fs::path(path).parent_path().string();
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return absl::InvalidArgumentError(
        Concat("\"", folder, "\" is no folder; make it before the store is opened"));
  }
  if (!Exists(path) && Exists(UnfinishedRepair(path))) {
    RETURN_IF_ERROR(PutLogAside(path, FreeDamagedName(path)));
    RETURN_IF_ERROR(Rename(UnfinishedRepair(path), path));
  }
  absl::StatusOr<Database> database = OpenWhole(path, migrations);
  if (database.ok() || absl::IsResourceExhausted(database.status())) return database;
  return absl::IsDataLoss(database.status())
             ? RepairDatabase(path, migrations)
             : OpenWithoutWriting(path, migrations, database.status());
}

absl::StatusOr<Database> RepairDatabase(const std::string& path,
                                        absl::Span<const Migration> migrations) {
  const absl::StatusOr<std::string> note = Replace(path, migrations);
  if (!note.ok()) return OpenWithoutWriting(path, migrations, note.status());
  absl::StatusOr<Database> database = OpenWhole(path, migrations);
  if (!database.ok()) return OpenWithoutWriting(path, migrations, database.status());
  database->problem = *note;
  return database;
}

}  // namespace phobos::cache
