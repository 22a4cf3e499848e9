// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/type.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace phobos::compiler::ir {
namespace {

enum class Class { kFloat, kSigned, kUnsigned, kBool };

struct Row {
  DType dtype;
  std::string_view name;
  Class cls;
  int bits;
};

// In the order of DType, so that a row is found by its number.
constexpr std::array<Row, 13> kRows = {{
    {DType::kF16, "f16", Class::kFloat, 16},
    {DType::kBF16, "bf16", Class::kFloat, 16},
    {DType::kF32, "f32", Class::kFloat, 32},
    {DType::kF64, "f64", Class::kFloat, 64},
    {DType::kI8, "i8", Class::kSigned, 8},
    {DType::kI16, "i16", Class::kSigned, 16},
    {DType::kI32, "i32", Class::kSigned, 32},
    {DType::kI64, "i64", Class::kSigned, 64},
    {DType::kU8, "u8", Class::kUnsigned, 8},
    {DType::kU16, "u16", Class::kUnsigned, 16},
    {DType::kU32, "u32", Class::kUnsigned, 32},
    {DType::kU64, "u64", Class::kUnsigned, 64},
    {DType::kBool, "bool", Class::kBool, 8},
}};

const Row& RowOf(DType t) { return kRows[static_cast<size_t>(t)]; }

}  // namespace

bool IsFloat(DType t) { return RowOf(t).cls == Class::kFloat; }

bool IsInteger(DType t) {
  return RowOf(t).cls == Class::kSigned || RowOf(t).cls == Class::kUnsigned;
}

bool IsSigned(DType t) { return RowOf(t).cls == Class::kSigned; }

int BitWidth(DType t) { return RowOf(t).bits; }

int ByteSize(DType t) { return RowOf(t).bits / 8; }

std::string_view Name(DType t) { return RowOf(t).name; }

std::optional<DType> DTypeNamed(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> DotResult(DType t) {
  switch (t) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
      return DType::kF32;
    case DType::kF64:
      return DType::kF64;
    case DType::kI8:
    case DType::kU8:
      return DType::kI32;
    default:
      return std::nullopt;
  }
}

int64_t Type::elements() const {
  int64_t product = 1;
  for (int64_t side : shape) product *= side;
  return product;
}

std::string Type::ToString() const {
  if (shape.empty()) return std::string(Name(dtype));
  return absl::StrCat(std::string(Name(dtype)), "[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace phobos::compiler::ir
