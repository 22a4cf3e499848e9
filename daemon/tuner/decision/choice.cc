// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/decision/choice.h"

#include <algorithm>

namespace phobos::tuner {
namespace {

constexpr double kLeastNoise = 0.005;

}  // namespace

Choice Choose(absl::Span<const Candidate> candidates, int64_t timer_resolution_ns,
              v1::TieBreak tie_break) {
  const Candidate& fastest = *std::min_element(candidates.begin(), candidates.end(),
                                               [](const Candidate& a, const Candidate& b) {
                                                 return a.statistics.best_ns < b.statistics.best_ns;
                                               });
  const Statistics& of_fastest = fastest.statistics;
  const double scatter =
      static_cast<double>(of_fastest.interquartile_ns) / static_cast<double>(of_fastest.median_ns);
  const double noise = static_cast<double>(of_fastest.best_ns) * std::max(kLeastNoise, scatter);
  Choice choice;
  for (const Candidate& candidate : candidates) {
    const int64_t behind = candidate.statistics.best_ns - of_fastest.best_ns;
    if (static_cast<double>(behind) <= noise || behind <= timer_resolution_ns) {
      choice.ties.push_back(candidate.variant);
    }
  }
  choice.winner =
      tie_break == v1::TIE_BREAK_FIRST_WITHIN_NOISE ? choice.ties.front() : fastest.variant;
  return choice;
}

}  // namespace phobos::tuner
