// SPDX-License-Identifier: Apache-2.0
#include "cache/list_position.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/concat.h"

namespace phobos::cache {
namespace {

constexpr int kLargestPage = 1000;
constexpr std::string_view kForm = "1";  // of the token; another form gets another number

}  // namespace

bool IsListedBefore(const Listed& a, const Listed& b) {
  return IsAfter({.finished_unix_ms = a.generation.finished_unix_ms, .key_digest = a.key.digest},
                 b.generation.finished_unix_ms, b.key.digest);
}

bool IsAfter(const ListPosition& position, int64_t finished_unix_ms, std::string_view key_digest) {
  if (finished_unix_ms != position.finished_unix_ms)
    return finished_unix_ms < position.finished_unix_ms;
  return key_digest > position.key_digest;
}

std::string TokenFrom(const ListPosition& position) {
  return Concat(kForm, ".", position.disk_bound, ".", position.memory_bound, ".",
                position.finished_unix_ms, ".", position.key_digest);
}

absl::StatusOr<ListPosition> PositionFrom(std::string_view token) {
  const std::vector<std::string> parts = absl::StrSplit(ForAbseil(token), absl::MaxSplits('.', 4));
  ListPosition position;
  if (parts.size() != 5 || parts[0] != kForm || !absl::SimpleAtoi(parts[1], &position.disk_bound) ||
      !absl::SimpleAtoi(parts[2], &position.memory_bound) ||
      !absl::SimpleAtoi(parts[3], &position.finished_unix_ms)) {
    return absl::InvalidArgumentError(
        Concat("\"", token.substr(0, 80),
               "\" is no page token; pass the one of the page before, or none"));
  }
  position.key_digest = parts[4];
  return position;
}

absl::Status CheckPageSize(int page_size) {
  if (page_size >= 1 && page_size <= kLargestPage) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat("a page has 1 to ", kLargestPage, " rows; ", page_size, " were asked for"));
}

}  // namespace phobos::cache
