// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/chips.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "daemon/engine/key.h"

namespace phobos::engine {
namespace {

namespace fs = std::filesystem;

std::string DatabasePath(const std::string& cache_dir, const std::string& chip) {
  return absl::StrCat(cache_dir, "/", chip, "/autotune/results.db");
}

// The folder of a database, for this user alone: it has the texts of sources. Others may ask the
// daemon for Results.
absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (!error && mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    error = std::error_code(errno, std::generic_category());
  }
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat("mkdir ", path));
}

cache::VariantRow RowOf(const tuner::v1::VariantResult& variant) {
  cache::VariantRow row;
  row.index = variant.index();
  row.settings = SettingsText(variant.settings());
  row.status = StatusText(variant.status());
  row.reason = variant.reason();
  row.best_ns = variant.best_ns();
  row.median_ns = variant.median_ns();
  row.artifact_digest = variant.artifact_digest();
  row.samples_ns.assign(variant.samples_ns().begin(), variant.samples_ns().end());
  return row;
}

cache::Generation GenerationOf(const tuner::v1::Result& result) {
  cache::Generation generation;
  generation.result = result.SerializeAsString();
  generation.winner = SettingsText(result.winner_settings());
  generation.best_ns = result.best_ns();
  generation.options = OptionsText(result.options());
  generation.compiler_fingerprint = result.compiler_fingerprint();
  generation.driver = result.device().driver();
  generation.card_uuid = result.device().uuid();
  generation.extents = ExtentsText(result.extents());
  generation.contended = result.contended();
  generation.finished_unix_ms = result.finished_unix_ms();
  generation.asked_by = result.asked_by();
  for (const tuner::v1::VariantResult& variant : result.variants()) {
    generation.variants.push_back(RowOf(variant));
  }
  return generation;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Chips>> Chips::Open(const std::string& cache_dir,
                                                   const std::vector<std::string>& chips,
                                                   const OpenResults& open,
                                                   std::string fingerprint) {
  std::unique_ptr<Chips> opened(new Chips(std::move(fingerprint)));
  for (const std::string& chip : chips) {
    RETURN_IF_ERROR(MakeFolder(absl::StrCat(cache_dir, "/", chip, "/autotune")));
    RETURN_IF_ERROR(opened->Add(cache_dir, chip, open));
  }
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(cache_dir, error)) {
    const std::string chip = entry.path().filename();
    if (!fs::exists(DatabasePath(cache_dir, chip), error)) continue;
    RETURN_IF_ERROR(opened->Add(cache_dir, chip, open));
  }
  return opened;
}

absl::Status Chips::Add(const std::string& cache_dir, const std::string& name,
                        const OpenResults& open) {
  if (chips_.contains(name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::unique_ptr<cache::ResultStore> results,
                   open(DatabasePath(cache_dir, name)));
  ASSIGN_OR_RETURN(cache::ArtifactStore artifacts,
                   cache::ArtifactStore::Open(absl::StrCat(cache_dir, "/", name, "/kernels")));
  chips_.emplace(name, Chip{name, std::move(results), std::move(artifacts)});
  return absl::OkStatus();
}

Chip* Chips::Find(const std::string& name) {
  const auto found = chips_.find(name);
  return found == chips_.end() ? nullptr : &found->second;
}

std::vector<Chip*> Chips::All() {
  std::vector<Chip*> all;
  for (auto& [name, chip] : chips_) all.push_back(&chip);
  return all;
}

absl::Status Chips::Keep(Chip& chip, const cache::KeyColumns& key, tuner::v1::Result& result) {
  ASSIGN_OR_RETURN(const int64_t number, chip.results->Append(key, GenerationOf(result)));
  result.set_generation(number);
  changes_.fetch_add(1, std::memory_order_release);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const tuner::v1::Result>> Chips::Current(
    Chip& chip, const std::string& key_digest) {
  ASSIGN_OR_RETURN(const std::optional<cache::Generation> current, chip.results->Find(key_digest));
  if (!current.has_value()) return nullptr;
  ASSIGN_OR_RETURN(tuner::v1::Result result, Restore(*current));
  return std::make_shared<const tuner::v1::Result>(std::move(result));
}

void Chips::FillStatus(tuner::v1::GetStatusResponse& status) {
  for (auto& [name, chip] : chips_) {
    tuner::v1::CacheStatus& cache = *status.add_caches();
    cache.set_chip(name);
    if (const absl::StatusOr<cache::StoreStats> stats = chip.results->Stats(); stats.ok()) {
      cache.set_results(stats->keys);
      cache.set_database_bytes(stats->bytes);
    } else {
      status.add_problems(absl::StrCat(name, ": ", std::string(stats.status().message())));
    }
    if (const absl::StatusOr<cache::ArtifactStats> stats = chip.artifacts.Stats(); stats.ok()) {
      cache.set_artifacts(stats->files);
      cache.set_artifact_bytes(stats->bytes);
    } else {
      status.add_problems(absl::StrCat(name, ": ", std::string(stats.status().message())));
    }
    const cache::StoreHealth health = chip.results->Health();
    cache.set_is_remembering(health.is_remembering);
    if (!health.problem.empty()) status.add_problems(absl::StrCat(name, ": ", health.problem));
  }
}

absl::StatusOr<tuner::v1::Result> Chips::Restore(const cache::Generation& generation) const {
  tuner::v1::Result result;
  if (!result.ParseFromString(generation.result)) {
    return absl::DataLossError(
        absl::StrCat("generation ", generation.number, " is not readable; tune again with force"));
  }
  result.set_generation(generation.number);
  result.set_pinned(generation.pinned);
  result.set_stale(generation.compiler_fingerprint != fingerprint_);
  return result;
}

std::string StatusText(tuner::v1::VariantStatus status) {
  const std::string name = tuner::v1::VariantStatus_Name(status);
  if (name.empty()) return absl::StrCat(static_cast<int>(status));
  return absl::AsciiStrToLower(absl::StripPrefix(name, "VARIANT_STATUS_"));
}

}  // namespace phobos::engine
