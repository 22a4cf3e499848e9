// SPDX-License-Identifier: Apache-2.0
//
// ResultWriter writes Results and facts through one SQLite connection. Not thread-safe. Errors are
// SQLite's (sqlite/connection.h); after one, nothing of that call is in the database.
#ifndef PHOBOS_CACHE_RESULT_WRITER_H_
#define PHOBOS_CACHE_RESULT_WRITER_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache/result_store.h"
#include "cache/sqlite/connection.h"

namespace phobos::cache {

// What is appended. The number is a lower bound, 0 for none; `pinned` is not looked at.
struct KeyedGeneration {
  KeyColumns key;
  Generation generation;
};

class ResultWriter {
 public:
  // REQUIRES: the connection's schema is the present one (schema.h).
  static absl::StatusOr<ResultWriter> Open(Connection connection);

  // Appends all of them in order and drops what is not kept any more, in one transaction that is
  // durable on return. Returns the number that the last one got: the next of its key, but at least
  // the generation's own.
  absl::StatusOr<int64_t> Append(absl::Span<const KeyedGeneration> generations);

  // As in ResultStore; durable on return.
  absl::Status Remember(std::string_view kind, std::string_view name, std::string_view value);

 private:
  struct Statements {
    Statement add_key;
    Statement key_id;
    Statement add_value;
    Statement next_number;
    Statement add_generation;
    Statement add_variant;
    Statement drop;
    Statement remember;
  };
  ResultWriter(Connection connection, Statements statements)
      : connection_(std::move(connection)), statements_(std::move(statements)) {}

  // Row id of the key, which is added with its values when it is new.
  absl::StatusOr<int64_t> IdOfKey(const KeyColumns& key);
  // Both REQUIRE a transaction. The number that the generation got.
  absl::StatusOr<int64_t> AppendOne(const KeyColumns& key, Generation generation);

  Connection connection_;  // outlives the statements on it
  Statements statements_;
};

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_RESULT_WRITER_H_
