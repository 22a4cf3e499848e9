// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/codegen/random/random_kernel.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/ir/shape.h"
#include "tests/compiler/codegen/random/random_products.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::kDTypes;
using ir::Opcode;
using ir::Shape;
using ir::ValueId;

constexpr size_t kMaxOwnTensors = 48;

constexpr Opcode kComparisons[] = {Opcode::kEqual,     Opcode::kNotEqual, Opcode::kLess,
                                   Opcode::kLessEqual, Opcode::kGreater,  Opcode::kGreaterEqual};
constexpr Opcode kLogic[] = {Opcode::kAnd, Opcode::kOr, Opcode::kXor};
constexpr Opcode kOfTwoNumbers[] = {Opcode::kAdd,      Opcode::kSub, Opcode::kMul,
                                    Opcode::kFloorDiv, Opcode::kMod, Opcode::kMinimum,
                                    Opcode::kMaximum};
constexpr Opcode kOfTwoInts[] = {Opcode::kMulHigh, Opcode::kShiftLeft, Opcode::kShiftRight,
                                 Opcode::kAnd,     Opcode::kOr,        Opcode::kXor};
constexpr Opcode kOfOneInt[] = {Opcode::kNegate, Opcode::kAbs, Opcode::kNot};
constexpr Opcode kOfOneFloat[] = {Opcode::kNegate, Opcode::kAbs,   Opcode::kFloor,
                                  Opcode::kCeil,   Opcode::kRound, Opcode::kSqrt};

// How far two right results may lie apart, in units in the last place, by language.md.
struct Approximate {
  Opcode opcode;
  double ulps;
};
constexpr Approximate kApproximate[] = {
    {Opcode::kExp, 2},    {Opcode::kExp2, 2},  {Opcode::kExpm1, 4}, {Opcode::kLog, 2},
    {Opcode::kLog2, 2},   {Opcode::kLog1p, 4}, {Opcode::kPow, 4},   {Opcode::kRsqrt, 2},
    {Opcode::kSin, 4},    {Opcode::kCos, 4},   {Opcode::kTanh, 2},  {Opcode::kErf, 2},
    {Opcode::kSigmoid, 4}};
// sin and cos keep their promise up to 1e5; this is exact in every type.
constexpr double kMostOfTrig = 32768;

class Generator : private RandomProducts {
 public:
  Generator(uint64_t seed, const Forms& forms) : RandomProducts(seed, forms) {}

  RandomKernel Make() {
    AddParams();
    for (int axis = 0; axis < 3; ++axis) {
      if (axis == 0 || Below(3) == 0) Keep(b_.BlockId(axis));
      if (Below(4) == 0) Keep(b_.GridSize(axis));
    }
    Keep(b_.Elementwise(Opcode::kMul, {values_[0], b_.Int(Below(70))}));
    for (int32_t scalar : scalars_) Keep(b_.ScalarParam(scalar));
    Keep(b_.Extent(0));
    b_.Assume(b_.Elementwise(Opcode::kGreaterEqual, {values_.back(), b_.Int(0)}));
    Statements(8 + Below(12), 0);
    // Once or twice, and in no loop of others, for they are large.
    for (int64_t i = multiplies_ ? 1 + Below(2) : 0; i > 0; --i) {
      MultiplyTensors();
      if (Below(3) != 0) StoreToItsOwn(values_.back(), 0);
      Statements(2 + Below(6), 0);
    }
    Statements(16 + Below(12), 0);
    StoreSomething();
    RandomKernel kernel{b_.Finish(), {}, {}};
    Promise(&kernel.function);
    Stage(&kernel.function.body);
    kernel.function.index_bits = Below(2) == 0 ? 32 : 64;
    kernel.launch = LaunchOf(kernel.function);
    for (size_t p = 0; p < kernel.function.params.size(); ++p) {
      kernel.ulps.push_back(
          ulps_.count(static_cast<int32_t>(p)) > 0 ? ulps_[static_cast<int32_t>(p)] : 0);
    }
    return kernel;
  }

