// SPDX-License-Identifier: Apache-2.0
//
// Element types and tile types of the tile IR. Values, any thread.
#ifndef PHOBOS_COMPILER_IR_TYPE_H_
#define PHOBOS_COMPILER_IR_TYPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phobos::compiler::ir {

enum class DType { kF16, kBF16, kF32, kF64, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kBool };
// Every one of them, in the order of the enum.
inline constexpr DType kDTypes[] = {
    DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kI8,  DType::kI16, DType::kI32,
    DType::kI64, DType::kU8,   DType::kU16, DType::kU32, DType::kU64, DType::kBool};

bool IsFloat(DType t);
bool IsInteger(DType t);  // bool is not
bool IsSigned(DType t);   // signed integers
int BitWidth(DType t);    // of the value; kBool is 8 in memory and 1 as a value: this gives 8
int ByteSize(DType t);    // in memory
std::string_view Name(DType t);  // "f32"
std::optional<DType> DTypeNamed(std::string_view name);
// What products of the type are summed in by a kDot; nothing: there is no kDot of the type.
std::optional<DType> DotResult(DType t);

// The type of a value: a tile of compile-time shape. Rank 0 is a scalar.
struct Type {
  DType dtype = DType::kI64;
  std::vector<int64_t> shape;  // each side >= 1

  bool is_scalar() const { return shape.empty(); }
  int64_t elements() const;      // 1 for a scalar
  std::string ToString() const;  // "f32", "f32[256]", "f32[64, 32]"

  friend bool operator==(const Type&, const Type&) = default;
};

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_TYPE_H_
