// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/number.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/ir/rules/comparison.h"

namespace phobos::compiler::interpreter {
namespace {

using ir::DType;
using ir::Opcode;

template <typename Float, typename Integer>
Integer BitsOf(Float value) {
  Integer bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

template <typename Float, typename Integer>
Float FloatOf(Integer bits) {
  Float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

float F32(Bits bits) { return FloatOf<float>(static_cast<uint32_t>(bits)); }
double F64(Bits bits) { return FloatOf<double>(bits); }
Bits OfF32(float value) { return BitsOf<float, uint32_t>(value); }
Bits OfF64(double value) { return BitsOf<double, int64_t>(value); }

// Encodes a value that the type has exactly.
Bits Encode(DType dtype, long double value) {
  if (dtype == DType::kF64) return OfF64(static_cast<double>(value));
  const uint32_t bits = static_cast<uint32_t>(OfF32(static_cast<float>(value)));
  if (dtype == DType::kF32) return bits;
  if (dtype == DType::kBF16) return bits >> 16;
  const uint32_t sign = bits >> 16 & 0x8000;
  const long double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (std::isinf(value)) return sign | 0x7c00;
  if (magnitude < 0x1p-14L) return sign | static_cast<uint32_t>(magnitude * 0x1p24L);
  const int exponent = std::ilogb(magnitude);
  const auto fraction = static_cast<uint32_t>(std::ldexp(magnitude, 10 - exponent)) & 0x3ff;
  return sign | static_cast<uint32_t>(exponent + 15) << 10 | fraction;
}

template <typename T>
T FloorDivision(T a, T b, T* modulus) {
  if (b == 0) return *modulus = 0;
  T remainder = std::fmod(a, b);
  T ratio = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      ratio -= 1;
    }
  } else {
    remainder = std::copysign(T{0}, b);
  }
  *modulus = remainder;
  if (ratio == 0) return std::copysign(T{0}, a / b);
  const T floor = std::floor(ratio);
  return ratio - floor > T{0.5} ? floor + 1 : floor;
}

template <typename T>
T Least(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <typename T>
T Power(T value, int power) {
  T result = 1;
  for (; power > 0; power >>= 1, value *= value) {
    if (power & 1) result *= value;
  }
  return result;
}

// Of 0 and infinity in double, which is exact there: glibc's powl is wrong for -inf to the -2^63.
long double PowerOf(long double a, long double b) {
  if (a == 0 || std::isinf(a)) return std::pow(static_cast<double>(a), static_cast<double>(b));
  return std::pow(a, b);
}

// What a built-in of limited accuracy gives, as a long double: wider than every type, so that one
// rounding is left to do.
std::optional<long double> BuiltIn(Opcode opcode, long double a, long double b) {
  switch (opcode) {
    case Opcode::kExp:
      return std::exp(a);
    case Opcode::kExp2:
      return std::exp2(a);
    case Opcode::kExpm1:
      return std::expm1(a);
    case Opcode::kLog:
      return std::log(a);
    case Opcode::kLog2:
      return std::log2(a);
    case Opcode::kLog1p:
      return std::log1p(a);
    case Opcode::kPow:
      return PowerOf(a, b);
    case Opcode::kRsqrt:
      return 1 / std::sqrt(a);
    case Opcode::kSin:
      return std::sin(a);
    case Opcode::kCos:
      return std::cos(a);
    case Opcode::kTanh:
      return std::tanh(a);
    case Opcode::kErf:
      return std::erf(a);
    case Opcode::kSigmoid:
      return 1 / (1 + std::exp(-a));
    default:
      return std::nullopt;
  }
}

// f32 and f64, in the type itself.
template <typename T>
std::optional<T> FloatResult(const ir::Op& op, T a, T b, T c) {
  T modulus;
  switch (op.opcode) {
    case Opcode::kAdd:
      return a + b;
    case Opcode::kSub:
      return a - b;
    case Opcode::kMul:
      return a * b;
    case Opcode::kDiv:
      return a / b;
    case Opcode::kFloorDiv:
      return FloorDivision(a, b, &modulus);
    case Opcode::kMod:
      FloorDivision(a, b, &modulus);
      return modulus;
    case Opcode::kPowInt:
      return Power(a, op.index);
    case Opcode::kNegate:
      return -a;
    case Opcode::kAbs:
      return std::fabs(a);
    case Opcode::kMinimum:
      return Least(a, b);
    case Opcode::kMaximum:
      return -Least(-a, -b);
    case Opcode::kFma:
      return std::fma(a, b, c);
    case Opcode::kFloor:
      return std::floor(a);
    case Opcode::kCeil:
      return std::ceil(a);
    case Opcode::kRound:
      return std::nearbyint(a);
    case Opcode::kSqrt:
      return std::sqrt(a);
    default:
      return std::nullopt;
  }
}

// f16 and bf16: in f32 and rounded, but fma with one rounding of the exact value.
std::optional<Bits> NarrowResult(const ir::Op& op, DType dtype, const std::vector<Bits>& v) {
  if (op.opcode == Opcode::kFma) {
    const double product =
        static_cast<double>(ToReal(dtype, v[0])) * static_cast<double>(ToReal(dtype, v[1]));
    const double addend = static_cast<double>(ToReal(dtype, v[2]));
    const double sum = product + addend;
    if (!std::isfinite(sum)) return FromReal(dtype, sum);
    const double part = sum - product;
    const double rest = (product - (sum - part)) + (addend - part);
    const double outwards = sum < 0 ? -rest : rest;
    return FromReal(dtype, sum, outwards > 0 ? 1 : outwards < 0 ? -1 : 0);
  }
  float wide[3] = {};
  for (size_t i = 0; i < v.size(); ++i) wide[i] = static_cast<float>(ToReal(dtype, v[i]));
  const std::optional<float> result = FloatResult<float>(op, wide[0], wide[1], wide[2]);
  if (!result.has_value()) return std::nullopt;
  return FromReal(dtype, *result);
}

__int128 FloorDivision(__int128 a, __int128 b, __int128* modulus) {
  if (b == 0) {
    *modulus = 0;
    return 0;
  }
  __int128 quotient = a / b;
  *modulus = a % b;
  if (*modulus != 0 && (*modulus < 0) != (b < 0)) {
    --quotient;
    *modulus += b;
  }
  return quotient;
}

std::optional<__int128> IntegerResult(const ir::Op& op, DType dtype, __int128 a, __int128 b) {
  const int width = dtype == DType::kBool ? 1 : ir::BitWidth(dtype);
  const bool in_width = b >= 0 && b < width;
  __int128 modulus;
  switch (op.opcode) {
    case Opcode::kAdd:
      return a + b;
    case Opcode::kSub:
      return a - b;
    case Opcode::kMul:
      return static_cast<__int128>(static_cast<unsigned __int128>(a) *
                                   static_cast<unsigned __int128>(b));
    case Opcode::kFloorDiv:
      return FloorDivision(a, b, &modulus);
    case Opcode::kMod:
      FloorDivision(a, b, &modulus);
      return modulus;
    case Opcode::kPowInt:
      return static_cast<__int128>(Power(static_cast<unsigned __int128>(a), op.index));
    case Opcode::kNegate:
      return -a;
    case Opcode::kAbs:
      return a < 0 ? -a : a;
    case Opcode::kMinimum:
      return std::min(a, b);
    case Opcode::kMaximum:
      return std::max(a, b);
    case Opcode::kMulHigh:
      return ir::IsSigned(dtype) ? (a * b) >> width
                                 : static_cast<__int128>((static_cast<unsigned __int128>(a) *
                                                          static_cast<unsigned __int128>(b)) >>
                                                         width);
    case Opcode::kShiftLeft:
      return in_width ? static_cast<__int128>(static_cast<unsigned __int128>(a) << b) : 0;
    case Opcode::kShiftRight:
      return in_width ? a >> b : (a < 0 ? -1 : 0);
    case Opcode::kAnd:
      return a & b;
    case Opcode::kOr:
      return a | b;
    case Opcode::kXor:
      return a ^ b;
    case Opcode::kNot:
      return ~a;  // of a bool, FromInteger keeps the lowest bit
    default:
      return std::nullopt;
  }
}

bool Compare(Opcode opcode, DType dtype, Bits a, Bits b) {
  return ir::IsFloat(dtype) ? *ir::Compared(opcode, ToReal(dtype, a), ToReal(dtype, b))
                            : *ir::Compared(opcode, ToInteger(dtype, a), ToInteger(dtype, b));
}

Bits Cast(DType from, DType to, Bits bits) {
  if (ir::IsFloat(from)) {
    const long double value = ToReal(from, bits);
    if (ir::IsFloat(to)) return FromReal(to, value);
    if (to == DType::kBool) return value != 0;
    if (std::isnan(value)) return 0;
    const int width = ir::BitWidth(to) - (ir::IsSigned(to) ? 1 : 0);
    const __int128 greatest = (__int128{1} << width) - 1;
    const __int128 least = ir::IsSigned(to) ? -greatest - 1 : 0;
    if (value >= std::ldexp(1.0L, width)) return FromInteger(to, greatest);
    if (value <= static_cast<long double>(least)) return FromInteger(to, least);
    return FromInteger(to, static_cast<__int128>(value));
  }
  const __int128 value = ToInteger(from, bits);
  if (to == DType::kBool) return value != 0;
  // 64 bits fit a long double.
  if (ir::IsFloat(to)) return FromReal(to, static_cast<long double>(value));
  return FromInteger(to, value);
}

Bits Bitcast(DType from, DType to, Bits bits) {
  if (!ir::IsFloat(to)) return FromInteger(to, bits);
  const int width = ir::BitWidth(from);
  return width == 64 ? bits : bits & ((Bits{1} << width) - 1);
}

std::optional<Bits> ApplyToFloats(const ir::Op& op, DType dtype, const std::vector<Bits>& v) {
  const auto real = [&](size_t i) { return i < v.size() ? ToReal(dtype, v[i]) : 0; };
  if (const auto exact = BuiltIn(op.opcode, real(0), real(1)); exact.has_value()) {
    return FromReal(dtype, *exact);
  }
  const auto bits = [&](size_t i) { return i < v.size() ? v[i] : 0; };
  if (dtype == DType::kF32) {
    const auto result = FloatResult(op, F32(bits(0)), F32(bits(1)), F32(bits(2)));
    return result.has_value() ? std::optional<Bits>(OfF32(*result)) : std::nullopt;
  }
  if (dtype == DType::kF64) {
    const auto result = FloatResult(op, F64(bits(0)), F64(bits(1)), F64(bits(2)));
    return result.has_value() ? std::optional<Bits>(OfF64(*result)) : std::nullopt;
  }
  return NarrowResult(op, dtype, v);
}

}  // namespace

FloatFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {11, -24, 5};
    case DType::kBF16:
      return {8, -133, 120};
    case DType::kF32:
      return {24, -149, 104};
    default:
      return {53, -1074, 971};
  }
}