 private:
  void Load() {
    const int32_t tensor = OneOf(tensors_);
    const DType dtype = b_.function().params[tensor].dtype;
    const Shape shape = SomeShape();
    const auto subscripts = Subscripts(tensor, shape, false);
    if (!subscripts.has_value()) return;
    const ValueId fill =
        Below(2) == 0 ? Get({dtype, Below(2) == 0 ? shape : Shape{}}) : ir::kNoValue;
    const ValueId mask = Below(4) == 0 ? Get({DType::kBool, shape}) : ir::kNoValue;
    Keep(b_.Load(tensor, *subscripts, fill, mask));
    if (Below(2) == 0) StoreToItsOwn(values_.back(), 0);
  }

  void StoreSomething() {
    const int32_t tensor = OneOf(tensors_);
    const DType dtype = b_.function().params[tensor].dtype;
    const Shape shape = SomeShape();
    const auto subscripts = Subscripts(tensor, shape, true);
    if (!subscripts.has_value()) return;
    const ValueId mask = Below(4) == 0 ? Get({DType::kBool, shape}) : ir::kNoValue;
    b_.Store(tensor, *subscripts, Get({dtype, shape}), mask);
  }

  void Compute() {
    const size_t before = values_.size();
    ComputeFrom(Below(3) == 0 ? OneOf(values_) : Recent());
    if (values_.size() > before && Below(2) == 0) StoreToItsOwn(values_.back(), 0);
  }

  // One of the last values, so that operations build on each other.
  ValueId Recent() {
    return values_[values_.size() - 1 - Below(std::min<int64_t>(6, values_.size()))];
  }

  void ComputeFrom(ValueId a) {
    const ir::Type type = TypeOf(a);
    if (forms_.arranges && !type.is_scalar() && Below(8) == 0) return Arrange(a);
    if (type.shape.size() > 1 && multiplies_ && Below(8) == 0) return Multiply(a);
    if (!type.is_scalar() && moves_ && Below(6) == 0) return Reduce(a);
    switch (Below(8)) {
      case 0:
        Keep(b_.Elementwise(OneOf(kComparisons), {a, Other(a)}));
        return;
      case 1:
        Keep(b_.Elementwise(Opcode::kSelect, {Get({DType::kBool, type.shape}), a, Get(type)}));
        return;
      case 2:
        Keep(b_.Cast(a, Below(4) == 0 ? OneOf(kDTypes) : OneOf(types_)));
        return;
      case 3:
        Reinterpret(a);
        return;
      default:
        break;
    }
    if (type.dtype == DType::kBool) {
      Keep(Below(4) == 0 ? b_.Elementwise(Opcode::kNot, {a})
                         : b_.Elementwise(OneOf(kLogic), {a, Get(type)}));
    } else if (Below(6) == 0) {
      Keep(b_.Elementwise(Opcode::kPowInt, {a}, static_cast<int32_t>(Below(6))));
    } else if (ir::IsFloat(type.dtype)) {
      ComputeFloat(a);
    } else {
      ComputeInt(a);
    }
  }

  // The elements of a tile in another arrangement. Those that move are not for every back end, so
  // only some kernels have them.
  void Arrange(ValueId a) {
    const Shape shape = TypeOf(a).shape;
    const auto rank = static_cast<int64_t>(shape.size());
    Shape longer = ir::LongSides(shape);
    if (!moves_ || Below(3) == 0) {
      while (longer.empty() || (longer.size() < kMaxRank && Below(2) == 0)) {
        longer.insert(longer.begin() + Below(static_cast<int64_t>(longer.size()) + 1), 1);
      }
      Keep(b_.Reshape(a, longer));
    } else if (Below(4) == 0) {
      Pair(a);
    } else if (Below(3) == 0) {
      const int64_t elements = TypeOf(a).elements();
      const int64_t side = elements % 2 == 0 ? 2 : 1;
      Keep(b_.Reshape(a, Below(2) == 0 ? Shape{elements} : Shape{elements / side, side}));
    } else {
      std::vector<int32_t> permutation;
      for (int32_t axis = 0; axis < rank; ++axis) {
        permutation.insert(permutation.begin() + Below(axis + 1), axis);
      }
      Keep(b_.Transpose(a, permutation));
    }
  }

