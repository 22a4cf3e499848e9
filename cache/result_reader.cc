// SPDX-License-Identifier: Apache-2.0
#include "cache/result_reader.h"

#include "absl/strings/escaping.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "cache/sqlite/checksum.h"

namespace phobos::cache {
namespace {

// What GenerationFrom reads, from column 0 on.
constexpr char kGenerationColumns[] =
    "g.number, g.pinned, g.finished_unix_ms, g.winner, g.best_ns, g.contended, g.options, "
    "g.extents, "
    "g.compiler_fingerprint, g.driver, g.card_uuid, g.asked_by";
constexpr int kAfterGeneration = 12;

Generation GenerationFrom(const Statement& row) {
  return {.number = row.Int(0),
          .winner = row.Text(3),
          .best_ns = row.Int(4),
          .options = row.Text(6),
          .compiler_fingerprint = row.Text(8),
          .driver = row.Text(9),
          .card_uuid = row.Text(10),
          .extents = row.Text(7),
          .contended = row.Int(5) != 0,
          .finished_unix_ms = row.Int(2),
          .asked_by = row.Text(11),
          .pinned = row.Int(1) != 0};
}

std::string SelectWholeGeneration(std::string_view which) {
  return Concat("SELECT ", kGenerationColumns,
                ", g.checksum, g.result FROM result_key k JOIN generation g ON g.key_id = k.id "
                "WHERE k.digest = ?1 ",
                which);
}

// The next row of a statement made with SelectWholeGeneration.
absl::StatusOr<std::optional<Generation>> NextWholeGeneration(Statement& statement,
                                                              std::string_view key_digest) {
  ASSIGN_OR_RETURN(const bool found, statement.Next());
  if (!found) return std::nullopt;
  Generation generation = GenerationFrom(statement);
  generation.result = statement.Text(kAfterGeneration + 1);
  if (ChecksumOf(key_digest, generation) != statement.Int(kAfterGeneration)) {
    statement.Reset();
    return absl::DataLossError(Concat("generation ", generation.number, " of key ", key_digest,
                                      " does not have its checksum"));
  }
  return generation;
}

absl::StatusOr<std::optional<Generation>> OnlyWholeGeneration(Statement& statement,
                                                              std::string_view key_digest) {
  absl::StatusOr<std::optional<Generation>> generation = NextWholeGeneration(statement, key_digest);
  statement.Reset();
  return generation;
}

// The query for a listing; what is not asked for is not in it, so that SQLite can choose an index.
std::string SelectListed(const Filter& filter) {
  std::string sql =
      Concat("SELECT ", kGenerationColumns,
             ", g.variants_timed, g.variants_total, k.id, k.digest, k.text, k.kernel, "
             "k.source_digest, k.chip, k.card_name "
             "FROM generation g JOIN result_key k ON k.id = g.key_id WHERE g.id <= ?1 "
             "AND g.finished_unix_ms <= ?2 AND (g.finished_unix_ms < ?2 OR k.digest > ?3) "
             "AND NOT EXISTS (SELECT 1 FROM generation n WHERE n.key_id = g.key_id AND "
             "n.number > g.number AND n.id <= ?1) ");
  if (!filter.kernel.empty()) Append(&sql, "AND k.kernel = ?4 ");
  if (!filter.card_name.empty()) Append(&sql, "AND k.card_name = ?5 ");
  if (!filter.source_digest_prefix.empty())
    Append(&sql, "AND substr(k.source_digest, 1, length(?6)) = ?6 ");
  if (!filter.key_digest_prefix.empty()) Append(&sql, "AND substr(k.digest, 1, length(?7)) = ?7 ");
  if (!filter.other_compiler_than.empty()) Append(&sql, "AND g.compiler_fingerprint <> ?8 ");
  for (const auto& [name, value] : filter.values) {
    // A name is data: it is told by its bytes in hexadecimal, never pasted as text.
    Append(&sql,
           "AND EXISTS (SELECT 1 FROM key_value v WHERE v.key_id = k.id AND v.value = ", value,
           " AND v.name = CAST(x'", absl::BytesToHexString(name), "' AS TEXT)) ");
  }
  Append(&sql, "ORDER BY g.finished_unix_ms DESC, k.digest LIMIT ?9");
  return sql;
}

}  // namespace

int64_t ChecksumOf(std::string_view key_digest, const Generation& generation) {
  return ChecksumOf({.key_digest = key_digest,
                     .number = generation.number,
                     .best_ns = generation.best_ns,
                     .winner = generation.winner,
                     .options = generation.options,
                     .result = generation.result});
}

absl::StatusOr<ResultReader> ResultReader::Open(Connection connection) {
  ASSIGN_OR_RETURN(Statement find,
                   connection.Prepare(SelectWholeGeneration("ORDER BY g.pinned DESC, g.number DESC "
                                                            "LIMIT 1")));
  ASSIGN_OR_RETURN(Statement find_generation,
                   connection.Prepare(SelectWholeGeneration("AND g.number = ?2")));
  ASSIGN_OR_RETURN(Statement find_all,
                   connection.Prepare(SelectWholeGeneration("ORDER BY g.number")));
  ASSIGN_OR_RETURN(
      Statement values,
      connection.Prepare("SELECT name, value FROM key_value WHERE key_id = ?1 ORDER BY position"));
  ASSIGN_OR_RETURN(Statement recall,
                   connection.Prepare("SELECT value FROM fact WHERE kind = ?1 AND name = ?2"));
  return ResultReader(std::move(connection), std::move(find), std::move(find_generation),
                      std::move(find_all), std::move(values), std::move(recall));
}

absl::StatusOr<std::optional<Generation>> ResultReader::Find(std::string_view key_digest) {
  RETURN_IF_ERROR(find_.Start(key_digest));
  return OnlyWholeGeneration(find_, key_digest);
}

absl::StatusOr<std::optional<Generation>> ResultReader::FindGeneration(std::string_view key_digest,
                                                                       int64_t number) {
  RETURN_IF_ERROR(find_generation_.Start(key_digest, number));
  return OnlyWholeGeneration(find_generation_, key_digest);
}

absl::StatusOr<std::vector<Generation>> ResultReader::FindAll(std::string_view key_digest) {
  RETURN_IF_ERROR(find_all_.Start(key_digest));
  std::vector<Generation> generations;
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Generation> generation,
                     NextWholeGeneration(find_all_, key_digest));
    if (!generation.has_value()) return generations;
    generations.push_back(*std::move(generation));
  }
}

