// SPDX-License-Identifier: Apache-2.0
//
// Argument: one argument of a launch from C++: a tensor's memory with its shape, or a scalar. A
// value; it owns nothing. Any thread.
#ifndef PHOBOS_CLIENT_CPP_ARGUMENT_H_
#define PHOBOS_CLIENT_CPP_ARGUMENT_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "client/stub/wire/types.h"

namespace phobos {

// Elements of the types that C++ does not have, by their bits.
struct Half {
  uint16_t bits = 0;
};
struct BFloat16 {
  uint16_t bits = 0;
};

// The language's type of a C++ type.
template <typename T>
constexpr DType DTypeOf() {
  using Bare = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Bare, Half>) return DType::kF16;
  if constexpr (std::is_same_v<Bare, BFloat16>) return DType::kBF16;
  if constexpr (std::is_same_v<Bare, float>) return DType::kF32;
  if constexpr (std::is_same_v<Bare, double>) return DType::kF64;
  if constexpr (std::is_same_v<Bare, bool>) return DType::kBool;
  if constexpr (std::is_integral_v<Bare> && std::is_signed_v<Bare>) {
    return sizeof(Bare) == 1   ? DType::kI8
           : sizeof(Bare) == 2 ? DType::kI16
           : sizeof(Bare) == 4 ? DType::kI32
                               : DType::kI64;
  }
  if constexpr (std::is_integral_v<Bare> && std::is_unsigned_v<Bare>) {
    return sizeof(Bare) == 1   ? DType::kU8
           : sizeof(Bare) == 2 ? DType::kU16
           : sizeof(Bare) == 4 ? DType::kU32
                               : DType::kU64;
  }
  return DType::kUnspecified;
}

struct Argument {
  static constexpr int kMostDims = 4;

  uint64_t bits = 0;  // a tensor's address, or a scalar's value in the low bytes
  DType dtype = DType::kUnspecified;
  bool is_tensor = false;
  int rank = 0;
  int64_t shape[kMostDims] = {};

  // Row-major and contiguous; must stay valid for the call it is given to. More than four sides are
  // too many for every kernel: the launch says so.
  template <typename T>
  static Argument Tensor(T* data, std::initializer_list<int64_t> shape) {
    static_assert(DTypeOf<T>() != DType::kUnspecified, "no such element type in the language");
    Argument argument;
    argument.bits = reinterpret_cast<uint64_t>(data);
    argument.dtype = DTypeOf<T>();
    argument.is_tensor = true;
    argument.rank = static_cast<int>(shape.size());
    std::copy_n(shape.begin(), std::min<size_t>(shape.size(), kMostDims), argument.shape);
    return argument;
  }

  template <typename T>
  static Argument Scalar(T value) {
    static_assert(DTypeOf<T>() != DType::kUnspecified, "no such scalar type in the language");
    Argument argument;
    std::memcpy(&argument.bits, &value, sizeof(value));
    argument.dtype = DTypeOf<T>();
    return argument;
  }
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_ARGUMENT_H_