  // With another tile, along the last side.
  void Pair(ValueId a) {
    ir::Type type = TypeOf(a);
    if (type.elements() > kMaxTensorElements / 2) return;
    if (Below(2) == 0) {
      Keep(b_.Pair(Opcode::kInterleave, a, Get(type)));
      return;
    }
    if (Below(2) == 0) type.shape.back() = 1 + Below(9);
    const ValueId other = Get(type);
    Keep(Below(2) == 0 ? b_.Pair(Opcode::kJoin, a, other) : b_.Pair(Opcode::kJoin, other, a));
  }

  // A reduction or scan, for some kernels: not every back end has them.
  void Reduce(ValueId a) {
    const ir::Type type = TypeOf(a);
    const auto axis = static_cast<int32_t>(Below(static_cast<int64_t>(type.shape.size())));
    const auto lanes = static_cast<int32_t>(int64_t{1} << Below(7));
    if (type.dtype != DType::kBool && Below(6) == 0) {
      Keep(b_.CumulativeSum(a, axis));
      return;
    }
    constexpr Opcode kOfNumbers[] = {Opcode::kSumOver,     Opcode::kProductOver,
                                     Opcode::kMaximumOver, Opcode::kMinimumOver,
                                     Opcode::kArgMaximum,  Opcode::kArgMinimum};
    constexpr Opcode kOfBools[] = {Opcode::kMaximumOver, Opcode::kMinimumOver, Opcode::kArgMaximum,
                                   Opcode::kArgMinimum};
    Keep(b_.Reduce(type.dtype == DType::kBool ? OneOf(kOfBools) : OneOf(kOfNumbers), a, axis,
                   lanes));
  }

  void ComputeFloat(ValueId a) {
    const ir::Type type = TypeOf(a);
    switch (Below(8)) {
      case 0:
        Keep(b_.Elementwise(OneOf(kOfOneFloat), {a}));
        return;
      case 1:
        Keep(b_.Elementwise(Opcode::kFma, {a, Get(type), Get(type)}));
        return;
      case 2:
        Keep(b_.Elementwise(Opcode::kDiv, {a, Get(type)}));
        return;
      case 3:
        Keep(b_.Elementwise(Below(2) == 0 ? Opcode::kIsNan : Opcode::kIsInf, {a}));
        return;
      default:
        Keep(b_.Elementwise(OneOf(kOfTwoNumbers), {a, Other(a)}));
        return;
    }
  }

  void ComputeInt(ValueId a) {
    const ir::Type type = TypeOf(a);
    switch (Below(7)) {
      case 0:
        Keep(b_.Elementwise(OneOf(kOfOneInt), {a}));
        return;
      case 3: {
        const ir::Type wide{DType::kU64, type.shape};
        const ValueId counter = type.dtype == DType::kU64 ? a : b_.Cast(a, DType::kU64);
        Keep(b_.Elementwise(Opcode::kRandomU32, {Get(wide), counter}));
        return;
      }
      case 1: {
        // A shift that mostly stays within the width.
        const ValueId by = b_.Broadcast(
            b_.Constant(type.dtype, Below(ir::BitWidth(type.dtype) * 5 / 4)), type.shape);
        Keep(b_.Elementwise(Below(2) == 0 ? Opcode::kShiftLeft : Opcode::kShiftRight, {a, by}));
        return;
      }
      case 2:
        Keep(b_.Elementwise(OneOf(kOfTwoInts), {a, Get(type)}));
        return;
      default:
        Keep(b_.Elementwise(OneOf(kOfTwoNumbers), {a, Other(a)}));
        return;
    }
  }