long double ToReal(DType dtype, Bits bits) {
  switch (dtype) {
    case DType::kF64:
      return F64(bits);
    case DType::kF32:
      return F32(bits);
    case DType::kBF16:
      return F32(bits << 16);
    default:
      break;
  }
  const long double sign = bits & 0x8000 ? -1.0L : 1.0L;
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 31) {
    return fraction != 0 ? std::numeric_limits<long double>::quiet_NaN()
                         : sign * std::numeric_limits<long double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<long double>(fraction), -24);
  return sign * std::ldexp(static_cast<long double>(fraction + 1024), exponent - 25);
}

Bits FromReal(DType dtype, long double value, int sticky) {
  if (std::isnan(value) || std::isinf(value) || value == 0) return Encode(dtype, value);
  const FloatFormat format = FormatOf(dtype);
  const long double magnitude = std::fabs(value);
  const int exponent = std::max(std::ilogb(magnitude) - format.digits + 1, format.least);
  const long double scaled = std::ldexp(magnitude, -exponent);
  long double whole = std::floor(scaled);
  const long double part = scaled - whole;
  const bool is_odd = std::fmod(whole, 2.0L) != 0;
  if (part > 0.5L || (part == 0.5L && (sticky > 0 || (sticky == 0 && is_odd)))) ++whole;
  long double rounded = std::ldexp(whole, exponent);
  const long double greatest = std::ldexp(std::ldexp(1.0L, format.digits) - 1, format.greatest);
  if (rounded > greatest) rounded = std::numeric_limits<long double>::infinity();
  return Encode(dtype, std::copysign(rounded, value));
}

