// SPDX-License-Identifier: Apache-2.0
//
// How numbers fit the element types: ranges, rounding, wrapping, conversion of literals.
#include <cmath>
#include <cstdlib>
#include <limits>

#include "compiler/sema/value/literal.h"

namespace phobos::compiler::sema {
namespace {

using ir::DType;

struct FloatFormat {
  int precision;     // bits of the significand, the hidden one included
  int min_exponent;  // of the smallest normal number, as frexp counts
  double largest;
};

FloatFormat FormatOf(DType t) {
  switch (t) {
    case DType::kF16:
      return {11, -13, 65504.0};
    case DType::kBF16:
      return {8, -125, 3.3895313892515355e38};
    case DType::kF32:
      return {24, -125, static_cast<double>(std::numeric_limits<float>::max())};
    default:
      return {53, -1021, std::numeric_limits<double>::max()};
  }
}

// A wide integer rounded to nearest even with `precision` <= 53 bits: then a double holds it
// exactly.
double RoundWide(WideInt value, int precision) {
  const bool negative = value < 0;
  unsigned __int128 magnitude = negative ? -static_cast<unsigned __int128>(value) : value;
  int drop = 0;
  while ((magnitude >> drop) >> precision != 0) ++drop;
  unsigned __int128 kept = magnitude >> drop;
  if (drop > 0) {
    const unsigned __int128 rest = magnitude - (kept << drop);
    const unsigned __int128 half = static_cast<unsigned __int128>(1) << (drop - 1);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  }
  const double rounded = std::ldexp(static_cast<double>(static_cast<uint64_t>(kept)), drop);
  return negative ? -rounded : rounded;
}

// Truncates towards zero and saturates; NaN gives 0.
int64_t FloatToInt(double value, DType dtype) {
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  if (truncated <= static_cast<double>(SmallestOf(dtype))) return WrapTo(dtype, SmallestOf(dtype));
  if (truncated >= static_cast<double>(LargestOf(dtype))) return WrapTo(dtype, LargestOf(dtype));
  return WrapTo(dtype, static_cast<WideInt>(truncated));
}

Problem OutOfRange(const Literal& literal, DType dtype) {
  const std::string name(ir::Name(dtype));
  Problem problem;
  problem.what = ToString(literal) + " does not fit " + name;
  if (ir::IsInteger(dtype)) {
    problem.what +=
        ", which holds " + ToString(SmallestOf(dtype)) + " to " + ToString(LargestOf(dtype));
  } else {
    problem.what += ", whose largest number is " + ToString(Literal(LargestFinite(dtype)));
  }
  problem.remedy = "use a value in that range, or ph.cast the other operand to a wider type";
  return problem;
}

}  // namespace

WideInt SmallestOf(DType t) {
  return ir::IsSigned(t) ? -(WideInt{1} << (ir::BitWidth(t) - 1)) : WideInt{0};
}

WideInt LargestOf(DType t) {
  return (WideInt{1} << (ir::BitWidth(t) - (ir::IsSigned(t) ? 1 : 0))) - 1;
}

double LargestFinite(DType t) { return FormatOf(t).largest; }

double Epsilon(DType t) { return std::ldexp(1.0, 1 - FormatOf(t).precision); }

double RoundTo(DType t, double value) {
  if (t == DType::kF64 || value == 0 || !std::isfinite(value)) return value;
  if (t == DType::kF32) return static_cast<float>(value);
  const FloatFormat format = FormatOf(t);
  int exponent = 0;
  std::frexp(value, &exponent);
  // The last bit's weight: fixed below the smallest normal number, where the format is subnormal.
  const int last_bit = std::max(exponent, format.min_exponent) - format.precision;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -last_bit)), last_bit);
  if (std::abs(rounded) > format.largest) return std::copysign(INFINITY, value);
  return rounded;
}

int64_t WrapTo(DType t, WideInt value) {
  const int bits = ir::BitWidth(t);
  uint64_t low = static_cast<uint64_t>(value);
  if (bits == 64) return static_cast<int64_t>(low);
  low &= (uint64_t{1} << bits) - 1;
  if (ir::IsSigned(t) && (low >> (bits - 1)) != 0) low |= ~uint64_t{0} << bits;
  return static_cast<int64_t>(low);
}

std::optional<ir::DType> TypeAlone(const Literal& literal, Problem* problem) {
  if (IsBool(literal)) return DType::kBool;
  if (IsFloat(literal)) return DType::kF32;
  if (IsString(literal)) {
    *problem = {"a string is no number", "strings serve only as options such as precision="};
    return std::nullopt;
  }
  const WideInt value = std::get<WideInt>(literal);
  for (DType t : {DType::kI32, DType::kI64}) {
    if (value >= SmallestOf(t) && value <= LargestOf(t)) return t;
  }
  *problem = {ToString(literal) + " does not fit i64", "write ph.cast(..., ph.u64) around it"};
  return std::nullopt;
}

std::optional<ir::ConstantValue> Convert(const Literal& literal, DType dtype, Problem* problem) {
  if (IsString(literal)) {
    *problem = {"a string is no number", "strings serve only as options such as precision="};
    return std::nullopt;
  }
  if (ir::IsInteger(dtype)) {
    std::optional<WideInt> wide = AsWide(literal);
    if (wide.has_value() && (*wide < SmallestOf(dtype) || *wide > LargestOf(dtype))) {
      *problem = OutOfRange(literal, dtype);
      return std::nullopt;
    }
  }
  ir::ConstantValue value = CastTo(literal, dtype);
  if (ir::IsFloat(dtype) && std::isinf(std::get<double>(value)) &&
      !(IsFloat(literal) && std::isinf(std::get<double>(literal)))) {
    *problem = OutOfRange(literal, dtype);
    return std::nullopt;
  }
  return value;
}

ir::ConstantValue CastTo(const Literal& literal, DType dtype) {
  if (dtype == DType::kBool) return int64_t{IsTrue(literal)};
  std::optional<WideInt> wide = AsWide(literal);
  if (ir::IsInteger(dtype)) {
    return wide.has_value() ? WrapTo(dtype, *wide) : FloatToInt(AsDouble(literal), dtype);
  }
  if (wide.has_value()) return RoundTo(dtype, RoundWide(*wide, FormatOf(dtype).precision));
  return RoundTo(dtype, AsDouble(literal));
}

}  // namespace phobos::compiler::sema
