// SPDX-License-Identifier: Apache-2.0
#include "compiler/race/system.h"

#include <algorithm>
#include <numeric>

namespace phobos::compiler::race {
namespace {

// Rounds of narrowing: what is not narrowed by then stays as wide as it is, which is allowed.
constexpr int kMaxRounds = 16;
// Constraints with a larger coefficient are left out, so that no sum leaves 128 bits.
constexpr int64_t kMaxCoefficient = int64_t{1} << 48;

// coefficient * range, as a sum's part: each end may be open.
struct Part {
  bool open_lo;
  bool open_hi;
  __int128 lo;
  __int128 hi;
};

Part PartOf(int64_t coefficient, Interval range) {
  const bool flips = coefficient < 0;
  const int64_t from = flips ? range.hi : range.lo;
  const int64_t to = flips ? range.lo : range.hi;
  Part part;
  part.open_lo = flips ? !range.has_hi() : !range.has_lo();
  part.open_hi = flips ? !range.has_lo() : !range.has_hi();
  part.lo = part.open_lo ? 0 : static_cast<__int128>(coefficient) * from;
  part.hi = part.open_hi ? 0 : static_cast<__int128>(coefficient) * to;
  return part;
}

// One term a variable, with the coefficients' sums modulo 2^64.
System::Terms Wrapped(System::Terms terms) {
  std::sort(terms.begin(), terms.end());
  System::Terms result;
  for (size_t i = 0; i < terms.size();) {
    const int variable = terms[i].first;
    uint64_t sum = 0;
    for (; i < terms.size() && terms[i].first == variable; ++i) {
      sum += static_cast<uint64_t>(terms[i].second);
    }
    if (sum != 0) result.emplace_back(variable, static_cast<int64_t>(sum));
  }
  return result;
}

}  // namespace

int System::AddVariable(Interval range) {
  ranges_.push_back(range);
  return static_cast<int>(ranges_.size()) - 1;
}

void System::AddConstraint(Terms terms, Interval bounds) {
  std::sort(terms.begin(), terms.end());
  Constraint constraint;
  int64_t divisor = 0;
  for (size_t i = 0; i < terms.size();) {
    const int variable = terms[i].first;
    __int128 sum = 0;
    for (; i < terms.size() && terms[i].first == variable; ++i) sum += terms[i].second;
    if (sum == 0) continue;
    if (sum > kMaxCoefficient || sum < -kMaxCoefficient) return;
    constraint.terms.emplace_back(variable, static_cast<int64_t>(sum));
    divisor = std::gcd(divisor, static_cast<int64_t>(sum));
  }
  if (constraint.terms.empty()) {
    impossible_ |= bounds.lo > 0 || bounds.hi < 0;
    return;
  }
  // The sum is a multiple of the coefficients' common divisor.
  if (divisor > 1) {
    for (auto& term : constraint.terms) term.second /= divisor;
    if (bounds.has_lo()) bounds.lo = static_cast<int64_t>(CeilDivide(bounds.lo, divisor));
    if (bounds.has_hi())
      bounds.hi = static_cast<int64_t>(FloorDivide(__int128{bounds.hi}, divisor));
  }
  constraint.bounds = bounds;
  impossible_ |= bounds.empty();
  constraints_.push_back(std::move(constraint));
}

void System::AddCongruence(Terms terms, int64_t constant, Interval bounds) {
  congruences_.push_back({Wrapped(std::move(terms)), constant, bounds});
}

bool System::SettleOne(const Congruence& congruence) {
  constexpr __int128 kModulus = __int128{1} << 64;
  __int128 lo = congruence.constant;
  __int128 hi = congruence.constant;
  for (const auto& [variable, coefficient] : congruence.terms) {
    if (coefficient > kMaxCoefficient || coefficient < -kMaxCoefficient) return false;
    // A number of i64, a difference of two, or how often a loop turns.
    const Interval& range = ranges_[variable];
    const __int128 least = range.has_lo() ? range.lo : -kModulus;
    const __int128 most = range.has_hi() ? range.hi : kModulus;
    lo += coefficient * (coefficient < 0 ? most : least);
    hi += coefficient * (coefficient < 0 ? least : most);
  }
  const Interval& bounds = congruence.bounds;
  const __int128 from = bounds.has_lo() ? bounds.lo : -kModulus;
  const __int128 to = bounds.has_hi() ? bounds.hi : kModulus;
  const __int128 first = CeilDivide(lo - to, kModulus);
  const __int128 last = FloorDivide(hi - from, kModulus);
  if (first < last) return false;
  impossible_ |= first > last;
  const __int128 shift = first * kModulus - congruence.constant;
  AddConstraint(congruence.terms, {LowerBound(from + shift), UpperBound(to + shift)});
  return true;
}

bool System::Settle() {
  bool settles = true;
  while (settles) {
    if (!Narrow()) return false;
    settles = false;
    std::vector<Congruence> open;
    for (Congruence& congruence : congruences_) {
      if (SettleOne(congruence)) {
        settles = true;
      } else {
        open.push_back(std::move(congruence));
      }
    }
    congruences_ = std::move(open);
  }
  congruences_.clear();
  return true;
}

bool System::NarrowBy(const Constraint& constraint, bool* changed) {
  int open_lo = 0;
  int open_hi = 0;
  __int128 lo = 0;
  __int128 hi = 0;
  for (const auto& [variable, coefficient] : constraint.terms) {
    const Part part = PartOf(coefficient, ranges_[variable]);
    open_lo += part.open_lo;
    open_hi += part.open_hi;
    lo += part.lo;
    hi += part.hi;
  }
  const Interval& bounds = constraint.bounds;
  if (open_lo == 0 && bounds.has_hi() && lo > bounds.hi) return false;
  if (open_hi == 0 && bounds.has_lo() && hi < bounds.lo) return false;
  for (const auto& [variable, coefficient] : constraint.terms) {
    Interval& range = ranges_[variable];
    const Part part = PartOf(coefficient, range);
    // What the other terms leave for this one: coefficient * variable lies in [from, to].
    const bool has_to = bounds.has_hi() && open_lo - part.open_lo == 0;
    const bool has_from = bounds.has_lo() && open_hi - part.open_hi == 0;
    const __int128 to = bounds.hi - (lo - part.lo);
    const __int128 from = bounds.lo - (hi - part.hi);
    Interval allowed;
    const bool flips = coefficient < 0;
    if (has_to) {
      (flips ? allowed.lo : allowed.hi) = flips ? LowerBound(CeilDivide(to, coefficient))
                                                : UpperBound(FloorDivide(to, coefficient));
    }
    if (has_from) {
      (flips ? allowed.hi : allowed.lo) = flips ? UpperBound(FloorDivide(from, coefficient))
                                                : LowerBound(CeilDivide(from, coefficient));
    }
    const Interval narrowed = Intersect(range, allowed);
    if (narrowed.empty()) return false;
    if (narrowed == range) continue;
    // Later constraints and rounds use the new range; the sums of this one stay valid, only wider.
    range = narrowed;
    *changed = true;
  }
  return true;
}

bool System::Narrow() {
  if (impossible_) return false;
  for (const Interval& range : ranges_) {
    if (range.empty()) return false;
  }
  for (int round = 0; round < kMaxRounds; ++round) {
    bool changed = false;
    for (const Constraint& constraint : constraints_) {
      if (!NarrowBy(constraint, &changed)) return false;
    }
    if (!changed) return true;
  }
  return true;
}

}  // namespace phobos::compiler::race
