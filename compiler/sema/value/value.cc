// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/value/value.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "base/concat.h"

namespace phobos::compiler::sema {

Value Value::OfLiteral(Literal literal) {
  Value value;
  value.kind = Kind::kLiteral;
  value.literal = std::move(literal);
  return value;
}

Value Value::Known(ir::DType dtype, ir::ConstantValue constant) {
  Value value;
  value.kind = Kind::kComputed;
  value.type.dtype = dtype;
  value.known = constant;
  return value;
}

Value Value::Computed(ir::ValueId id, ir::Type type) {
  Value value;
  value.kind = Kind::kComputed;
  value.id = id;
  value.type = std::move(type);
  return value;
}

Value Value::Tensor(int32_t param) {
  Value value;
  value.kind = Kind::kTensor;
  value.param = param;
  return value;
}

Value Value::OfDType(ir::DType dtype) {
  Value value;
  value.kind = Kind::kDType;
  value.dtype = dtype;
  return value;
}

Value Value::Tuple(std::vector<Value> elements) {
  Value value;
  value.kind = Kind::kTuple;
  value.elements = std::move(elements);
  return value;
}

WideInt WideOf(ir::DType dtype, int64_t bits) {
  return dtype == ir::DType::kU64 ? WideInt{static_cast<uint64_t>(bits)} : WideInt{bits};
}

std::optional<WideInt> KnownInt(const Value& value) {
  if (value.is_literal()) return AsWide(value.literal);
  if (!value.is_computed() || !value.known.has_value()) return std::nullopt;
  const int64_t* bits = std::get_if<int64_t>(&*value.known);
  if (bits == nullptr) return std::nullopt;
  return WideOf(value.type.dtype, *bits);
}

std::string WithArticle(ir::DType dtype) {
  const std::string name(ir::Name(dtype));
  const bool vowel = name[0] == 'f' || name[0] == 'i';  // "an eff", "an eye"
  return Concat(vowel ? "an " : "a ", name);
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  if (shape.empty()) return "[] (a scalar)";
  return Concat("[", absl::StrJoin(shape, ", "), "]");
}

std::string Describe(const Value& value, const std::vector<ir::Param>& params) {
  switch (value.kind) {
    case Value::Kind::kLiteral:
      return Concat("the constant ", ToString(value.literal));
    case Value::Kind::kComputed:
      if (value.type.is_scalar()) return Concat(WithArticle(value.type.dtype), " scalar");
      return Concat(WithArticle(value.type.dtype), " tile of shape ", ShapeText(value.type.shape));
    case Value::Kind::kTensor:
      return Concat("tensor ", params[value.param].name);
    case Value::Kind::kDType:
      return Concat("the type ph.", ir::Name(value.dtype));
    case Value::Kind::kNone:
      return "nothing (None)";
    case Value::Kind::kTuple:
      return Concat("a tuple of ", value.elements.size());
  }
  return "?";
}

}  // namespace phobos::compiler::sema
