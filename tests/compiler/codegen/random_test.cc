// SPDX-License-Identifier: Apache-2.0
//
// Random kernels, compiled and interpreted: tiles of one and two dimensions of all types, loads and
// stores of every kind, variables, loops and branches, in any order. What a seed makes never
// changes, so a failure names its seed and prints the kernel.
#include <stdlib.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::Opcode;
using ir::ValueId;

constexpr DType kTypes[] = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kI8,
                            DType::kI16, DType::kI32,  DType::kI64, DType::kU8,  DType::kU16,
                            DType::kU32, DType::kU64,  DType::kBool};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), b_(ir::Function{.name = "random"}) {}

  // A kernel, and a launch of it.
  std::pair<ir::Function, Launch> Make() {
    const ir::Dim n{.extent = b_.AddExtent("N")};
    const ir::Dim m{.extent = b_.AddExtent("M")};
    sizes_ = {Below(150), 1 + Below(40)};
    // Few types, shapes and places, so that much is read where something was written.
    for (int i = 0; i < 2; ++i) {
      types_.push_back(kTypes[Below(13)]);
      shapes_.push_back(NewShape());
    }
    for (int i = 0; i < 4; ++i) {
      const DType dtype = types_[Below(2)];
      const bool is_matrix = Below(3) == 0;
      tensors_.push_back(
          b_.AddTensor("t" + std::to_string(i), dtype,
                       is_matrix ? std::vector<ir::Dim>{n, m} : std::vector<ir::Dim>{n}));
    }
    for (int i = 0; i < 2; ++i)
      scalars_.push_back(b_.AddScalar("s" + std::to_string(i), types_[Below(2)]));
    values_.push_back(b_.BlockId(0));
    values_.push_back(b_.Elementwise(Opcode::kMul, {values_[0], b_.Int(Below(70))}));
    values_.push_back(b_.ScalarParam(scalars_[0]));
    values_.push_back(b_.ScalarParam(scalars_[1]));
    values_.push_back(b_.Extent(0));
    Statements(8 + Below(12), 0);
    StoreSomething();
    ir::Function function = b_.Finish();
    return {function, LaunchOf(function)};
  }

 private:
  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }
  const ir::Type& TypeOf(ValueId value) { return b_.TypeOf(value); }

  std::vector<int64_t> SomeShape() { return Below(5) == 0 ? NewShape() : shapes_[Below(2)]; }

  std::vector<int64_t> NewShape() {
    switch (Below(5)) {
      case 0:
        return {};
      case 1:
        return {1 + Below(4), 1 + Below(20)};
      default:
        return {int64_t{1} << Below(7)};
      case 2:
        return {1 + Below(70)};
    }
  }

  // A value in sight of this type, or a new one.
  ValueId Get(const ir::Type& type) {
    std::vector<ValueId> fits;
    for (ValueId value : values_) {
      if (TypeOf(value) == type) fits.push_back(value);
    }
    if (!fits.empty() && Below(5) != 0) return fits[Below(static_cast<int64_t>(fits.size()))];
    return Keep(Fresh(type));
  }

  ValueId Keep(ValueId value) {
    values_.push_back(value);
    return value;
  }

  ValueId Fresh(const ir::Type& type) {
    // A value of the same shape and another type, cast; or a scalar, spread out.
    for (ValueId value : values_) {
      if (TypeOf(value).shape == type.shape && TypeOf(value).dtype != type.dtype && Below(3) == 0) {
        return b_.Cast(value, type.dtype);
      }
    }
    ValueId scalar =
        ir::IsFloat(type.dtype)
            ? b_.Constant(type.dtype, static_cast<double>(Below(64) - 32) / 4)
            : b_.Constant(type.dtype, type.dtype == DType::kBool ? Below(2) : Below(120));
    if (type.is_scalar()) return scalar;
    if (type.shape.size() == 1 && type.dtype == DType::kI64 && Below(2) == 0) {
      return b_.Iota(type.shape[0]);
    }
    if (type.shape.size() == 2 && Below(2) == 0) {
      const std::vector<int64_t> part = Below(2) == 0 ? std::vector<int64_t>{type.shape[1]}
                                                      : std::vector<int64_t>{type.shape[0], 1};
      return b_.Broadcast(Get({type.dtype, part}), type.shape);
    }
    return b_.Broadcast(Get({type.dtype, {}}), type.shape);
  }

  // A position that mostly lies near the tensors.
  ValueId Position() {
    if (Below(2) == 0) return b_.Int(Below(2) == 0 ? 0 : Below(30) - 10);
    ValueId value = Get({DType::kI64, {}});
    value = b_.Elementwise(Opcode::kMod, {value, b_.Int(50 + Below(50))});
    return Keep(b_.Elementwise(Opcode::kSub, {value, b_.Int(Below(10))}));
  }

  // Subscripts of a tensor that give `shape`; empty when there are none.
  std::vector<ir::Subscript> Subscripts(int32_t tensor, const std::vector<int64_t>& shape) {
    const size_t rank = b_.function().params[tensor].dims.size();
    std::vector<ir::Subscript> subscripts;
    if (shape.size() > rank) return {};
    size_t elements = rank - shape.size();
    size_t side = 0;
    for (size_t d = 0; d < rank; ++d) {
      const bool is_element = elements > 0 && (side == shape.size() || Below(2) == 0);
      if (is_element) {
        --elements;
        subscripts.push_back(ir::ElementAt(Position()));
      } else if (shape.size() == 1 && Below(4) == 0) {
        subscripts.push_back(ir::GatherAt(Wrapped(Get({DType::kI64, shape}))));
        ++side;
      } else {
        subscripts.push_back(ir::SliceAt(Position(), shape[side++]));
      }
    }
    return subscripts;
  }

  ValueId Wrapped(ValueId tile) {
    const std::vector<int64_t> shape = TypeOf(tile).shape;
    return b_.Elementwise(Opcode::kMod, {tile, b_.Broadcast(b_.Int(30 + Below(100)), shape)});
  }

  void Load() {
    const int32_t tensor = tensors_[Below(4)];
    const DType dtype = b_.function().params[tensor].dtype;
    const std::vector<int64_t> shape = SomeShape();
    const std::vector<ir::Subscript> subscripts = Subscripts(tensor, shape);
    if (subscripts.empty()) return;
    const ValueId fill =
        Below(3) == 0 ? Get({dtype, Below(2) == 0 ? shape : std::vector<int64_t>{}}) : ir::kNoValue;
    const ValueId mask = Below(4) == 0 ? Get({DType::kBool, shape}) : ir::kNoValue;
    Keep(b_.Load(tensor, subscripts, fill, mask));
  }

  void StoreSomething() {
    const int32_t tensor = tensors_[Below(4)];
    const DType dtype = b_.function().params[tensor].dtype;
    const std::vector<int64_t> shape = SomeShape();
    const std::vector<ir::Subscript> subscripts = Subscripts(tensor, shape);
    if (subscripts.empty()) return;
    for (const ir::Subscript& s : subscripts) {
      // Which of several values a place gets is not said.
      if (s.kind == ir::Subscript::Kind::kGather) return;
    }
    const ValueId mask = Below(4) == 0 ? Get({DType::kBool, shape}) : ir::kNoValue;
    b_.Store(tensor, subscripts, Get({dtype, shape}), mask);
  }

  void Compute() {
    const ValueId a = values_[Below(static_cast<int64_t>(values_.size()))];
    const ir::Type type = TypeOf(a);
    if (type.dtype == DType::kBool) {
      constexpr Opcode kLogic[] = {Opcode::kAnd, Opcode::kOr, Opcode::kXor};
      Keep(b_.Elementwise(kLogic[Below(3)], {a, Get(type)}));
      return;
    }
    switch (Below(8)) {
      case 0:
        Keep(b_.Elementwise(Opcode::kLess, {a, Get(type)}));
        return;
      case 1:
        Keep(b_.Elementwise(Opcode::kSelect, {Get({DType::kBool, type.shape}), a, Get(type)}));
        return;
      case 2:
        Keep(b_.Elementwise(Opcode::kFloorDiv, {a, Get(type)}));
        return;
      case 3:
        Keep(b_.Cast(a, Below(4) == 0 ? kTypes[Below(13)] : types_[Below(2)]));
        return;
      default: {
        constexpr Opcode kArithmetic[] = {Opcode::kAdd,     Opcode::kSub, Opcode::kMul,
                                          Opcode::kMinimum, Opcode::kMod, Opcode::kMaximum};
        Keep(b_.Elementwise(kArithmetic[Below(6)], {a, Get(type)}));
        return;
      }
    }
  }

  void Variable() {
    if (vars_.empty() || Below(3) == 0) {
      const ValueId value = values_[Below(static_cast<int64_t>(values_.size()))];
      vars_.push_back({b_.Declare("v", value), TypeOf(value)});
      return;
    }
    const auto& [var, type] = vars_[Below(static_cast<int64_t>(vars_.size()))];
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
    const int32_t tensor = tensors_[Below(4)];
    const DType dtype = b_.function().params[tensor].dtype;
    const std::vector<int64_t> shape = shapes_[Below(2)];
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
      case 0: {
        const ValueId lo = b_.Int(Below(5));
        const int64_t step = Below(2) == 0 ? 1 + Below(3) : -1 - Below(2);
        const ValueId hi = step > 0 ? b_.Int(Below(9)) : b_.Int(-Below(4));
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
        return;
      }
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

  void MaybeJump() {
    b_.If(Get({DType::kBool, {}}), [&] { Below(2) == 0 ? b_.Break() : b_.Continue(); });
  }

  void Statements(int64_t count, int depth) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t choice = Below(14);
      if (choice < 4) {
        Load();
      } else if (choice < 8) {
        Compute();
      } else if (choice < 10) {
        StoreSomething();
      } else if (choice < 12) {
        Variable();
      } else if (depth < 3) {
        Control(depth);
      }
    }
  }

  Launch LaunchOf(const ir::Function& function) {
    Launch launch;
    for (const ir::Param& param : function.params) {
      Argument argument;
      int64_t elements = 1;
      for (const ir::Dim& dim : param.dims) {
        argument.sides.push_back(sizes_[dim.extent]);
        elements *= argument.sides.back();
      }
      for (int64_t i = 0; i < elements; ++i) {
        const int64_t value = Below(300) - 100;
        argument.elements.push_back(ir::IsFloat(param.dtype)
                                        ? FromReal(param.dtype, static_cast<long double>(value) / 8)
                                        : FromInteger(param.dtype, value));
      }
      launch.arguments.push_back(std::move(argument));
    }
    launch.grid[0] = 1 + Below(4);
    return launch;
  }

  std::mt19937_64 random_;
  ir::Builder b_;
  std::vector<int64_t> sizes_;
  std::vector<DType> types_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<int32_t> tensors_;
  std::vector<int32_t> scalars_;
  std::vector<ValueId> values_;
  std::vector<std::pair<ir::VarId, ir::Type>> vars_;
};

TEST(RandomTest, CompiledKernelsDoWhatTheInterpreterDoes) {
  const char* first = getenv("PHOBOS_TEST_SEED");
  const char* count = getenv("PHOBOS_TEST_COUNT");
  const uint64_t begin = first != nullptr ? strtoull(first, nullptr, 10) : 0;
  const uint64_t end = begin + (count != nullptr ? strtoull(count, nullptr, 10) : 100);
  for (uint64_t seed = begin; seed < end; ++seed) {
    const auto [function, launch] = Generator(seed).Make();
    ASSERT_TRUE(ir::Verify(function).ok()) << ir::Verify(function) << "\n" << ir::Print(function);
    ASSERT_EQ(Differences(function, launch), "") << "seed " << seed << "\n" << ir::Print(function);
  }
}

}  // namespace
}  // namespace phobos::compiler::testing
