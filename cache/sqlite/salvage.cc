// SPDX-License-Identifier: Apache-2.0
#include "cache/sqlite/salvage.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/concat.h"
#include "base/status_macros.h"
#include "cache/sqlite/checksum.h"

namespace phobos::cache {
namespace {

// Copies those rows of a table for which `where`, a condition on ?1, holds. Both databases have the
// same columns.
class RowCopy {
 public:
  static absl::StatusOr<RowCopy> Make(Connection& from, Connection& to, std::string_view table,
                                      std::string_view where) {
    ASSIGN_OR_RETURN(Statement read,
                     from.Prepare(Concat("SELECT * FROM ", table, " WHERE ", where)));
    ASSIGN_OR_RETURN(const int64_t columns,
                     to.Ask(Concat("SELECT count(*) FROM pragma_table_info('", table, "')")));
    std::string insert = Concat("INSERT OR IGNORE INTO ", table, " VALUES (?1");
    for (int64_t i = 2; i <= columns; ++i) Append(&insert, ", ?", i);
    ASSIGN_OR_RETURN(Statement write, to.Prepare(Concat(insert, ")")));
    return RowCopy(std::move(read), std::move(write));
  }

  // False: not every row could be read, or the new table refused one. Errors: of the disk that is
  // written to.
  absl::StatusOr<bool> Copy(int64_t id) {
    if (!read_.Start(id).ok()) return false;
    while (true) {
      const absl::StatusOr<bool> row = read_.Next();
      if (!row.ok() || !*row) return row.ok();
      const absl::Status written = write_.RunWithRow(read_);
      if (absl::IsInternal(written)) return false;  // a constraint
      RETURN_IF_ERROR(written);
    }
  }

 private:
  RowCopy(Statement read, Statement write) : read_(std::move(read)), write_(std::move(write)) {}
  Statement read_;
  Statement write_;
};

// Ids that are tried one by one where the table is not readable; a second or so. A bad page has far
// fewer.
constexpr int64_t kMostBlindSteps = 1 << 16;

// Ids of generations run from 1 to this. Two places tell it, and both may be damaged: it ends a
// search, and is never counted up to.
int64_t LargestId(Connection& from) {
  int64_t largest = 0;
  for (const char* question : {"SELECT coalesce(max(id), 0) FROM generation",
                               "SELECT seq FROM sqlite_sequence WHERE name = 'generation'"}) {
    const absl::StatusOr<int64_t> answer = from.Ask(question);
    if (answer.ok()) largest = std::max(largest, *answer);
  }
  return largest;
}

// Finds the ids of generations in order. Steps from one that is there to the next, and over what is
// not readable one by one.
class GenerationIds {
 public:
  static absl::StatusOr<GenerationIds> Make(Connection& from) {
    ASSIGN_OR_RETURN(
        Statement next,
        from.Prepare("SELECT id FROM generation NOT INDEXED WHERE id > ?1 ORDER BY id LIMIT 1"));
    return GenerationIds(std::move(next), LargestId(from));
  }

  // The next id, which may not be there where the table is not readable. Absent after the last.
  std::optional<int64_t> Next() {
    const absl::StatusOr<bool> found = Step();
    if (found.ok()) {
      if (!*found) return std::nullopt;
      id_ = next_.Int(0);
      next_.Reset();
      return id_;
    }
    if (id_ >= largest_ || blind_steps_++ == kMostBlindSteps) return std::nullopt;
    return ++id_;
  }

 private:
  absl::StatusOr<bool> Step() {
    RETURN_IF_ERROR(next_.Start(id_));
    return next_.Next();
  }

  GenerationIds(Statement next, int64_t largest) : next_(std::move(next)), largest_(largest) {}
  Statement next_;
  int64_t largest_;
  int64_t id_ = 0;
  int64_t blind_steps_ = 0;
};

// Finds the generations that are whole, by the table alone: no index is trusted.
class SoundGenerations {
 public:
  static absl::StatusOr<SoundGenerations> Make(Connection& from) {
    ASSIGN_OR_RETURN(
        Statement generation,
        from.Prepare(
            "SELECT key_id, number, best_ns, checksum, winner, options, result FROM generation "
            "WHERE id = ?1"));
    ASSIGN_OR_RETURN(Statement digest, from.Prepare("SELECT digest FROM result_key WHERE id = ?1"));
    return SoundGenerations(std::move(generation), std::move(digest));
  }

  // The id of the generation's key; NotFound when there is no such generation, DataLoss when it is
  // not whole.
  absl::StatusOr<int64_t> KeyOf(int64_t id) {
    RETURN_IF_ERROR(generation_.Start(id));
    ASSIGN_OR_RETURN(const bool found, generation_.Next());
    if (!found) return absl::NotFoundError("dropped before");
    const int64_t key_id = generation_.Int(0);
    RETURN_IF_ERROR(digest_.Start(key_id));
    ASSIGN_OR_RETURN(const bool has_key, digest_.Next());
    if (!has_key) return absl::DataLossError("no key");
    const std::string key_digest = digest_.Text(0);
    const std::string winner = generation_.Text(4);
    const std::string options = generation_.Text(5);
    const std::string result = generation_.Text(6);
    const int64_t checksum = ChecksumOf({.key_digest = key_digest,
                                         .number = generation_.Int(1),
                                         .best_ns = generation_.Int(2),
                                         .winner = winner,
                                         .options = options,
                                         .result = result});
    if (checksum != generation_.Int(3)) {
      return absl::DataLossError("not its checksum");
    }
    return key_id;
  }

 private:
  SoundGenerations(Statement generation, Statement digest)
      : generation_(std::move(generation)), digest_(std::move(digest)) {}
  Statement generation_;
  Statement digest_;
};

}  // namespace

absl::StatusOr<Salvaged> Salvage(Connection& from, Connection& to) {
  // With it SQLite also reads a file that is shorter than its header says. Nothing is written to
  // `from`.
  from.Execute("PRAGMA writable_schema = ON").IgnoreError();
  absl::StatusOr<SoundGenerations> sound = SoundGenerations::Make(from);
  absl::StatusOr<GenerationIds> ids = GenerationIds::Make(from);
  absl::StatusOr<RowCopy> key = RowCopy::Make(from, to, "result_key", "id = ?1");
  absl::StatusOr<RowCopy> values = RowCopy::Make(from, to, "key_value", "key_id = ?1");
  absl::StatusOr<RowCopy> generation = RowCopy::Make(from, to, "generation", "id = ?1");
  absl::StatusOr<RowCopy> variants = RowCopy::Make(from, to, "variant", "generation_id = ?1");
  Salvaged salvaged;
  if (!sound.ok() || !ids.ok() || !key.ok() || !values.ok() || !generation.ok() || !variants.ok())
    return salvaged;

  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(to));
  while (const std::optional<int64_t> id = ids->Next()) {
    const absl::StatusOr<int64_t> key_id = sound->KeyOf(*id);
    if (absl::IsNotFound(key_id.status())) continue;
    bool copied = key_id.ok();
    if (copied) {
      ASSIGN_OR_RETURN(copied, key->Copy(*key_id));
    }
    if (copied) {
      ASSIGN_OR_RETURN(copied, generation->Copy(*id));
    }
    if (copied) {  // as many as there are: a Result is found and whole without them
      RETURN_IF_ERROR(values->Copy(*key_id).status());
      RETURN_IF_ERROR(variants->Copy(*id).status());
    }
    ++(copied ? salvaged.generations : salvaged.lost);
  }
  RETURN_IF_ERROR(transaction.Commit());
  return salvaged;
}

}  // namespace phobos::cache
