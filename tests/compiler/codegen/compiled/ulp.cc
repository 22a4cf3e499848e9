// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/codegen/compiled/ulp.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace phobos::compiler::testing {

using interpreter::Bits;
using interpreter::FloatFormat;
using interpreter::FormatOf;
using interpreter::FromReal;
using interpreter::ToReal;

double UlpError(ir::DType dtype, Bits got, long double want) {
  const long double value = ToReal(dtype, got);
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (std::isnan(want)) return std::isnan(value) ? 0 : kInfinite;
  if (std::isnan(value)) return kInfinite;
  const Bits rounded = FromReal(dtype, want);
  if (rounded == got) return 0;
  const long double nearest = ToReal(dtype, rounded);
  if (std::isinf(value) || std::isinf(nearest)) {
    // At the edge: the largest finite number and infinity are one apart.
    const FloatFormat format = FormatOf(dtype);
    const long double edge = std::ldexp(1.0L, format.digits + format.greatest);
    const long double clamped = std::isinf(value) ? std::copysign(edge, value) : value;
    const long double target = std::isinf(want) ? std::copysign(2 * edge, want) : want;
    return static_cast<double>(std::fabs(clamped - target) / std::ldexp(1.0L, format.greatest));
  }
  const FloatFormat format = FormatOf(dtype);
  const int exponent =
      want == 0 ? format.least : std::max(std::ilogb(want) - format.digits + 1, format.least);
  return static_cast<double>(std::fabs(value - want) / std::ldexp(1.0L, exponent));
}

}  // namespace phobos::compiler::testing
