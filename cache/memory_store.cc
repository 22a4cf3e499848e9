// SPDX-License-Identifier: Apache-2.0
#include "cache/memory_store.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"

namespace phobos::cache {
namespace {

bool Fits(const Filter& filter, const KeyColumns& key, const Generation& generation) {
  if (!filter.kernel.empty() && filter.kernel != key.kernel) return false;
  if (!filter.card_name.empty() && filter.card_name != key.card_name) return false;
  if (!key.source_digest.starts_with(filter.source_digest_prefix)) return false;
  if (!key.digest.starts_with(filter.key_digest_prefix)) return false;
  if (!filter.other_compiler_than.empty() &&
      filter.other_compiler_than == generation.compiler_fingerprint) {
    return false;
  }
  return absl::c_all_of(filter.values, [&](const KeyValue& value) {
    return absl::c_linear_search(key.values, value);
  });
}

}  // namespace

std::unique_ptr<ResultStore> MakeMemoryStore() { return std::make_unique<MemoryStore>(); }

const MemoryStore::Entry* MemoryStore::EntryOf(std::string_view key_digest) const {
  const auto found = entries_.find(key_digest);
  return found == entries_.end() ? nullptr : &found->second;
}

absl::StatusOr<int64_t> MemoryStore::Append(const KeyColumns& key, const Generation& generation) {
  const absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[key.digest];
  if (entry.generations.empty()) entry.key = key;
  Kept kept = {.id = ++newest_id_,
               .generation = generation,
               .variants_total = static_cast<int32_t>(generation.variants.size())};
  kept.variants_timed = static_cast<int32_t>(
      absl::c_count_if(generation.variants, [](const VariantRow& v) { return v.best_ns > 0; }));
  kept.generation.number =
      entry.generations.empty() ? 1 : entry.generations.back().generation.number + 1;
  kept.generation.pinned = false;
  kept.generation.variants.clear();
  const int64_t number = kept.generation.number;
  entry.generations.push_back(std::move(kept));
  std::erase_if(entry.generations, [&](const Kept& old) {
    return !old.generation.pinned && old.generation.number <= number - kKeptGenerations;
  });
  return number;
}

absl::StatusOr<std::optional<Generation>> MemoryStore::Find(std::string_view key_digest) {
  const absl::MutexLock lock(&mutex_);
  const Entry* entry = EntryOf(key_digest);
  if (entry == nullptr) return std::nullopt;
  const auto pinned = std::find_if(entry->generations.rbegin(), entry->generations.rend(),
                                   [](const Kept& k) { return k.generation.pinned; });
  return (pinned == entry->generations.rend() ? entry->generations.back() : *pinned).generation;
}

absl::StatusOr<std::optional<Generation>> MemoryStore::FindGeneration(std::string_view key_digest,
                                                                      int64_t number) {
  const absl::MutexLock lock(&mutex_);
  const Entry* entry = EntryOf(key_digest);
  if (entry == nullptr) return std::nullopt;
  for (const Kept& kept : entry->generations) {
    if (kept.generation.number == number) return kept.generation;
  }
  return std::nullopt;
}

absl::StatusOr<Page> MemoryStore::List(const Filter& filter, int page_size,
                                       std::string_view token) {
  RETURN_IF_ERROR(CheckPageSize(page_size));
  ListPosition position;
  position.memory_bound = Bound();
  if (!token.empty()) {
    ASSIGN_OR_RETURN(position, PositionFrom(token));
  }
  Page page = {.rows = ListAfter(filter, position, page_size + 1)};
  if (static_cast<int>(page.rows.size()) > page_size) {
    page.rows.pop_back();
    position.finished_unix_ms = page.rows.back().generation.finished_unix_ms;
    position.key_digest = page.rows.back().key.digest;
    page.next_token = TokenFrom(position);
  }
  return page;
}

std::vector<Listed> MemoryStore::ListAfter(const Filter& filter, const ListPosition& position,
                                           int limit) {
  const absl::MutexLock lock(&mutex_);
  std::vector<Listed> rows;
  for (const auto& [digest, entry] : entries_) {
    const auto current =
        std::find_if(entry.generations.rbegin(), entry.generations.rend(),
                     [&](const Kept& kept) { return kept.id <= position.memory_bound; });
    if (current == entry.generations.rend() || !Fits(filter, entry.key, current->generation) ||
        !IsAfter(position, current->generation.finished_unix_ms, digest)) {
      continue;
    }
    rows.push_back({.key = entry.key,
                    .generation = current->generation,
                    .variants_timed = current->variants_timed,
                    .variants_total = current->variants_total});
    rows.back().generation.result.clear();
  }
  absl::c_sort(rows, IsListedBefore);
  if (static_cast<int>(rows.size()) > limit) rows.resize(limit);
  return rows;
}

absl::Status MemoryStore::Remember(std::string_view kind, std::string_view name,
                                   std::string_view value) {
  const absl::MutexLock lock(&mutex_);
  facts_[{std::string(kind), std::string(name)}] = std::string(value);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> MemoryStore::Recall(std::string_view kind,
                                                               std::string_view name) {
  const absl::MutexLock lock(&mutex_);
  const auto found = facts_.find({std::string(kind), std::string(name)});
  if (found == facts_.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<StoreStats> MemoryStore::Stats() {
  const absl::MutexLock lock(&mutex_);
  StoreStats stats = {.keys = static_cast<int64_t>(entries_.size())};
  for (const auto& [digest, entry] : entries_)
    stats.generations += static_cast<int64_t>(entry.generations.size());
  return stats;
}

void MemoryStore::Load(const KeyColumns& key, std::vector<Generation> generations) {
  const absl::MutexLock lock(&mutex_);
  if (generations.empty() || !entries_.try_emplace(key.digest).second) return;
  Entry& entry = entries_[key.digest];
  entry.key = key;
  entry.loaded = true;
  for (Generation& generation : generations)
    entry.generations.push_back({.generation = std::move(generation)});
}

bool MemoryStore::Has(std::string_view key_digest) {
  const absl::MutexLock lock(&mutex_);
  return EntryOf(key_digest) != nullptr;
}

int64_t MemoryStore::NextNumber(std::string_view key_digest) {
  const absl::MutexLock lock(&mutex_);
  const Entry* entry = EntryOf(key_digest);
  return entry == nullptr ? 1 : entry->generations.back().generation.number + 1;
}

void MemoryStore::Forget(std::string_view kind, std::string_view name) {
  const absl::MutexLock lock(&mutex_);
  facts_.erase({std::string(kind), std::string(name)});
}

void MemoryStore::ForgetKey(std::string_view key_digest) {
  const absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(key_digest);
  if (found != entries_.end()) entries_.erase(found);
}

StoreStats MemoryStore::Added() {
  const absl::MutexLock lock(&mutex_);
  StoreStats stats;
  for (const auto& [digest, entry] : entries_) {
    if (!entry.loaded) ++stats.keys;
    stats.generations +=
        absl::c_count_if(entry.generations, [](const Kept& kept) { return kept.id > 0; });
  }
  return stats;
}

int64_t MemoryStore::Bound() {
  const absl::MutexLock lock(&mutex_);
  return newest_id_;
}

}  // namespace phobos::cache
