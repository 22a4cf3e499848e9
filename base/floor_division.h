// SPDX-License-Identifier: Apache-2.0
//
// Floor division and remainder of numbers as the kernel language has them: exactly Python's, but
// that by zero both are 0. For whoever computes constants and conditions before a kernel runs; no
// state, any thread.
#ifndef PHOBOS_BASE_FLOOR_DIVISION_H_
#define PHOBOS_BASE_FLOOR_DIVISION_H_

#include <cmath>

namespace phobos {

// a // b of integers. Wide, so that no quotient of two int64 leaves the type.
inline __int128 FloorDivide(__int128 a, __int128 b) {
  if (b == 0) return 0;
  const __int128 quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

// a % b of integers: with the sign of b.
inline __int128 FloorModulo(__int128 a, __int128 b) {
  return b == 0 ? 0 : a - FloorDivide(a, b) * b;
}

// a % b: exact, with the sign of b.
inline double FloorModulo(double a, double b) {
  if (b == 0) return 0;
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

// a // b. Not floor(a / b): the quotient may be rounded up to the next integer, as that of 1 and
// 0.1 is.
inline double FloorDivide(double a, double b) {
  if (b == 0) return 0;
  const double rest = std::fmod(a, b);
  double ratio = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) ratio -= 1;
  if (ratio == 0) return std::copysign(0.0, a / b);
  // A whole number but for rounding.
  const double floor = std::floor(ratio);
  return ratio - floor > 0.5 ? floor + 1 : floor;
}

}  // namespace phobos

#endif  // PHOBOS_BASE_FLOOR_DIVISION_H_
