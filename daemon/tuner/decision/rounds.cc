// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/decision/rounds.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace phobos::tuner {

std::vector<int> RotatedOrder(absl::Span<const int> variants, int round) {
  std::vector<int> order(variants.begin(), variants.end());
  if (order.empty()) return order;
  const auto first = static_cast<size_t>(round) % order.size();
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
  return order;
}

void RoundLog::Add(absl::Span<const int> order, absl::Span<const int64_t> samples_ns,
                   bool disturbed) {
  const bool all_positive =
      std::all_of(samples_ns.begin(), samples_ns.end(), [](int64_t sample) { return sample > 0; });
  const Grade grade = !all_positive ? Grade::kVoid : disturbed ? Grade::kDisturbed : Grade::kClean;
  rounds_.push_back({grade, {order.begin(), order.end()}, {samples_ns.begin(), samples_ns.end()}});
  ++taken_;
  if (grade == Grade::kClean) ++clean_;
}

RoundLog::Selection RoundLog::Select(int wanted) const {
  std::vector<bool> chosen(rounds_.size());
  Selection selection;
  for (const Grade grade : {Grade::kClean, Grade::kDisturbed, Grade::kVoid}) {
    for (size_t i = 0; i < rounds_.size() && selection.rounds < wanted; ++i) {
      if (rounds_[i].grade != grade) continue;
      chosen[i] = true;
      ++selection.rounds;
      selection.has_disturbed |= grade == Grade::kDisturbed;
    }
  }
  for (size_t i = 0; i < rounds_.size(); ++i) {
    if (!chosen[i]) continue;
    for (size_t k = 0; k < rounds_[i].order.size(); ++k) {
      const int64_t sample = rounds_[i].samples_ns[k];
      if (sample > 0) selection.samples_ns[rounds_[i].order[k]].push_back(sample);
    }
  }
  return selection;
}

}  // namespace phobos::tuner