Bits FromInteger(DType dtype, __int128 value) {
  switch (dtype) {
    case DType::kI8:
      return static_cast<int8_t>(value);
    case DType::kI16:
      return static_cast<int16_t>(value);
    case DType::kI32:
      return static_cast<int32_t>(value);
    case DType::kU8:
      return static_cast<uint8_t>(value);
    case DType::kU16:
      return static_cast<uint16_t>(value);
    case DType::kU32:
      return static_cast<uint32_t>(value);
    case DType::kBool:
      return static_cast<Bits>(value & 1);
    default:
      return static_cast<int64_t>(value);
  }
}

__int128 ToInteger(DType dtype, Bits bits) {
  if (dtype == DType::kU64) return static_cast<__int128>(static_cast<uint64_t>(bits));
  return bits;
}

bool IsNan(DType dtype, Bits bits) { return ir::IsFloat(dtype) && std::isnan(ToReal(dtype, bits)); }

Bits MultiplyAdd(DType dtype, Bits a, Bits b, Bits sum) {
  switch (dtype) {
    case DType::kF32:
      return OfF32(std::fma(F32(a), F32(b), F32(sum)));
    case DType::kF64:
      return OfF64(std::fma(F64(a), F64(b), F64(sum)));
    default:
      return FromInteger(dtype, ToInteger(dtype, a) * ToInteger(dtype, b) + ToInteger(dtype, sum));
  }
}

