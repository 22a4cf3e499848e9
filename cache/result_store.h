// SPDX-License-Identifier: Apache-2.0
//
// ResultStore keeps what tunes decided, for one chip: Results by key and generation, and small
// remembered facts (what the compiler said of a text, which variants are guilty). It knows keys as
// text and Results as bytes with columns beside them; it knows neither the wire nor the compiler.
// Not the artifacts (artifact_store.h). Every call may block on the disk; all calls are safe from
// any thread.
//
// Two implementations pass the same contract suite (tests/contract): SQLite (sqlite_store.h) and
// memory (memory_store.h).
#ifndef PHOBOS_CACHE_RESULT_STORE_H_
#define PHOBOS_CACHE_RESULT_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace phobos::cache {

// One extent of a key, in the order the kernel declares.
using KeyValue = std::pair<std::string, int64_t>;

// What of a key can be asked for by itself.
struct KeyColumns {
  std::string digest;  // 64 lower-case hex digits, SHA-256 of text
  std::string text;    // canonical, one "field=value" a line
  std::string kernel;
  std::string source_digest;
  std::string chip;
  std::string card_name;
  std::vector<KeyValue> values;
};

// One timed or left-out variant, as a row.
struct VariantRow {
  int32_t index = 0;
  std::string settings;  // "BLOCK=1024 UNROLL=2"
  std::string status;    // "timed", "wrong_result", ...
  std::string reason;
  int64_t best_ns = 0;  // 0: not timed
  int64_t median_ns = 0;
  std::string artifact_digest;
  std::vector<int64_t> samples_ns;
};

// One generation: the Result's bytes, never looked into here, and what of it is queried or shown in
// lists.
struct Generation {
  int64_t number = 0;  // 1, 2, ... for a key; given by Append
  std::string result;  // serialized phobos.tuner.v1.Result
  std::string winner;  // "BLOCK=1024"
  int64_t best_ns = 0;
  std::string options;  // canonical text of the options the tune was made with
  std::string compiler_fingerprint;
  std::string driver;
  std::string card_uuid;
  std::string extents;  // "N=16 M=3", all of them
  bool contended = false;
  int64_t finished_unix_ms = 0;
  std::string asked_by;
  bool pinned = false;               // set by Pin only
  std::vector<VariantRow> variants;  // written by Append; not filled by reads
};

// Which generations List gives: current ones for which every non-empty field fits.
struct Filter {
  std::string kernel;
  std::string card_name;
  std::string source_digest_prefix;
  std::string key_digest_prefix;
  std::vector<KeyValue> values;     // each must be among the key's
  std::string other_compiler_than;  // fingerprint: only generations made by another one
};

struct Listed {
  KeyColumns key;
  Generation generation;  // result is left empty
  int32_t variants_timed = 0;
  int32_t variants_total = 0;
};

struct Page {
  std::vector<Listed> rows;  // newest first, ties by key digest
  std::string next_token;    // empty: no more. Opaque; stable when rows are added while paging
};

struct StoreStats {
  int64_t keys = 0;
  int64_t generations = 0;
  int64_t bytes = 0;  // of the database; 0 in memory
};

// Whether what a store is given lasts.
struct StoreHealth {
  bool is_remembering = true;  // what is appended now is on disk
  // Empty: all is well. Else a sentence or two for the operator: what is not remembered, or was
  // lost, why, and what to do. May tell of a damage that is mended.
  std::string problem;
};

// How many generations of a key are kept beside those that are pinned, the current one among them.
inline constexpr int kKeptGenerations = 3;

class ResultStore {
 public:
  virtual ~ResultStore() = default;

  // Adds the next generation of a key and makes it current; in one transaction drops generations
  // that are neither current, pinned, nor among the last three. Returns its number. Durable when it
  // returns: an answer that a client has seen survives a power cut, but for a store whose Health()
  // says otherwise. Errors: Internal (a variant's index twice).
  virtual absl::StatusOr<int64_t> Append(const KeyColumns& key, const Generation& generation) = 0;

  // What a launch takes: the pinned generation, else the current one; nullopt when the key has
  // none. One indexed read.
  virtual absl::StatusOr<std::optional<Generation>> Find(std::string_view key_digest) = 0;

  // A given generation. nullopt when it was never made or is dropped.
  virtual absl::StatusOr<std::optional<Generation>> FindGeneration(std::string_view key_digest,
                                                                   int64_t number) = 0;

  // `page_size` in [1, 1000]; `token` from the page before, empty for the first. InvalidArgument: a
  // token that is none.
  virtual absl::StatusOr<Page> List(const Filter& filter, int page_size,
                                    std::string_view token) = 0;

  // Small facts by (kind, name); the newest value of a name stays. `kind` is a word such as
  // "description", "variant".
  virtual absl::Status Remember(std::string_view kind, std::string_view name,
                                std::string_view value) = 0;
  virtual absl::StatusOr<std::optional<std::string>> Recall(std::string_view kind,
                                                            std::string_view name) = 0;

  virtual absl::StatusOr<StoreStats> Stats() = 0;

  virtual StoreHealth Health() = 0;
};

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_RESULT_STORE_H_
