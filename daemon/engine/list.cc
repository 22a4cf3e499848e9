// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/list.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "daemon/engine/key.h"
#include "daemon/error/error.h"

namespace phobos::engine {
namespace {

constexpr int kDefaultPage = 100;
constexpr int kLargestPage = 1000;
constexpr size_t kLeastPrefix = 4;
constexpr int kNearestShown = 5;

absl::Status BadArgument(const std::string& message) {
  return error::Make(absl::StatusCode::kInvalidArgument, tuner::v1::ERROR_REASON_BAD_ARGUMENT,
                     message);
}

// Where each chip's listing stands: the store's own token, or that it is at its end. A chip that is
// missing is at its start.
using Places = std::map<std::string, std::string>;
constexpr char kEnd[] = "end";
// How every token of ours begins when it is decoded.
constexpr char kTokenMark[] = "places\n";

std::string TokenOf(const Places& places) {
  return absl::WebSafeBase64Escape(
      absl::StrCat(kTokenMark, absl::StrJoin(places, "\n", absl::PairFormatter("\t"))));
}

absl::StatusOr<Places> PlacesOf(const std::string& token) {
  Places places;
  if (token.empty()) return places;
  std::string text;
  if (!absl::WebSafeBase64Unescape(token, &text) || !text.starts_with(kTokenMark)) {
    return BadArgument("page_token is none of ours");
  }
  const std::string lines = text.substr(sizeof(kTokenMark) - 1);
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(lines, '\n'))) {
    const std::pair<std::string, std::string> place =
        absl::StrSplit(line, absl::MaxSplits('\t', 1));
    places.insert(place);
  }
  return places;
}

cache::Filter FilterOf(const tuner::v1::ResultFilter& wanted, const std::string& fingerprint) {
  cache::Filter filter;
  filter.kernel = wanted.kernel();
  filter.card_name = wanted.card_name();
  filter.source_digest_prefix = wanted.source_digest();
  for (const tuner::v1::Extent& extent : wanted.key()) {
    filter.values.emplace_back(extent.name(), extent.value());
  }
  if (wanted.stale()) filter.other_compiler_than = fingerprint;
  return filter;
}

struct Candidate {
  Chip* chip;
  cache::Listed row;
};

// Only the Result itself says it. One that is dropped or damaged since it was listed says nothing.
bool IsWinnerRecorded(const Chips& chips, const Candidate& row) {
  const auto generation =
      row.chip->results->FindGeneration(row.row.key.digest, row.row.generation.number);
  if (!generation.ok() || !generation->has_value()) return false;
  const absl::StatusOr<tuner::v1::Result> result = chips.Restore(**generation);
  if (!result.ok()) return false;
  const auto is_it = [&result](const tuner::v1::VariantResult& variant) {
    return variant.index() == result->winner() && variant.race_recorded();
  };
  return std::any_of(result->variants().begin(), result->variants().end(), is_it);
}

tuner::v1::ResultSummary SummaryOf(const Chips& chips, const Candidate& candidate) {
  const cache::Listed& row = candidate.row;
  tuner::v1::ResultSummary summary;
  summary.set_key_digest(row.key.digest);
  summary.set_kernel(row.key.kernel);
  summary.set_source_digest(row.key.source_digest);
  summary.set_chip(row.key.chip);
  summary.set_card_name(row.key.card_name);
  summary.set_key(ValuesText(row.key.values));
  summary.set_winner(row.generation.winner);
  summary.set_best_ns(row.generation.best_ns);
  summary.set_generation(row.generation.number);
  summary.set_finished_unix_ms(row.generation.finished_unix_ms);
  summary.set_contended(row.generation.contended);
  summary.set_pinned(row.generation.pinned);
  summary.set_variants_timed(row.variants_timed);
  summary.set_variants_total(row.variants_total);
  summary.set_stale(row.generation.compiler_fingerprint != chips.fingerprint());
  summary.set_race_recorded(IsWinnerRecorded(chips, candidate));
  return summary;
}

bool IsNewer(const Candidate& a, const Candidate& b) {
  return std::make_tuple(-a.row.generation.finished_unix_ms, a.row.key.digest) <
         std::make_tuple(-b.row.generation.finished_unix_ms, b.row.key.digest);
}

