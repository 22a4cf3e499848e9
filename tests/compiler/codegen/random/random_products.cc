// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/codegen/random/random_products.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phobos::compiler::testing {

using ir::DType;
using ir::Opcode;
using ir::Shape;
using ir::ValueId;

namespace {

constexpr DType kMultiplied[] = {DType::kF16, DType::kBF16, DType::kF32,
                                 DType::kF64, DType::kI8,   DType::kU8};
constexpr int64_t kMostOfOperand = 8000;   // elements of its tensor
constexpr int64_t kMostProducts = 100000;  // of a tile

}  // namespace

int64_t RandomProducts::Side() {
  switch (Below(4)) {
    case 0:
      return 1;
    case 1:
      return 1 + Below(40);
    default:
      return int64_t{8} << Below(4);
  }
}

int64_t RandomProducts::WholeSide(int64_t least) { return Below(6) == 0 ? 1 : least << Below(3); }

RandomProducts::Form RandomProducts::NewForm() {
  Form form{.dtype = OneOf(kMultiplied), .leading = {}, .is_transposed = Below(2) == 0};
  if (Below(5) == 0) form.leading.push_back(1 + Below(2));
  form.precision =
      form.dtype == DType::kF32 ? static_cast<ir::Precision>(Below(3)) : ir::Precision::kExact;
  const bool is_whole = Below(3) != 0;  // as matrix instructions have them
  do {
    form.m = is_whole ? WholeSide(16) : Side();
    form.n = is_whole ? WholeSide(16) : Side();
    form.k = is_whole ? WholeSide(32) : Side();
  } while (form.m * form.n * form.k > kMostProducts);
  return form;
}

ir::Type RandomProducts::SumType(const Form& form) const {
  ir::Type sum{*ir::DotResult(form.dtype), form.leading};
  sum.shape.push_back(form.m);
  sum.shape.push_back(form.n);
  return sum;
}

bool RandomProducts::MayBeReordered(const Form& form) {
  if (!ir::IsFloat(form.dtype) || form.dtype == DType::kF64) return false;
  if (form.dtype == DType::kF32 && form.precision != ir::Precision::kTf32) return false;
  return form.m % 16 == 0 && form.n % 8 == 0 && form.k * ir::ByteSize(form.dtype) % 32 == 0;
}

ValueId RandomProducts::Small(ValueId a) {
  const ir::Type type = TypeOf(a);
  const ValueId whole = b_.Cast(a, DType::kI32);
  const ValueId limit = b_.Broadcast(b_.Constant(DType::kI32, Below(2) == 0 ? 5 : -5), type.shape);
  return b_.Cast(b_.Elementwise(Opcode::kMod, {whole, limit}), type.dtype);
}

ValueId RandomProducts::Start(const Form& form) {
  const ValueId start = Get(SumType(form));
  return MayBeReordered(form) ? Small(start) : start;
}

ValueId RandomProducts::ProductOf(const Form& form, ValueId a, ValueId b, ValueId acc) {
  return b_.Dot(a, b, acc, form.is_transposed, form.precision);
}

void RandomProducts::Multiply(ValueId a) {
  if (!ir::DotResult(TypeOf(a).dtype).has_value()) a = Keep(b_.Cast(a, OneOf(kMultiplied)));
  if (moves_ && Below(4) == 0) {
    const int64_t elements = TypeOf(a).elements();
    a = b_.Reshape(a, Below(2) == 0 ? Shape{1, elements} : Shape{elements, 1});
  }
  ir::Type type = TypeOf(a);
  const size_t rank = type.shape.size();
  Form form{.dtype = type.dtype,
            .leading = Shape(type.shape.begin(), type.shape.end() - 2),
            .m = type.shape[rank - 2],
            .k = type.shape[rank - 1],
            .is_transposed = Below(2) == 0};
  form.precision =
      form.dtype == DType::kF32 ? static_cast<ir::Precision>(Below(3)) : ir::Precision::kExact;
  ValueId b;
  if (!moves_ || form.m * form.m * form.k > kMostProducts || Below(2) == 0) {
    form.n = Below(3) == 0 ? 1 : 1 + Below(40);
    type.shape[rank - 2] = form.is_transposed ? form.n : form.k;
    type.shape[rank - 1] = form.is_transposed ? form.k : form.n;
    b = Below(3) == 0 ? Get(type)
                      : Load(NewOperand(form, type.shape[rank - 2], type.shape[rank - 1], 1, 1));
  } else {
    // Of the shape of a, so that its numbers differ from each other.
    form.n = form.m;
    b = Get(type);
    std::vector<int32_t> permutation;
    for (size_t axis = 0; axis < rank; ++axis) permutation.push_back(static_cast<int32_t>(axis));
    std::swap(permutation[rank - 2], permutation[rank - 1]);
    if (!form.is_transposed) b = b_.Transpose(b, permutation);
  }
  if (MayBeReordered(form)) {
    a = Small(a);
    b = Small(b);
  }
  Keep(ProductOf(form, a, b, Below(2) == 0 ? Start(form) : ir::kNoValue));
  if (Below(3) == 0) shapes_.push_back(SumType(form).shape);
}

