// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/tune/unchanged.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/root_mean_square.h"
#include "client/cpp/plan/number.h"

namespace phobos {
namespace {

// One float type: how it is stored, read, and what stands for a value that is certainly wrong.
struct F16 {
  using Bits = uint16_t;
  static double Read(Bits bits) { return HalfToDouble(bits); }
  static constexpr Bits kSign = 0x8000, kOne = 0x3c00, kTwo = 0x4000;
};
struct BF16 {
  using Bits = uint16_t;
  static double Read(Bits bits) { return BFloatToDouble(bits); }
  static constexpr Bits kSign = 0x8000, kOne = 0x3f80, kTwo = 0x4000;
};
struct F32 {
  using Bits = uint32_t;
  static double Read(Bits bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
  }
  static constexpr Bits kSign = 0x80000000, kOne = 0x3f800000, kTwo = 0x40000000;
};
struct F64 {
  using Bits = uint64_t;
  static double Read(Bits bits) {
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
  }
  static constexpr Bits kSign = uint64_t{1} << 63, kOne = uint64_t{0x3ff} << 52,
                        kTwo = uint64_t{0x400} << 52;
};

template <typename Bits>
Bits Load(const void* base, int64_t index) {
  Bits bits;
  memcpy(&bits, static_cast<const char*>(base) + index * static_cast<int64_t>(sizeof(Bits)),
         sizeof(Bits));
  return bits;
}

template <typename Bits>
void Store(void* base, int64_t index, Bits bits) {
  memcpy(static_cast<char*>(base) + index * static_cast<int64_t>(sizeof(Bits)), &bits,
         sizeof(Bits));
}

template <typename Float>
bool IsAcceptedFloat(const void* got, const void* want, int64_t count, const Tolerance& tolerance,
                     const Part& part) {
  using Bits = typename Float::Bits;
  // The mean is wanted only where an element does not match by its own size; mostly the first one
  // tells.
  double rms = -1;
  for (int64_t i = 0; i < part.count; ++i) {
    const Bits got_bits = Load<Bits>(got, i), want_bits = Load<Bits>(want, part.begin + i);
    if (got_bits == want_bits) continue;
    const double g = Float::Read(got_bits), w = Float::Read(want_bits);
    if (std::isnan(g) && std::isnan(w)) continue;
    const double difference = std::fabs(g - w);
    if (!std::isfinite(difference)) return false;
    if (difference <= tolerance.atol + tolerance.rtol * std::fabs(w)) continue;
    if (rms < 0) {
      rms = RootMeanSquare(count, [want](int64_t at) { return Float::Read(Load<Bits>(want, at)); });
    }
    if (difference > tolerance.atol + tolerance.rtol * std::max(std::fabs(w), rms)) return false;
  }
  return true;
}

// The other sign, and at least 1 in size: |wrong - want| >= 1 whatever want is.
template <typename Float>
void FillFloat(const void* want, int64_t count, void* out) {
  using Bits = typename Float::Bits;
  for (int64_t i = 0; i < count; ++i) {
    const Bits bits = Load<Bits>(want, i);
    const double value = Float::Read(bits);
    const Bits magnitude = std::isfinite(value) && std::fabs(value) >= 1
                               ? static_cast<Bits>(bits & ~Float::kSign)
                               : (i % 2 == 0 ? Float::kOne : Float::kTwo);
    Store<Bits>(out, i, static_cast<Bits>(magnitude | (~bits & Float::kSign)));
  }
}

}  // namespace

Tolerance ToleranceFor(DType dtype, const TuneOptions& options) {
  Tolerance own;
  switch (dtype) {
    case DType::kF16:
      own = {4e-3, 1e-5};
      break;
    case DType::kBF16:
      own = {1.6e-2, 1e-5};
      break;
    case DType::kF32:
      own = {1.3e-6, 1e-5};
      break;
    case DType::kF64:
      own = {1e-7, 1e-7};
      break;
    default:
      return own;
  }
  return {std::max(own.rtol, options.rtol.value_or(0)),
          std::max(own.atol, options.atol.value_or(0))};
}

bool IsAccepted(DType dtype, const void* got, const void* want, int64_t count,
                const Tolerance& tolerance, const Part& part) {
  if (part.count == 0) return true;
  switch (dtype) {
    case DType::kF16:
      return IsAcceptedFloat<F16>(got, want, count, tolerance, part);
    case DType::kBF16:
      return IsAcceptedFloat<BF16>(got, want, count, tolerance, part);
    case DType::kF32:
      return IsAcceptedFloat<F32>(got, want, count, tolerance, part);
    case DType::kF64:
      return IsAcceptedFloat<F64>(got, want, count, tolerance, part);
    default:
      return memcmp(got, static_cast<const char*>(want) + part.begin * ElementBytes(dtype),
                    static_cast<size_t>(part.count * ElementBytes(dtype))) == 0;
  }
}

void FillWithWrong(DType dtype, const void* want, int64_t count, void* out) {
  switch (dtype) {
    case DType::kF16:
      return FillFloat<F16>(want, count, out);
    case DType::kBF16:
      return FillFloat<BF16>(want, count, out);
    case DType::kF32:
      return FillFloat<F32>(want, count, out);
    case DType::kF64:
      return FillFloat<F64>(want, count, out);
    case DType::kBool:
      for (int64_t i = 0; i < count; ++i) {
        Store<uint8_t>(out, i, Load<uint8_t>(want, i) == 0 ? 1 : 0);
      }
      return;
    default:
      for (int64_t i = 0; i < count * ElementBytes(dtype); ++i) {
        Store<uint8_t>(out, i, static_cast<uint8_t>(~Load<uint8_t>(want, i)));
      }
      return;
  }
}

}  // namespace phobos
