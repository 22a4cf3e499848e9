// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/nearest.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "base/concat.h"

namespace phobos::compiler::sema {
namespace {

constexpr size_t kLongest = 64;  // longer names are no typing slips of each other

// Twice the number of edits, at most `limit` + 1.
int Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> rows(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) rows[i][0] = 2 * static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = 2 * static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      const bool same_letter = absl::ascii_tolower(a[i - 1]) == absl::ascii_tolower(b[j - 1]);
      const int change = same ? 0 : same_letter ? 1 : 2;
      rows[i][j] = std::min({rows[i - 1][j] + 2, rows[i][j - 1] + 2, rows[i - 1][j - 1] + change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 2);
    }
  }
  return rows[a.size()][b.size()];
}

}  // namespace

std::string_view Nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.size() > kLongest) return {};
  std::string_view best;
  // A third of the letters may differ, but of a very short name not all.
  int least = std::max(2, 2 * static_cast<int>(name.size() + 1) / 3) + 1;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kLongest || candidate == name) continue;
    const int distance = Distance(name, candidate);
    const bool shares_nothing =
        distance >= 2 * static_cast<int>(std::max(name.size(), candidate.size()));
    if (distance < least && !shares_nothing) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string_view>& candidates,
                       std::string_view otherwise) {
  const std::string_view nearest = Nearest(name, candidates);
  return nearest.empty() ? std::string(otherwise) : Concat("did you mean '", nearest, "'?");
}

}  // namespace phobos::compiler::sema
