// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/plan/number.h"

#include <bit>
#include <cmath>
#include <limits>

namespace phobos {

double HalfToDouble(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  double magnitude = 0;
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(fraction + 0x400, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double BFloatToDouble(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

launch::Number ScalarNumber(DType dtype, uint64_t bits) {
  switch (dtype) {
    case DType::kF16:
      return HalfToDouble(static_cast<uint16_t>(bits));
    case DType::kBF16:
      return BFloatToDouble(static_cast<uint16_t>(bits));
    case DType::kF32:
      return double{std::bit_cast<float>(static_cast<uint32_t>(bits))};
    case DType::kF64:
      return std::bit_cast<double>(bits);
    case DType::kI8:
      return int64_t{static_cast<int8_t>(bits)};
    case DType::kI16:
      return int64_t{static_cast<int16_t>(bits)};
    case DType::kI32:
      return int64_t{static_cast<int32_t>(bits)};
    case DType::kU8:
      return int64_t{static_cast<uint8_t>(bits)};
    case DType::kU16:
      return int64_t{static_cast<uint16_t>(bits)};
    case DType::kU32:
      return int64_t{static_cast<uint32_t>(bits)};
    case DType::kBool:
      return int64_t{(bits & 0xff) != 0};
    case DType::kI64:
    case DType::kU64:
    case DType::kUnspecified:
      break;
  }
  return static_cast<int64_t>(bits);
}

}  // namespace phobos