  // The bits as another type of the width. What bits a NaN has is not said, so none is looked at.
  void Reinterpret(ValueId a) {
    const ir::Type type = TypeOf(a);
    std::vector<DType> others;
    for (DType other : kDTypes) {
      if (other != type.dtype && (other == DType::kBool) == (type.dtype == DType::kBool) &&
          ir::BitWidth(other) == ir::BitWidth(type.dtype)) {
        others.push_back(other);
      }
    }
    if (others.empty()) return;
    if (ir::IsFloat(type.dtype)) {
      const ValueId zero = b_.Broadcast(b_.Constant(type.dtype, 0.0), type.shape);
      a = b_.Elementwise(Opcode::kSelect, {b_.Elementwise(Opcode::kIsNan, {a}), zero, a});
    }
    Keep(b_.Bitcast(a, OneOf(others)));
  }

  // A built-in of limited accuracy of some value, into a tensor of its own that nobody reads.
  void StoreApproximate() {
    std::vector<ValueId> floats;
    for (ValueId value : values_) {
      if (ir::IsFloat(TypeOf(value).dtype)) floats.push_back(value);
    }
    if (floats.empty()) return;
    ValueId a = OneOf(floats);
    const ir::Type type = TypeOf(a);
    const Approximate built_in = OneOf(kApproximate);
    if (built_in.opcode == Opcode::kSin || built_in.opcode == Opcode::kCos) {
      for (const auto& [opcode, bound] :
           {std::pair(Opcode::kMinimum, kMostOfTrig), std::pair(Opcode::kMaximum, -kMostOfTrig)}) {
        a = b_.Elementwise(opcode, {a, b_.Broadcast(b_.Constant(type.dtype, bound), type.shape)});
      }
    }
    std::vector<ValueId> operands = {a};
    if (built_in.opcode == Opcode::kPow) operands.push_back(Get(type));
    StoreToItsOwn(b_.Elementwise(built_in.opcode, operands), built_in.ulps);
  }

  // The whole value into a tensor of its shape that nobody reads.
  void StoreToItsOwn(ValueId value, double ulps) {
    if (ulps_.size() >= kMaxOwnTensors) return;
    const ir::Type type = TypeOf(value);
    std::vector<ir::Dim> dims;
    std::vector<ir::Subscript> place;
    for (int64_t side : type.shape) {
      dims.push_back({.extent = -1, .literal = side});
      place.push_back(ir::SliceAt(b_.Int(0), side));
    }
    if (dims.empty()) {
      dims.push_back({.extent = -1, .literal = 1});
      place.push_back(ir::ElementAt(b_.Int(0)));
    }
    const int32_t tensor = b_.AddTensor("a" + std::to_string(ulps_.size()), type.dtype, dims);
    ulps_[tensor] = ulps;
    b_.Store(tensor, place, value);
  }

  void Variable() {
    if (vars_.empty() || Below(3) == 0) {
      const ValueId value = OneOf(values_);
      vars_.push_back({b_.Declare("v", value), TypeOf(value)});
      return;
    }
    const auto [var, type] = OneOf(vars_);
    if (Below(2) == 0) {
      Keep(b_.Read(var));
    } else {
      const ValueId value = Get(type);
      b_.Write(var, type.dtype == DType::kBool
                        ? value
                        : b_.Elementwise(Opcode::kAdd, {b_.Read(var), value}));
    }
  }

  // A slice of a tensor, read here and, by the function that is returned, written from what was
  // read.
  std::function<void()> ReadNowWriteLater() {
    const int32_t tensor = OneOf(tensors_);
    const DType dtype = b_.function().params[tensor].dtype;
    const Shape shape = OneOf(shapes_);
    if (dtype == DType::kBool || b_.function().params[tensor].dims.size() != shape.size()) {
      return [] {};
    }
    std::vector<ir::Subscript> place;
    for (int64_t side : shape) place.push_back(ir::SliceAt(b_.Int(Below(3)), side));
    const ValueId before = b_.Load(tensor, place);
    return [=, this] {
      b_.Store(tensor, place, b_.Elementwise(Opcode::kAdd, {before, Get({dtype, shape})}));
    };
  }

