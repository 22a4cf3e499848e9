// SPDX-License-Identifier: Apache-2.0
//
// Intervals of integers that may be open at either end. What leaves 64 bits becomes open: an
// interval only ever says too little. Values, any thread.
#ifndef PHOBOS_COMPILER_RACE_INTERVAL_H_
#define PHOBOS_COMPILER_RACE_INTERVAL_H_

#include <cstdint>
#include <limits>

#include "base/floor_division.h"

namespace phobos::compiler::race {

struct Interval {
  static constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kPlusInfinity = std::numeric_limits<int64_t>::max();

  int64_t lo = kMinusInfinity;  // inclusive
  int64_t hi = kPlusInfinity;   // inclusive

  static Interval Exactly(int64_t value) { return {value, value}; }
  static Interval AtLeast(int64_t lo) { return {lo, kPlusInfinity}; }
  static Interval AtMost(int64_t hi) { return {kMinusInfinity, hi}; }

  bool empty() const { return lo > hi; }
  bool has_lo() const { return lo != kMinusInfinity; }
  bool has_hi() const { return hi != kPlusInfinity; }

  friend bool operator==(const Interval&, const Interval&) = default;
};

inline Interval Intersect(Interval a, Interval b) {
  return {a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
}

// A bound of 128 bits as one of 64, open when it is far out.
inline int64_t LowerBound(__int128 value) {
  constexpr __int128 kFar = __int128{1} << 62;
  if (value < -kFar) return Interval::kMinusInfinity;
  return static_cast<int64_t>(value > kFar ? kFar : value);
}
inline int64_t UpperBound(__int128 value) {
  constexpr __int128 kFar = __int128{1} << 62;
  if (value > kFar) return Interval::kPlusInfinity;
  return static_cast<int64_t>(value < -kFar ? -kFar : value);
}

inline __int128 CeilDivide(__int128 a, __int128 b) { return -FloorDivide(-a, b); }

}  // namespace phobos::compiler::race

#endif  // PHOBOS_COMPILER_RACE_INTERVAL_H_
