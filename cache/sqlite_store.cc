// SPDX-License-Identifier: Apache-2.0
#include "cache/sqlite_store.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "cache/list_position.h"
#include "cache/memory_store.h"
#include "cache/result_reader.h"
#include "cache/result_writer.h"
#include "cache/sqlite/database.h"

namespace phobos::cache {
namespace {

// Generations that wait for the disk. Past it the oldest is served from memory until the daemon
// ends, but not saved.
constexpr size_t kMostUnsaved = 1000;

struct Opened {
  std::optional<ResultReader> reader;
  std::optional<ResultWriter> writer;
  std::string problem;
};

// Prepares every statement. Internal: a table of ours is not there or not as it should be.
absl::StatusOr<Opened> Prepare(Database database) {
  Opened opened = {.problem = std::move(database.problem)};
  if (database.reading.has_value()) {
    ASSIGN_OR_RETURN(opened.reader, ResultReader::Open(*std::move(database.reading)));
  }
  if (database.writing.has_value()) {
    ASSIGN_OR_RETURN(opened.writer, ResultWriter::Open(*std::move(database.writing)));
  }
  return opened;
}

absl::StatusOr<Opened> PrepareRepaired(const std::string& path) {
  ASSIGN_OR_RETURN(Database database, RepairDatabase(path));
  return Prepare(std::move(database));
}

// A database, and over it a memory store for what the disk refused: a key that is in memory hides
// the one on disk.
class SqliteStore final : public ResultStore {
 public:
  SqliteStore(std::string path, Opened opened)
      : path_(std::move(path)),
        writer_(std::move(opened.writer)),
        reader_(std::move(opened.reader)),
        note_(opened.problem),
        health_{writer_.has_value(), opened.problem} {}

  absl::StatusOr<int64_t> Append(const KeyColumns& key, const Generation& generation) override;
  absl::StatusOr<std::optional<Generation>> Find(std::string_view key_digest) override;
  absl::StatusOr<std::optional<Generation>> FindGeneration(std::string_view key_digest,
                                                           int64_t number) override;
  absl::StatusOr<Page> List(const Filter& filter, int page_size, std::string_view token) override;
  absl::Status Remember(std::string_view kind, std::string_view name,
                        std::string_view value) override;
  absl::StatusOr<std::optional<std::string>> Recall(std::string_view kind,
                                                    std::string_view name) override;
  absl::StatusOr<StoreStats> Stats() override;
  StoreHealth Health() override;

 private:
  // Asks the reader; a database that turns out to be damaged is repaired and asked again. Without a
  // readable database, or at a place that stays damaged, the answer is an empty value.
  template <typename Ask>
  std::invoke_result_t<Ask, ResultReader&> Read(const Ask& ask);
  void RepairIfStill(int64_t opening) ABSL_LOCKS_EXCLUDED(write_mutex_, read_mutex_);
  void Repair() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_) ABSL_LOCKS_EXCLUDED(read_mutex_);