absl::StatusOr<std::optional<std::string>> ResultReader::Recall(std::string_view kind,
                                                                std::string_view name) {
  RETURN_IF_ERROR(recall_.Start(kind, name));
  ASSIGN_OR_RETURN(const bool found, recall_.Next());
  if (!found) return std::nullopt;
  std::string value = recall_.Text(0);
  recall_.Reset();
  return value;
}

absl::StatusOr<std::vector<KeyValue>> ResultReader::ValuesOf(int64_t key_id) {
  RETURN_IF_ERROR(values_.Start(key_id));
  std::vector<KeyValue> values;
  while (true) {
    ASSIGN_OR_RETURN(const bool found, values_.Next());
    if (!found) return values;
    values.emplace_back(values_.Text(0), values_.Int(1));
  }
}

absl::StatusOr<std::vector<Listed>> ResultReader::ListAfter(const Filter& filter,
                                                            const ListPosition& position,
                                                            int limit) {
  ASSIGN_OR_RETURN(Statement list, connection_.Prepare(SelectListed(filter)));
  RETURN_IF_ERROR(list.Start(position.disk_bound, position.finished_unix_ms, position.key_digest,
                             filter.kernel, filter.card_name, filter.source_digest_prefix,
                             filter.key_digest_prefix, filter.other_compiler_than, limit));
  std::vector<Listed> rows;
  while (true) {
    ASSIGN_OR_RETURN(const bool found, list.Next());
    if (!found) return rows;
    int i = kAfterGeneration;
    Listed& row = rows.emplace_back();
    row.generation = GenerationFrom(list);
    row.variants_timed = static_cast<int32_t>(list.Int(i++));
    row.variants_total = static_cast<int32_t>(list.Int(i++));
    ASSIGN_OR_RETURN(row.key.values, ValuesOf(list.Int(i++)));
    row.key.digest = list.Text(i++);
    row.key.text = list.Text(i++);
    row.key.kernel = list.Text(i++);
    row.key.source_digest = list.Text(i++);
    row.key.chip = list.Text(i++);
    row.key.card_name = list.Text(i);
  }
}

absl::StatusOr<StoreStats> ResultReader::Stats() {
  StoreStats stats;
  ASSIGN_OR_RETURN(stats.keys, connection_.Ask("SELECT count(*) FROM result_key"));
  ASSIGN_OR_RETURN(stats.generations, connection_.Ask("SELECT count(*) FROM generation"));
  ASSIGN_OR_RETURN(
      stats.bytes,
      connection_.Ask(
          "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"));
  return stats;
}

absl::StatusOr<int64_t> ResultReader::NewestId() {
  return connection_.Ask("SELECT coalesce(max(id), 0) FROM generation");
}

}  // namespace phobos::cache
