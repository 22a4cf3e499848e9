// SPDX-License-Identifier: Apache-2.0
#include "cache/result_writer.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "cache/result_reader.h"

namespace phobos::cache {

absl::StatusOr<ResultWriter> ResultWriter::Open(Connection connection) {
  ASSIGN_OR_RETURN(
      Statement add_key,
      connection.Prepare(
          "INSERT INTO result_key (digest, text, kernel, source_digest, chip, card_name) "
          "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
  ASSIGN_OR_RETURN(Statement key_id,
                   connection.Prepare("SELECT id FROM result_key WHERE digest = ?1"));
  ASSIGN_OR_RETURN(Statement add_value,
                   connection.Prepare("INSERT INTO key_value (key_id, position, name, value) "
                                      "VALUES (?1, ?2, ?3, ?4)"));
  ASSIGN_OR_RETURN(
      Statement next_number,
      connection.Prepare("SELECT coalesce(max(number), 0) + 1 FROM generation WHERE key_id = ?1"));
  ASSIGN_OR_RETURN(Statement add_generation,
                   connection.Prepare("INSERT INTO generation (key_id, number, pinned, "
                                      "finished_unix_ms, winner, best_ns, contended, "
                                      "variants_timed, variants_total, options, extents, "
                                      "compiler_fingerprint, driver, card_uuid, asked_by, "
                                      "checksum, result) VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, "
                                      "?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"));
  ASSIGN_OR_RETURN(Statement add_variant,
                   connection.Prepare(
                       "INSERT INTO variant (generation_id, position, settings, status, reason, "
                       "best_ns, median_ns, "
                       "artifact_digest, samples_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"));
  ASSIGN_OR_RETURN(Statement drop,
                   connection.Prepare(
                       "DELETE FROM generation WHERE key_id = ?1 AND number <= ?2 AND pinned = 0"));
  ASSIGN_OR_RETURN(
      Statement remember,
      connection.Prepare("INSERT INTO fact (kind, name, value) VALUES (?1, ?2, ?3) "
                         "ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value"));
  return ResultWriter(std::move(connection), {.add_key = std::move(add_key),
                                              .key_id = std::move(key_id),
                                              .add_value = std::move(add_value),
                                              .next_number = std::move(next_number),
                                              .add_generation = std::move(add_generation),
                                              .add_variant = std::move(add_variant),
                                              .drop = std::move(drop),
                                              .remember = std::move(remember)});
}

absl::StatusOr<int64_t> ResultWriter::Append(absl::Span<const KeyedGeneration> generations) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  int64_t number = 0;
  for (const auto& [key, generation] : generations) {
    ASSIGN_OR_RETURN(number, AppendOne(key, generation));
  }
  RETURN_IF_ERROR(transaction.Commit());
  return number;
}

absl::StatusOr<int64_t> ResultWriter::IdOfKey(const KeyColumns& key) {
  RETURN_IF_ERROR(statements_.key_id.Start(key.digest));
  ASSIGN_OR_RETURN(const bool known, statements_.key_id.Next());
  if (known) {
    const int64_t id = statements_.key_id.Int(0);
    statements_.key_id.Reset();
    return id;
  }
  RETURN_IF_ERROR(statements_.add_key.Run(key.digest, key.text, key.kernel, key.source_digest,
                                          key.chip, key.card_name));
  const int64_t id = connection_.last_insert_id();
  int64_t position = 0;
  for (const auto& [name, value] : key.values) {
    RETURN_IF_ERROR(statements_.add_value.Run(id, position++, name, value));
  }
  return id;
}

absl::StatusOr<int64_t> ResultWriter::AppendOne(const KeyColumns& key, Generation generation) {
  ASSIGN_OR_RETURN(const int64_t key_id, IdOfKey(key));
  RETURN_IF_ERROR(statements_.next_number.Start(key_id));
  RETURN_IF_ERROR(statements_.next_number.Next().status());  // an aggregate always has a row
  generation.number = std::max(generation.number, statements_.next_number.Int(0));
  statements_.next_number.Reset();

  const auto timed = absl::c_count_if(
      generation.variants, [](const VariantRow& variant) { return variant.best_ns > 0; });
  RETURN_IF_ERROR(statements_.add_generation.Run(
      key_id, generation.number, generation.finished_unix_ms, generation.winner, generation.best_ns,
      generation.contended, timed, generation.variants.size(), generation.options,
      generation.extents, generation.compiler_fingerprint, generation.driver, generation.card_uuid,
      generation.asked_by, ChecksumOf(key.digest, generation), Blob{generation.result}));
  const int64_t generation_id = connection_.last_insert_id();
  for (const VariantRow& variant : generation.variants) {
    RETURN_IF_ERROR(statements_.add_variant.Run(generation_id, variant.index, variant.settings,
                                                variant.status, variant.reason, variant.best_ns,
                                                variant.median_ns, variant.artifact_digest,
                                                absl::StrJoin(variant.samples_ns, " ")));
  }
  RETURN_IF_ERROR(statements_.drop.Run(key_id, generation.number - kKeptGenerations));
  return generation.number;
}

absl::Status ResultWriter::Remember(std::string_view kind, std::string_view name,
                                    std::string_view value) {
  return statements_.remember.Run(kind, name, Blob{value});  // a statement alone is a transaction
}

}  // namespace phobos::cache
