// SPDX-License-Identifier: Apache-2.0
//
// Chips holds the stores of every chip (one folder each under the cache) and is the engine's one
// way to keep a Result: Keep turns it into a generation with its columns, Restore turns one back.
// Any thread.
#ifndef PHOBOS_DAEMON_ENGINE_CHIPS_H_
#define PHOBOS_DAEMON_ENGINE_CHIPS_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/artifact_store.h"
#include "cache/result_store.h"
#include "proto/phobos/tuner/v1/admin.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::engine {

struct Chip {
  std::string name;
  std::unique_ptr<cache::ResultStore> results;
  cache::ArtifactStore artifacts;
};

class Chips {
 public:
  using OpenResults =
      std::function<absl::StatusOr<std::unique_ptr<cache::ResultStore>>(const std::string& path)>;

  // Opens <cache_dir>/<chip>/autotune/results.db and <cache_dir>/<chip>/kernels for the chips
  // named, which are made, and for every other chip that has a database there. `fingerprint` is the
  // present compiler's.
  static absl::StatusOr<std::unique_ptr<Chips>> Open(const std::string& cache_dir,
                                                     const std::vector<std::string>& chips,
                                                     const OpenResults& open,
                                                     std::string fingerprint);

  // Null: no such chip. Constant over its life.
  Chip* Find(const std::string& name);
  std::vector<Chip*> All();

  // Stores `result` as the next generation of `key` and sets its generation. Errors as
  // ResultStore::Append.
  absl::Status Keep(Chip& chip, const cache::KeyColumns& key, tuner::v1::Result& result);

  // What a launch takes: the pinned or current generation. Null: the key has none. DataLoss: not
  // readable as a Result.
  absl::StatusOr<std::shared_ptr<const tuner::v1::Result>> Current(Chip& chip,
                                                                   const std::string& key_digest);

  // The Result that a stored generation holds, with its number and pin, and whether it is stale.
  // DataLoss: not readable as a Result.
  absl::StatusOr<tuner::v1::Result> Restore(const cache::Generation& generation) const;

  // The present compiler's: what was timed by another is stale.
  const std::string& fingerprint() const { return fingerprint_; }

  // Grows with every generation that is kept: answers made at an older count may be stale.
  int64_t changes() const { return changes_.load(std::memory_order_acquire); }

  void FillStatus(tuner::v1::GetStatusResponse& status);

 private:
  explicit Chips(std::string fingerprint) : fingerprint_(std::move(fingerprint)) {}
  absl::Status Add(const std::string& cache_dir, const std::string& name, const OpenResults& open);

  const std::string fingerprint_;
  std::map<std::string, Chip> chips_;  // constant after Open
  std::atomic<int64_t> changes_{0};
};

// "timed", "wrong_result": a status as it is stored and shown; a number where the name is not
// known.
std::string StatusText(tuner::v1::VariantStatus status);

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_CHIPS_H_
