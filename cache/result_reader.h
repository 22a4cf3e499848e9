// SPDX-License-Identifier: Apache-2.0
//
// ResultReader asks one SQLite connection what the ResultStore must know. Not thread-safe. Every
// call may give DataLoss: the database is damaged at that place (its structure, or a row's
// checksum), and sqlite_store.cc decides what then.
#ifndef PHOBOS_CACHE_RESULT_READER_H_
#define PHOBOS_CACHE_RESULT_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/list_position.h"
#include "cache/result_store.h"
#include "cache/sqlite/connection.h"

namespace phobos::cache {

// The checksum that a stored generation of this key has.
int64_t ChecksumOf(std::string_view key_digest, const Generation& generation);

class ResultReader {
 public:
  // REQUIRES: the connection's schema may be read by this program (schema.h).
  static absl::StatusOr<ResultReader> Open(Connection connection);

  // As in ResultStore.
  absl::StatusOr<std::optional<Generation>> Find(std::string_view key_digest);
  absl::StatusOr<std::optional<Generation>> FindGeneration(std::string_view key_digest,
                                                           int64_t number);
  absl::StatusOr<std::optional<std::string>> Recall(std::string_view kind, std::string_view name);
  absl::StatusOr<StoreStats> Stats();

  // Every generation of a key, oldest first.
  absl::StatusOr<std::vector<Generation>> FindAll(std::string_view key_digest);

  // At most `limit` rows after `position`, in order.
  absl::StatusOr<std::vector<Listed>> ListAfter(const Filter& filter, const ListPosition& position,
                                                int limit);

  // Id of the newest generation; 0 when there is none.
  absl::StatusOr<int64_t> NewestId();

 private:
  // The statements are compiled once, in Open: a lookup must not pay for it.
  ResultReader(Connection connection, Statement find, Statement find_generation, Statement find_all,
               Statement values, Statement recall)
      : connection_(std::move(connection)),
        find_(std::move(find)),
        find_generation_(std::move(find_generation)),
        find_all_(std::move(find_all)),
        values_(std::move(values)),
        recall_(std::move(recall)) {}

  // The extents of a key by its row id, in the order declared.
  absl::StatusOr<std::vector<KeyValue>> ValuesOf(int64_t key_id);

  Connection connection_;  // outlives the statements on it
  Statement find_;
  Statement find_generation_;
  Statement find_all_;
  Statement values_;
  Statement recall_;
};

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_RESULT_READER_H_