// The next `size` rows of all chips together, and where each listing stands after them.
absl::StatusOr<std::vector<Candidate>> NextRows(const std::vector<Chip*>& chips,
                                                const cache::Filter& filter, int size,
                                                Places& places) {
  std::vector<Candidate> rows;
  for (Chip* chip : chips) {
    if (places[chip->name] == kEnd) continue;
    ASSIGN_OR_RETURN(cache::Page page, chip->results->List(filter, size, places[chip->name]));
    for (cache::Listed& row : page.rows) rows.push_back({chip, std::move(row)});
  }
  std::stable_sort(rows.begin(), rows.end(), IsNewer);
  if (rows.size() > static_cast<size_t>(size)) rows.erase(rows.begin() + size, rows.end());
  for (Chip* chip : chips) {
    if (places[chip->name] == kEnd) continue;
    const auto taken = std::count_if(rows.begin(), rows.end(),
                                     [chip](const Candidate& row) { return row.chip == chip; });
    // A chip of which nothing was taken stands where it stood; the others' tokens come with a page
    // of just what was taken.
    if (taken == 0) {
      if (rows.size() < static_cast<size_t>(size)) places[chip->name] = kEnd;
      continue;
    }
    ASSIGN_OR_RETURN(const cache::Page page,
                     chip->results->List(filter, static_cast<int>(taken), places[chip->name]));
    places[chip->name] = page.next_token.empty() ? kEnd : page.next_token;
  }
  return rows;
}

// Keys of which the digest begins with `prefix`, at most `most`.
absl::StatusOr<std::vector<Candidate>> KeysLike(Chips& chips, const std::string& prefix, int most) {
  std::vector<Candidate> keys;
  cache::Filter filter;
  filter.key_digest_prefix = prefix;
  for (Chip* chip : chips.All()) {
    ASSIGN_OR_RETURN(cache::Page page, chip->results->List(filter, most, ""));
    for (cache::Listed& row : page.rows) keys.push_back({chip, std::move(row)});
  }
  return keys;
}

std::string DigestsOf(const std::vector<Candidate>& keys) {
  std::vector<std::string> digests;
  for (const Candidate& key : keys) digests.push_back(key.row.key.digest.substr(0, 16));
  return absl::StrJoin(digests, ", ");
}

}  // namespace

absl::StatusOr<tuner::v1::ListResultsResponse> ListResults(
    Chips& chips, const tuner::v1::ListResultsRequest& request) {
  const int size = request.page_size() == 0 ? kDefaultPage : request.page_size();
  if (size < 0 || size > kLargestPage) {
    return BadArgument(absl::StrCat("page_size ", size, " is not in 1..", kLargestPage));
  }
  const std::string& source = request.filter().source_digest();
  if (!source.empty() && source.size() < kLeastPrefix) {
    return BadArgument("source_digest needs at least 4 digits");
  }
  ASSIGN_OR_RETURN(Places places, PlacesOf(request.page_token()));
  std::vector<Chip*> asked;
  for (Chip* chip : chips.All()) {
    if (request.filter().chip().empty() || request.filter().chip() == chip->name) {
      asked.push_back(chip);
    }
  }
  ASSIGN_OR_RETURN(const std::vector<Candidate> rows,
                   NextRows(asked, FilterOf(request.filter(), chips.fingerprint()), size, places));
  tuner::v1::ListResultsResponse response;
  for (const Candidate& row : rows) *response.add_results() = SummaryOf(chips, row);
  const bool is_end = std::all_of(asked.begin(), asked.end(),
                                  [&](Chip* chip) { return places[chip->name] == kEnd; });
  if (!is_end) response.set_next_page_token(TokenOf(places));
  return response;
}

absl::StatusOr<tuner::v1::Result> GetResult(Chips& chips,
                                            const tuner::v1::GetResultRequest& request) {
  const std::string& prefix = request.key_digest();
  if (prefix.size() < kLeastPrefix || prefix.size() > kSha256Digits) {
    return BadArgument("key_digest needs 4 to 64 digits");
  }
  ASSIGN_OR_RETURN(const std::vector<Candidate> keys, KeysLike(chips, prefix, 2));
  if (keys.size() > 1) {
    return BadArgument(absl::StrCat(prefix, " begins several keys: ", DigestsOf(keys)));
  }
  if (keys.empty()) {
    ASSIGN_OR_RETURN(const std::vector<Candidate> near,
                     KeysLike(chips, prefix.substr(0, kLeastPrefix), kNearestShown));
    return absl::NotFoundError(absl::StrCat("no key begins with ", prefix,
                                            near.empty() ? "" : "; there are ", DigestsOf(near)));
  }
  const std::string& digest = keys[0].row.key.digest;
  cache::ResultStore& results = *keys[0].chip->results;
  ASSIGN_OR_RETURN(const std::optional<cache::Generation> generation,
                   request.generation() == 0
                       ? results.Find(digest)
                       : results.FindGeneration(digest, request.generation()));
  if (!generation.has_value()) {
    return absl::NotFoundError(
        absl::StrCat("key ", digest.substr(0, 16), " has no generation ", request.generation(),
                     "; the current, the pinned and the last three are kept"));
  }
  return chips.Restore(*generation);
}

}  // namespace phobos::engine
