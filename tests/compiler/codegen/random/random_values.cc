// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/codegen/random/random_values.h"

#include <limits>
#include <string>
#include <utility>

namespace phobos::compiler::testing {

using interpreter::Argument;
using interpreter::Bits;
using interpreter::FromInteger;
using interpreter::FromReal;
using interpreter::Launch;
using interpreter::ToReal;
using ir::DType;
using ir::kDTypes;
using ir::Opcode;
using ir::Shape;
using ir::ValueId;

RandomValues::RandomValues(uint64_t seed, const Forms& forms)
    : forms_(forms), b_(ir::Function{.name = "random"}), random_(seed) {}

void RandomValues::AddParams() {
  constexpr int64_t kMultiples[] = {1, 1, 1, 4, 8, 16, 12};
  moves_ = forms_.arranges && Below(3) == 0;
  multiplies_ = Below(3) == 0;
  const int64_t multiples[] = {OneOf(kMultiples), OneOf(kMultiples)};
  sizes_ = {Below(150) / multiples[0] * multiples[0],
            (Below(40) / multiples[1] + 1) * multiples[1]};
  const ir::Dim n{.extent = b_.AddExtent("N", multiples[0])};
  const ir::Dim m{.extent = b_.AddExtent("M", multiples[1])};
  for (int i = 0; i < 2; ++i) {
    types_.push_back(OneOf(kDTypes));
    shapes_.push_back(NewShape());
  }
  for (int i = 0; i < 4; ++i) {
    std::vector<ir::Dim> dims = {n};
    if (Below(3) == 0) dims.push_back(m);
    // The first has enough dimensions for every kind of access.
    while ((Below(2) == 0 || (i == 0 && dims.size() < 3)) && dims.size() < kMaxRank) {
      const ir::Dim literal{.extent = -1, .literal = 1 + Below(6)};
      if (ElementsOf(dims) * literal.literal > kMaxTensorElements) break;
      dims.insert(dims.begin() + Below(static_cast<int64_t>(dims.size()) + 1), literal);
    }
    tensors_.push_back(b_.AddTensor("t" + std::to_string(i), OneOf(types_), dims));
  }
  for (int i = 0; i < 2; ++i) {
    scalars_.push_back(b_.AddScalar("s" + std::to_string(i), OneOf(types_)));
  }
}

int64_t RandomValues::SideOf(const ir::Dim& dim) const {
  return dim.extent >= 0 ? sizes_[dim.extent] : dim.literal;
}

int64_t RandomValues::ElementsOf(const std::vector<ir::Dim>& dims) const {
  int64_t elements = 1;
  for (const ir::Dim& dim : dims) elements *= SideOf(dim);
  return elements;
}

Shape RandomValues::NewShape() {
  Shape shape = AnyShape();
  if (shape.size() > forms_.max_rank) shape.resize(forms_.max_rank);
  return shape;
}

Shape RandomValues::AnyShape() {
  switch (Below(8)) {
    case 0:
      return {};
    case 1:
      return {1 + Below(4), 1 + Below(70)};
    case 2:
      return {1 + Below(3), 1 + Below(4), 1 + Below(9)};
    case 3:
      return {1 + Below(2), 1 + Below(3), 1 + Below(3), 1 + Below(6)};
    case 4:
    case 5:
      return {1 + Below(70)};
    default:
      return {int64_t{1} << Below(7)};
  }
}

Shape RandomValues::PartOf(const Shape& shape, size_t least) {
  const auto skipped =
      static_cast<ptrdiff_t>(Below(static_cast<int64_t>(shape.size() - least) + 1));
  Shape part(shape.begin() + skipped, shape.end());
  for (int64_t& side : part) {
    if (Below(3) == 0) side = 1;
  }
  return part;
}

ValueId RandomValues::Get(const ir::Type& type) {
  std::vector<ValueId> fits;
  for (ValueId value : values_) {
    if (TypeOf(value) == type) fits.push_back(value);
  }
  if (!fits.empty() && Below(5) != 0) return OneOf(fits);
  return Keep(Fresh(type));
}

ValueId RandomValues::Keep(ValueId value) {
  values_.push_back(value);
  return value;
}

ValueId RandomValues::Fresh(const ir::Type& type) {
  // A value of the same shape and another type, cast; or one of another shape, spread out.
  for (ValueId value : values_) {
    if (TypeOf(value).shape == type.shape && TypeOf(value).dtype != type.dtype && Below(3) == 0) {
      return b_.Cast(value, type.dtype);
    }
  }
  if (type.is_scalar()) return Constant(type.dtype);
  if (type.shape.size() == 1 && type.dtype == DType::kI64 && Below(2) == 0) {
    return b_.Iota(type.shape[0]);
  }
  const Shape part = Below(2) == 0 ? PartOf(type.shape, 0) : Shape{};
  return b_.Broadcast(part == type.shape ? Constant(type.dtype) : Get({type.dtype, part}),
                      type.shape);
}

ValueId RandomValues::Constant(DType dtype) {
  if (ir::IsFloat(dtype)) {
    return b_.Constant(dtype, static_cast<double>(ToReal(dtype, Number(dtype))));
  }
  return b_.Constant(dtype, Number(dtype));
}

Bits RandomValues::Number(DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kOdd[] = {kInfinity, -kInfinity, kNan,    -0.0,   0.0,      1e-7,    -1e-40,
                             6e4,       -7e4,       3.4e38,  1e-310, -1.7e308, 1.0,     -1.0,
                             0x1p-25,   0x1p31,     -0x1p63, 0x1p64, 2049,     0x1p-149};
  if (ir::IsFloat(dtype)) {
    if (Below(4) == 0) return FromReal(dtype, OneOf(kOdd));
    if (Below(6) == 0) return FromReal(dtype, Below(2) == 0 ? -0.0L : 0.0L);
    return FromReal(dtype, static_cast<long double>(Below(300) - 100) / (1 << Below(9)));
  }
  if (dtype == DType::kBool) return Below(2);
  switch (Below(5)) {
    case 0:
      return FromInteger(dtype, static_cast<int64_t>(random_()));
    case 1: {
      // 0, -1, and the ends of each width.
      const __int128 end = __int128{1} << (8 * (Below(9)) - (Below(2) == 0 ? 1 : 0) + 1);
      return FromInteger(dtype, end / 2 - Below(2));
    }
    default:
      return FromInteger(dtype, Below(300) - 100);
  }
}

ValueId RandomValues::Position() {
  constexpr int64_t kFar[] = {std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max() - 2, int64_t{1} << 31,
                              -(int64_t{1} << 32), (int64_t{1} << 62) + 1};
  if (Below(40) == 0) return b_.Int(OneOf(kFar));
  if (Below(2) == 0) return b_.Int(Below(2) == 0 ? 0 : Below(30) - 10);
  ValueId value = Get({DType::kI64, {}});
  if (Below(4) == 0) {
    // A multiple, as those of blocks and loops are.
    value = b_.Elementwise(Opcode::kMod, {value, b_.Int(6)});
    return Keep(b_.Elementwise(Opcode::kMul, {value, b_.Int(int64_t{4} << Below(4))}));
  }
  value = b_.Elementwise(Opcode::kMod, {value, b_.Int(50 + Below(50))});
  return Keep(b_.Elementwise(Opcode::kSub, {value, b_.Int(Below(10))}));
}

ValueId RandomValues::Positions(const Shape& shape, bool is_first) {
  const Shape own = is_first ? shape : PartOf(shape, 1);
  const ValueId tile = Get({DType::kI64, own});
  if (Below(8) == 0) return tile;
  return b_.Elementwise(Opcode::kMod, {tile, b_.Broadcast(b_.Int(30 + Below(100)), own)});
}

ValueId RandomValues::DistinctPositions(int64_t length) {
  const auto spread = [&](int64_t number) { return b_.Broadcast(b_.Int(number), {length}); };
  const ValueId scaled =
      b_.Elementwise(Opcode::kMul, {b_.Iota(length), spread(Below(2) == 0 ? 1 : Below(5) - 5)});
  return b_.Elementwise(Opcode::kAdd, {scaled, spread(Below(60) - 5)});
}

std::optional<std::vector<ir::Subscript>> RandomValues::Subscripts(int32_t tensor,
                                                                   const Shape& shape,
                                                                   bool is_store) {
  const size_t rank = b_.function().params[tensor].dims.size();
  // Which axes of the shape are those of gathers, and by how many dimensions.
  size_t first = 0;
  size_t count = 0;
  size_t gathers = 0;
  if (forms_.gathers && !shape.empty() && Below(3) == 0) {
    first = static_cast<size_t>(Below(static_cast<int64_t>(shape.size())));
    const auto most = is_store ? 1 : static_cast<int64_t>(shape.size() - first);
    count = static_cast<size_t>(1 + Below(most));
    gathers = static_cast<size_t>(1 + Below(3) / 2 + Below(2));
  }
  if (shape.size() - count + gathers > rank) return std::nullopt;
  const Shape gathered(shape.begin() + first, shape.begin() + first + count);
  size_t elements = rank - (shape.size() - count) - gathers;
  size_t axis = 0;
  bool has_gather = false;
  std::vector<ir::Subscript> subscripts;
  while (subscripts.size() < rank) {
    if (gathers > 0 && axis == first && !has_gather) {
      // The axes of the gathers stand where the first one stands.
      if (elements > 0 && Below(2) == 0) {
        --elements;
        subscripts.push_back(ir::ElementAt(Position()));
        continue;
      }
      subscripts.push_back(
          ir::GatherAt(is_store ? DistinctPositions(gathered[0]) : Positions(gathered, true)));
      has_gather = true;
      --gathers;
      axis += count;
      continue;
    }
    const int64_t slices = static_cast<int64_t>(shape.size() - axis) -
                           (gathers > 0 && !has_gather ? static_cast<int64_t>(count) : 0);
    const int64_t later_gathers = has_gather ? static_cast<int64_t>(gathers) : 0;
    const int64_t choice = Below(slices + later_gathers + static_cast<int64_t>(elements));
    if (choice < slices) {
      subscripts.push_back(ir::SliceAt(Position(), shape[axis++]));
    } else if (choice < slices + later_gathers) {
      subscripts.push_back(ir::GatherAt(Positions(gathered, false)));
      --gathers;
    } else {
      subscripts.push_back(ir::ElementAt(Position()));
      --elements;
    }
  }
  return subscripts;
}

ValueId RandomValues::Other(ValueId a) {
  const ir::Type type = TypeOf(a);
  if (type.dtype == DType::kBool || Below(6) != 0) return Get(type);
  return Below(3) == 0 ? a : b_.Elementwise(Opcode::kNegate, {a});
}

void RandomValues::Promise(ir::Function* function) {
  constexpr int64_t kOfAVector = 16;
  const int64_t choice = Below(3);
  for (ir::Param& param : function->params) {
    if (!param.is_tensor || choice == 0) continue;
    param.aligned_bytes = choice == 1 ? kOfAVector : int64_t{1} << Below(7);
  }
}

Launch RandomValues::LaunchOf(const ir::Function& function) {
  Launch launch;
  for (size_t p = 0; p < function.params.size(); ++p) {
    const ir::Param& param = function.params[p];
    const bool is_small = small_.count(static_cast<int32_t>(p)) > 0;
    Argument argument;
    for (const ir::Dim& dim : param.dims) argument.sides.push_back(SideOf(dim));
    const int64_t elements = ElementsOf(param.dims);
    for (int64_t i = 0; i < elements; ++i) {
      argument.elements.push_back(is_small ? FromReal(param.dtype, Below(7) - 3)
                                           : Number(param.dtype));
    }
    launch.arguments.push_back(std::move(argument));
  }
  launch.grid = {1 + Below(4), 1 + Below(3) / 2, 1 + Below(3) / 2};
  return launch;
}

}  // namespace phobos::compiler::testing
