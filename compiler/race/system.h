// SPDX-License-Identifier: Apache-2.0
//
// Integer variables in intervals, linear constraints over them, and the narrowing of the intervals
// by the constraints. Narrowing never loses a solution, so an empty interval proves that there is
// none. Sums that are known modulo 2^64 become constraints where the intervals leave no choice. One
// thread at a time.
#ifndef PHOBOS_COMPILER_RACE_SYSTEM_H_
#define PHOBOS_COMPILER_RACE_SYSTEM_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/race/interval.h"

namespace phobos::compiler::race {

class System {
 public:
  using Terms = std::vector<std::pair<int, int64_t>>;  // variable, coefficient

  // Returns the new variable.
  int AddVariable(Interval range);
  // The sum of the terms lies in `bounds`. Terms of one variable are added up.
  void AddConstraint(Terms terms, Interval bounds);

  // The sum of the terms and `constant`, less some multiple of 2^64, lies in `bounds`, an open end
  // of which stands for 2^64. The coefficients count modulo 2^64. Nothing until Settle.
  void AddCongruence(Terms terms, int64_t constant, Interval bounds);

  // False: there is no solution. True: perhaps there is one, and the ranges are narrowed.
  bool Narrow();
  // Narrows, and makes a constraint of each congruence that has one multiple in these ranges. The
  // others are dropped.
  bool Settle();

  const std::vector<Interval>& ranges() const { return ranges_; }
  // For trying an assumption: restores what ranges() gave, then restricts one variable.
  void SetRanges(std::vector<Interval> ranges) { ranges_ = std::move(ranges); }
  void Restrict(int variable, Interval range) {
    ranges_[variable] = Intersect(ranges_[variable], range);
  }

 private:
  struct Constraint {
    Terms terms;
    Interval bounds;
  };
  struct Congruence {
    Terms terms;
    int64_t constant;
    Interval bounds;
  };
  // Adds the constraint that the congruence comes down to. False: the ranges may leave several
  // multiples.
  bool SettleOne(const Congruence& congruence);
  // Narrows by one constraint. Returns false when it cannot hold; *changed: a range got smaller.
  bool NarrowBy(const Constraint& constraint, bool* changed);

  std::vector<Interval> ranges_;
  std::vector<Constraint> constraints_;
  std::vector<Congruence> congruences_;
  bool impossible_ = false;  // a constraint without variables that is false
};

}  // namespace phobos::compiler::race

#endif  // PHOBOS_COMPILER_RACE_SYSTEM_H_