  // Runs `body` with what it makes out of sight afterwards.
  template <typename Body>
  void Scope(Body body) {
    const size_t values = values_.size();
    const size_t vars = vars_.size();
    body();
    values_.resize(values);
    vars_.resize(vars, {0, {}});
  }

  void Control(int depth) {
    switch (Below(3)) {
      case 0:
        For(depth);
        return;
      case 1: {
        const ValueId condition = Get({DType::kBool, {}});
        b_.If(
            condition, [&] { Scope([&] { Statements(1 + Below(4), depth + 1); }); },
            [&] { Scope([&] { Statements(Below(4), depth + 1); }); });
        return;
      }
      default: {
        const ir::VarId counter = b_.Declare("c", b_.Int(Below(5)));
        b_.While(
            [&] {
              return b_.Elementwise(Opcode::kGreater, {b_.Read(counter), b_.Int(0)});
            },
            [&] {
              b_.Write(counter, b_.Elementwise(Opcode::kSub, {b_.Read(counter), b_.Int(1)}));
              Scope([&] {
                Statements(2 + Below(4), depth + 1);
                if (Below(4) == 0) MaybeJump();
              });
            });
        return;
      }
    }
  }

  void For(int depth) {
    const int64_t step = Below(2) == 0 ? 1 + Below(3) : -1 - Below(2);
    ValueId lo = b_.Int(Below(5));
    ValueId hi = step > 0 ? b_.Int(Below(9)) : b_.Int(-Below(4));
    if (Below(4) == 0) {
      // A bound that is known only when it runs.
      hi = b_.Elementwise(Opcode::kMod, {Get({DType::kI64, {}}), b_.Int(step > 0 ? 9 : -4)});
    } else if (Below(30) == 0) {
      // The index that ends the loop would lie outside i64.
      const int64_t end =
          step > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
      lo = b_.Int(step > 0 ? end - Below(6) : end + Below(6));
      hi = b_.Int(end);
    }
    const std::function<void()> write_later = ReadNowWriteLater();
    b_.For(
        lo, hi, step,
        [&](ValueId index) {
          Scope([&] {
            values_.push_back(index);
            Statements(2 + Below(5), depth + 1);
            write_later();
            if (Below(4) == 0) MaybeJump();
          });
        },
        static_cast<int32_t>(1 + Below(3)));
  }

  void MaybeJump() {
    b_.If(Get({DType::kBool, {}}), [&] {
      switch (Below(5)) {
        case 0:
          b_.Return();
          return;
        case 1:
        case 2:
          b_.Break();
          return;
        default:
          b_.Continue();
      }
    });
  }

  void Statements(int64_t count, int depth) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t choice = Below(20);
      if (choice < 4) {
        Load();
      } else if (choice < 12) {
        Compute();
      } else if (choice < 14) {
        StoreSomething();
      } else if (choice < 16) {
        Variable();
      } else if (choice < 17) {
        StoreApproximate();
      } else if (depth < 3) {
        Control(depth);
      }
    }
  }

  // Loops with buffers for what is multiplied in them.
  void Stage(ir::Block* block) {
    for (ir::Op& op : *block) {
      if (op.opcode == Opcode::kFor && Below(2) == 0)
        op.stages = static_cast<int32_t>(1 + Below(4));
      for (ir::Block& region : op.regions) Stage(&region);
    }
  }

  std::map<int32_t, double> ulps_;  // by parameter
  std::vector<std::pair<ir::VarId, ir::Type>> vars_;
};

}  // namespace

RandomKernel MakeRandomKernel(uint64_t seed, const Forms& forms) {
  return Generator(seed, forms).Make();
}

}  // namespace phobos::compiler::testing