// A tensor that nobody writes, somewhat larger or smaller than what is read of it.
RandomProducts::Operand RandomProducts::NewOperand(const Form& form, int64_t rows, int64_t columns,
                                                   int64_t row_steps, int64_t column_steps) {
  Operand operand{.shape = form.leading};
  operand.shape.push_back(rows);
  operand.shape.push_back(columns);
  std::vector<ir::Dim> dims;
  for (int64_t side : form.leading) dims.push_back({.extent = -1, .literal = side});
  for (const int64_t side : {rows * row_steps, columns * column_steps}) {
    const int64_t literal = Below(3) == 0 ? 1 + Below(side + 8) : side;
    dims.push_back(
        {.extent = Below(3) == 0 ? static_cast<int32_t>(Below(2)) : -1, .literal = literal});
    if (dims.back().extent >= 0) dims.back().literal = 0;
  }
  const size_t inner = dims.size() - 2;
  while (ElementsOf(dims) > kMostOfOperand && SideOf(dims[inner]) * SideOf(dims[inner + 1]) > 1) {
    ir::Dim& longer = dims[inner + 1 - static_cast<size_t>(Below(2))];
    const int64_t side = SideOf(longer);
    longer = {.extent = -1, .literal = side > 2 ? 1 + side / 2 : 1};
  }
  operand.tensor =
      b_.AddTensor("b" + std::to_string(b_.function().params.size()), form.dtype, dims);
  if (MayBeReordered(form)) small_.insert(operand.tensor);
  const auto place = [&](int64_t side) {
    if (Below(4) == 0) return b_.Int(Below(12) - 3);
    if (Below(3) != 0) return b_.Int(0);
    return b_.Elementwise(Opcode::kMul, {values_[0], b_.Int(side)});
  };
  operand.row = place(rows);
  operand.column = place(columns);
  return operand;
}

ValueId RandomProducts::Load(const Operand& operand) {
  std::vector<ir::Subscript> subscripts;
  for (size_t i = 0; i + 2 < operand.shape.size(); ++i) {
    subscripts.push_back(ir::SliceAt(b_.Int(0), operand.shape[i]));
  }
  subscripts.push_back(ir::SliceAt(operand.row, operand.shape[operand.shape.size() - 2]));
  subscripts.push_back(ir::SliceAt(operand.column, operand.shape.back()));
  return b_.Load(operand.tensor, subscripts);
}

void RandomProducts::MultiplyTensors() {
  const Form form = NewForm();
  const int64_t steps = Below(3) == 0 ? 1 : 1 + Below(4);
  Operand a = NewOperand(form, form.m, form.k, 1, steps);
  Operand b = form.is_transposed ? NewOperand(form, form.n, form.k, 1, steps)
                                 : NewOperand(form, form.k, form.n, steps, 1);
  ValueId product;
  if (steps == 1) {
    product = ProductOf(form, Load(a), Load(b), Below(2) == 0 ? Start(form) : ir::kNoValue);
  } else {
    const ir::Type type = SumType(form);
    const ValueId zero = b_.Broadcast(ir::IsFloat(type.dtype) ? b_.Constant(type.dtype, 0.0)
                                                              : b_.Constant(type.dtype, int64_t{0}),
                                      type.shape);
    const ir::VarId sum = b_.Declare("p", Below(3) == 0 ? Start(form) : zero);
    b_.For(
        b_.Int(0), b_.Int(steps * form.k), form.k,
        [&](ValueId index) {
          a.column = index;
          (form.is_transposed ? b.column : b.row) = index;
          b_.Write(sum, ProductOf(form, Load(a), Load(b), b_.Read(sum)));
        },
        static_cast<int32_t>(1 + Below(2)));
    product = b_.Read(sum);
  }
  Keep(product);
  const Shape sides = ir::LongSides(TypeOf(product).shape);
  if (sides.size() == 1) {
    // A row or column, which other tiles and tensors have as a vector.
    shapes_.push_back(sides);
    if (forms_.arranges && Below(4) != 0) Keep(b_.Reshape(product, sides));
  } else if (moves_ && Below(2) == 0) {
    Keep(b_.Reshape(product, {TypeOf(product).elements()}));
  }
  if (Below(2) == 0) shapes_.push_back(TypeOf(values_.back()).shape);
}

}  // namespace phobos::compiler::testing
