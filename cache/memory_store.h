// SPDX-License-Identifier: Apache-2.0
//
// The ResultStore that forgets: for tests, and behind SQLite when the disk refuses. Any thread.
#ifndef PHOBOS_CACHE_MEMORY_STORE_H_
#define PHOBOS_CACHE_MEMORY_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cache/list_position.h"
#include "cache/result_store.h"

namespace phobos::cache {

std::unique_ptr<ResultStore> MakeMemoryStore();

// What MakeMemoryStore makes, with what a store that lies over another one needs.
class MemoryStore final : public ResultStore {
 public:
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
  StoreHealth Health() override { return {}; }  // of a store that nobody expects to last

  // The rest is for a store over another one (sqlite_store.cc), where a key that is here hides the
  // one below.

  // Starts a key from the generations another store has of it, numbers and pins as they are, oldest
  // first. No effect on a key that is here.
  void Load(const KeyColumns& key, std::vector<Generation> generations);
  bool Has(std::string_view key_digest);
  // What was appended here, not loaded: keys that no Load started, and generations.
  StoreStats Added();
  // The number that the key's next generation has at least: 1 when it is not here.
  int64_t NextNumber(std::string_view key_digest);
  // Forget what the store below has now: a fact; a key with all its generations.
  void Forget(std::string_view kind, std::string_view name);
  void ForgetKey(std::string_view key_digest);

  // At most `limit` rows after `position`, in order; of generations that had been appended when
  // Bound() was memory_bound.
  std::vector<Listed> ListAfter(const Filter& filter, const ListPosition& position, int limit);
  // Grows with each Append; a listing that starts now uses it.
  int64_t Bound();

 private:
  struct Kept {
    int64_t id = 0;  // order of appending; 0: loaded
    Generation generation;
    int32_t variants_timed = 0;
    int32_t variants_total = 0;
  };
  struct Entry {
    KeyColumns key;
    bool loaded = false;
    std::vector<Kept> generations;  // oldest first, never empty
  };
  // Null when the key is not here.
  const Entry* EntryOf(std::string_view key_digest) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);  // by digest of key
  std::map<std::pair<std::string, std::string>, std::string> facts_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_id_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_MEMORY_STORE_H_