Bits RoundTo(ir::Precision precision, Bits f32) {
  const long double value = ToReal(DType::kF32, f32);
  if (precision == ir::Precision::kExact || std::isnan(value)) return f32;
  if (precision == ir::Precision::kF16) {
    return FromReal(DType::kF32, ToReal(DType::kF16, FromReal(DType::kF16, value)));
  }
  if (value == 0 || std::isinf(value)) return f32;
  // Of 24 binary digits 11 stay, of smaller numbers those down to 2^-136.
  const int least = std::max(std::ilogb(value) - 10, -136);
  return FromReal(DType::kF32, std::ldexp(std::nearbyint(std::ldexp(value, -least)), least));
}

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0];
    const uint64_t third = uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<uint32_t>(third >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(third),
        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

std::optional<Bits> Apply(const ir::Op& op, DType dtype, const std::vector<Bits>& v) {
  switch (op.opcode) {
    case Opcode::kSelect:
      return v[0] ? v[1] : v[2];
    case Opcode::kCast:
      return Cast(dtype, op.type.dtype, v[0]);
    case Opcode::kBitcast:
      return Bitcast(dtype, op.type.dtype, v[0]);
    case Opcode::kRandomU32: {
      const auto half = [](Bits bits, int which) {
        return static_cast<uint32_t>(static_cast<uint64_t>(bits) >> (32 * which));
      };
      return Philox({half(v[1], 0), half(v[1], 1), 0, 0}, {half(v[0], 0), half(v[0], 1)})[0];
    }
    case Opcode::kIsNan:
      return IsNan(dtype, v[0]);
    case Opcode::kIsInf:
      return std::isinf(ToReal(dtype, v[0]));
    default:
      break;
  }
  if (op.opcode >= Opcode::kEqual && op.opcode <= Opcode::kGreaterEqual) {
    return Compare(op.opcode, dtype, v[0], v[1]);
  }
  if (ir::IsFloat(dtype)) return ApplyToFloats(op, dtype, v);
  const std::optional<__int128> result =
      IntegerResult(op, dtype, ToInteger(dtype, v[0]), v.size() > 1 ? ToInteger(dtype, v[1]) : 0);
  if (!result.has_value()) return std::nullopt;
  return FromInteger(dtype, *result);
}

}  // namespace phobos::compiler::interpreter
