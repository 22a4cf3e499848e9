// SPDX-License-Identifier: Apache-2.0
//
// The order of launches in a round, and which rounds count. Pure but for the log that RoundLog
// keeps; one thread.
#ifndef PHOBOS_DAEMON_TUNER_DECISION_ROUNDS_H_
#define PHOBOS_DAEMON_TUNER_DECISION_ROUNDS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"

namespace phobos::tuner {

// The variants with the first one moved on by `round` places, so that over the rounds each leads
// equally often and none is always launched after the same state of the card.
std::vector<int> RotatedOrder(absl::Span<const int> variants, int round);

// Rounds as they were taken. A round is clean when nothing disturbed it and every sample is
// positive.
class RoundLog {
 public:
  // `samples_ns` belongs to `order`, one for one.
  void Add(absl::Span<const int> order, absl::Span<const int64_t> samples_ns, bool disturbed);
  // A round without samples: the worker died in it.
  void AddBroken() { ++taken_; }

  // Rounds that count, and all that were begun.
  int clean() const { return clean_; }
  int taken() const { return taken_; }

  // What counts: the clean rounds; where they are fewer than `wanted`, the first disturbed ones
  // too, up to it, and then those with samples that are not positive, without these.
  struct Selection {
    std::map<int, std::vector<int64_t>> samples_ns;  // by variant, in the order taken
    int rounds = 0;
    bool has_disturbed = false;
  };
  Selection Select(int wanted) const;

 private:
  // In the order in which rounds are taken for a Selection.
  enum class Grade { kClean, kDisturbed, kVoid };
  struct Round {
    Grade grade;
    std::vector<int> order;
    std::vector<int64_t> samples_ns;
  };
  std::vector<Round> rounds_;
  int clean_ = 0;
  int taken_ = 0;
};

}  // namespace phobos::tuner

#endif  // PHOBOS_DAEMON_TUNER_DECISION_ROUNDS_H_
