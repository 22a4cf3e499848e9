// SPDX-License-Identifier: Apache-2.0
//
// What an expression of a kernel's body stands for while it is checked: a literal that has no type
// yet, a computed scalar or tile, or a thing that is no number (a tensor, a type, None, a tuple).
// Plain values, any thread.
#ifndef PHOBOS_COMPILER_SEMA_VALUE_VALUE_H_
#define PHOBOS_COMPILER_SEMA_VALUE_VALUE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/sema/value/literal.h"

namespace phobos::compiler::sema {

struct Value {
  enum class Kind { kLiteral, kComputed, kTensor, kDType, kNone, kTuple };

  Kind kind = Kind::kNone;
  Literal literal = false;                 // kLiteral
  ir::Type type;                           // kComputed
  ir::ValueId id = ir::kNoValue;           // kComputed; kNoValue: the scalar constant `known`
  std::optional<ir::ConstantValue> known;  // kComputed: a scalar whose value is known here
  int32_t param = 0;                       // kTensor: index of the parameter
  ir::DType dtype = ir::DType::kF32;       // kDType
  std::vector<Value> elements;             // kTuple

  static Value OfLiteral(Literal literal);
  static Value OfInt(WideInt value) { return OfLiteral(value); }
  static Value Known(ir::DType dtype, ir::ConstantValue constant);
  static Value Computed(ir::ValueId id, ir::Type type);
  static Value Tensor(int32_t param);
  static Value OfDType(ir::DType dtype);
  static Value Tuple(std::vector<Value> elements);

  bool is_literal() const { return kind == Kind::kLiteral; }
  bool is_computed() const { return kind == Kind::kComputed; }
  // A number or bool, a string literal excepted.
  bool is_number() const { return is_computed() || (is_literal() && !IsString(literal)); }
  // Of rank 0. REQUIRES: is_number().
  bool is_scalar() const { return is_literal() || type.is_scalar(); }
};

// The integer (or bool) that `value` is known to be.
std::optional<WideInt> KnownInt(const Value& value);
// A known constant of type `dtype` as an exact integer: undoes the bit pattern of u64.
WideInt WideOf(ir::DType dtype, int64_t bits);

// For messages: "the literal 3", "an i32 scalar", "an f32 tile of shape [256]", "tensor x".
std::string Describe(const Value& value, const std::vector<ir::Param>& params);
std::string ShapeText(const std::vector<int64_t>& shape);  // "[256]", "[] (a scalar)"
// "an f32", "a u8".
std::string WithArticle(ir::DType dtype);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_VALUE_VALUE_H_