  // Saves `unsaved_`, all of it or nothing.
  absl::StatusOr<int64_t> Save() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::StatusOr<int64_t> KeepInMemory(const KeyColumns& key, const Generation& generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void SetProblem(const absl::Status& refusal);

  const std::string path_;
  MemoryStore memory_;

  absl::Mutex write_mutex_ ABSL_ACQUIRED_BEFORE(read_mutex_);
  std::optional<ResultWriter> writer_ ABSL_GUARDED_BY(write_mutex_);
  std::vector<KeyedGeneration> unsaved_ ABSL_GUARDED_BY(write_mutex_);

  absl::Mutex read_mutex_;
  std::optional<ResultReader> reader_ ABSL_GUARDED_BY(read_mutex_);
  int64_t opening_ ABSL_GUARDED_BY(read_mutex_) = 0;  // grows with each repair

  absl::Mutex problem_mutex_;
  std::string note_ ABSL_GUARDED_BY(problem_mutex_);    // of the opening: lasts
  StoreHealth health_ ABSL_GUARDED_BY(problem_mutex_);  // with the note, or what the disk says now
};

template <typename Ask>
std::invoke_result_t<Ask, ResultReader&> SqliteStore::Read(const Ask& ask) {
  using Answer = std::invoke_result_t<Ask, ResultReader&>;
  const Answer nothing = typename Answer::value_type();
  int64_t opening = 0;
  {
    const absl::MutexLock lock(&read_mutex_);
    if (!reader_.has_value()) return nothing;
    Answer answer = ask(*reader_);
    if (!absl::IsDataLoss(answer.status())) return answer;
    opening = opening_;
  }
  RepairIfStill(opening);
  const absl::MutexLock lock(&read_mutex_);
  if (!reader_.has_value()) return nothing;
  Answer answer = ask(*reader_);
  return absl::IsDataLoss(answer.status()) ? nothing : answer;
}

void SqliteStore::RepairIfStill(int64_t opening) {
  const absl::MutexLock lock(&write_mutex_);
  {
    const absl::MutexLock read_lock(&read_mutex_);
    if (opening_ != opening) return;  // another thread has done it
  }
  if (writer_.has_value()) Repair();  // without a writer it was tried already, or must not be
}

void SqliteStore::Repair() {
  const absl::MutexLock lock(&read_mutex_);
  reader_.reset();
  writer_.reset();
  ++opening_;
  absl::StatusOr<Opened> repaired = PrepareRepaired(path_);
  const absl::MutexLock problem_lock(&problem_mutex_);
  if (!repaired.ok()) {
    note_ = Concat("Results are kept in memory only, until this daemon ends: ",
                   repaired.status().message());
  } else {
    reader_ = std::move(repaired->reader);
    writer_ = std::move(repaired->writer);
    note_ = std::move(repaired->problem);
  }
  health_ = {writer_.has_value(), note_};
}

absl::StatusOr<int64_t> SqliteStore::Save() {
  if (!writer_.has_value()) return absl::UnavailableError("no database to write to");
  absl::StatusOr<int64_t> number = writer_->Append(unsaved_);
  if (!absl::IsDataLoss(number.status())) return number;
  Repair();
  if (!writer_.has_value()) return absl::UnavailableError("no database to write to");
  number = writer_->Append(unsaved_);
  return absl::IsDataLoss(number.status()) ? absl::UnavailableError(number.status().message())
                                           : number;
}

absl::StatusOr<int64_t> SqliteStore::Append(const KeyColumns& key, const Generation& generation) {
  const absl::MutexLock lock(&write_mutex_);
  if (!writer_.has_value()) return KeepInMemory(key, generation);
  unsaved_.push_back({key, generation});
  // The writer gives a higher one where the disk has more.
  unsaved_.back().generation.number = memory_.NextNumber(key.digest);
  absl::StatusOr<int64_t> number = Save();
  if (number.ok()) {
    // After the commit, so that a key is never in neither place. What was not saved stays in
    // memory: keys past kMostUnsaved, and facts.
    for (const KeyedGeneration& saved : unsaved_) memory_.ForgetKey(saved.key.digest);
    unsaved_.clear();
    SetProblem(absl::OkStatus());
    return number;
  }
  if (!absl::IsUnavailable(number.status())) {
    unsaved_.pop_back();
    return number;
  }
  if (writer_.has_value()) SetProblem(number.status());  // else a repair failed, and said more
  ASSIGN_OR_RETURN(unsaved_.back().generation.number, KeepInMemory(key, generation));
  if (unsaved_.size() > kMostUnsaved) unsaved_.erase(unsaved_.begin());
  return unsaved_.back().generation.number;
}

absl::StatusOr<int64_t> SqliteStore::KeepInMemory(const KeyColumns& key,
                                                  const Generation& generation) {
  if (!memory_.Has(key.digest)) {
    absl::StatusOr<std::vector<Generation>> known = std::vector<Generation>();
    {
      const absl::MutexLock lock(&read_mutex_);
      if (reader_.has_value()) known = reader_->FindAll(key.digest);
    }
    if (known.ok()) memory_.Load(key, *std::move(known));
  }
  return memory_.Append(key, generation);
}

absl::StatusOr<std::optional<Generation>> SqliteStore::Find(std::string_view key_digest) {
  ASSIGN_OR_RETURN(std::optional<Generation> kept, memory_.Find(key_digest));
  if (kept.has_value()) return kept;
  return Read([&](ResultReader& reader) { return reader.Find(key_digest); });
}

absl::StatusOr<std::optional<Generation>> SqliteStore::FindGeneration(std::string_view key_digest,
                                                                      int64_t number) {
  ASSIGN_OR_RETURN(std::optional<Generation> kept, memory_.FindGeneration(key_digest, number));
  if (kept.has_value()) return kept;
  return Read([&](ResultReader& reader) { return reader.FindGeneration(key_digest, number); });
}

absl::StatusOr<Page> SqliteStore::List(const Filter& filter, int page_size,
                                       std::string_view token) {
  RETURN_IF_ERROR(CheckPageSize(page_size));
  ListPosition position;
  if (token.empty()) {
    position.memory_bound = memory_.Bound();
    ASSIGN_OR_RETURN(position.disk_bound,
                     Read([](ResultReader& reader) { return reader.NewestId(); }));
  } else {
    ASSIGN_OR_RETURN(position, PositionFrom(token));
  }
  std::vector<Listed> in_memory = memory_.ListAfter(filter, position, page_size + 1);
  ASSIGN_OR_RETURN(std::vector<Listed> on_disk, Read([&](ResultReader& reader) {
                     return reader.ListAfter(filter, position, page_size + 1);
                   }));
  // Merged in order. A hidden row counts for the page's size, so that the position never passes a
  // row that was not read.
  Page page;
  size_t m = 0;
  size_t d = 0;
  while (m + d < static_cast<size_t>(page_size) && (m < in_memory.size() || d < on_disk.size())) {
    const bool from_memory =
        d == on_disk.size() || (m < in_memory.size() && !IsListedBefore(on_disk[d], in_memory[m]));
    Listed& row = from_memory ? in_memory[m++] : on_disk[d++];
    position.finished_unix_ms = row.generation.finished_unix_ms;
    position.key_digest = row.key.digest;
    if (from_memory || !memory_.Has(row.key.digest)) page.rows.push_back(std::move(row));
  }
  if (m < in_memory.size() || d < on_disk.size()) page.next_token = TokenFrom(position);
  return page;
}

absl::Status SqliteStore::Remember(std::string_view kind, std::string_view name,
                                   std::string_view value) {
  const absl::MutexLock lock(&write_mutex_);
  if (!writer_.has_value()) return memory_.Remember(kind, name, value);
  absl::Status status = writer_->Remember(kind, name, value);
  if (absl::IsDataLoss(status)) {
    Repair();
    status = writer_.has_value() ? writer_->Remember(kind, name, value)
                                 : absl::UnavailableError("no database");
  }
  if (absl::IsUnavailable(status)) {
    if (writer_.has_value()) SetProblem(status);
    return memory_.Remember(kind, name, value);
  }
  if (status.ok()) memory_.Forget(kind, name);  // an older value that the disk had refused
  return status;
}

absl::StatusOr<std::optional<std::string>> SqliteStore::Recall(std::string_view kind,
                                                               std::string_view name) {
  ASSIGN_OR_RETURN(std::optional<std::string> kept, memory_.Recall(kind, name));
  if (kept.has_value()) return kept;
  return Read([&](ResultReader& reader) { return reader.Recall(kind, name); });
}

absl::StatusOr<StoreStats> SqliteStore::Stats() {
  ASSIGN_OR_RETURN(StoreStats stats, Read([](ResultReader& reader) { return reader.Stats(); }));
  const StoreStats added = memory_.Added();
  stats.keys += added.keys;
  stats.generations += added.generations;
  return stats;
}

StoreHealth SqliteStore::Health() {
  const absl::MutexLock lock(&problem_mutex_);
  return health_;
}

void SqliteStore::SetProblem(const absl::Status& refusal) {
  const absl::MutexLock lock(&problem_mutex_);
  health_ = {true, note_};
  if (refusal.ok()) return;
  health_ = {false,
             Concat("New Results are kept in memory only, because ", path_, " cannot be written (",
                    refusal.message(), "). Make room there; the next tune then saves them.")};
}

}  // namespace

absl::StatusOr<std::unique_ptr<ResultStore>> OpenSqliteStore(const std::string& path) {
  ASSIGN_OR_RETURN(Database database, OpenDatabase(path));
  const bool writable = database.writing.has_value();
  absl::StatusOr<Opened> opened = Prepare(std::move(database));
  // No program of ours takes a table away: that too is damage.
  if (writable && absl::IsInternal(opened.status())) opened = PrepareRepaired(path);
  RETURN_IF_ERROR(opened.status());
  return std::make_unique<SqliteStore>(path, *std::move(opened));
}

}  // namespace phobos::cache
