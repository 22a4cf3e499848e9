// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/decision/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace phobos::tuner {
namespace {

// REQUIRES: sorted, not empty; 0 <= share <= 1.
double Quantile(const std::vector<int64_t>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = position - static_cast<double>(below);
  return static_cast<double>(sorted[below]) * (1 - part) +
         static_cast<double>(sorted[above]) * part;
}

}  // namespace

Statistics Summarize(absl::Span<const int64_t> samples_ns) {
  std::vector<int64_t> sorted(samples_ns.begin(), samples_ns.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  Statistics statistics;
  statistics.best_ns = sorted.front();
  statistics.median_ns = sorted.size() % 2 == 1
                             ? sorted[half]
                             : sorted[half - 1] + (sorted[half] - sorted[half - 1]) / 2;
  statistics.spread =
      static_cast<double>(sorted.back() - sorted.front()) / static_cast<double>(sorted.front());
  statistics.interquartile_ns = std::llround(Quantile(sorted, 0.75) - Quantile(sorted, 0.25));
  return statistics;
}

}  // namespace phobos::tuner
