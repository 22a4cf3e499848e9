// SPDX-License-Identifier: Apache-2.0
//
// Control flow, variables, and statements that must not be evaluated late.
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "compiler/ir/builder.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::ElementAt;
using ir::GatherAt;
using ir::Opcode;
using ir::SliceAt;
using ir::ValueId;

constexpr int64_t kSize = 50;

// Kernels over x, y, out of i32[N] and a scalar `n`, i64.
class ControlTest : public ::testing::Test {
 protected:
  ControlTest() : b(ir::Function{.name = "control"}) {
    const ir::Dim n{.extent = b.AddExtent("N")};
    x = b.AddTensor("x", DType::kI32, {n});
    y = b.AddTensor("y", DType::kI32, {n});
    out = b.AddTensor("out", DType::kI32, {n});
    count = b.ScalarParam(b.AddScalar("n", DType::kI64));
  }

  ValueId Op(Opcode opcode, ValueId a, ValueId c) { return b.Elementwise(opcode, {a, c}); }
  ValueId Sum(ValueId a, ValueId c) { return Op(Opcode::kAdd, a, c); }
  ValueId I32(int64_t value) { return b.Constant(DType::kI32, value); }
  ValueId Load(int32_t tensor) { return b.Load(tensor, {SliceAt(b.Int(0), kSize)}); }
  void Store(int32_t tensor, ValueId value) { b.Store(tensor, {SliceAt(b.Int(0), kSize)}, value); }
  ValueId Fill(ValueId scalar) { return b.Broadcast(scalar, {kSize}); }

  // Compares for several sizes around the tile's and values of `n`.
  void Check(const std::vector<int64_t>& counts, int64_t grid = 1) {
    const ir::Function function = b.Finish();
    for (int64_t size : {kSize, kSize - 3, int64_t{1}}) {
      for (int64_t n : counts) {
        Launch launch;
        for (int tensor = 0; tensor < 3; ++tensor) {
          Argument argument{{size}, {}};
          for (int64_t i = 0; i < size; ++i) {
            argument.elements.push_back((i * 7919 + tensor * 104729) % 1000 - 300);
          }
          launch.arguments.push_back(argument);
        }
        launch.arguments.push_back({{}, {n}});
        launch.grid[0] = grid;
        EXPECT_EQ(Differences(function, launch), "") << "size " << size << ", n " << n;
      }
    }
  }

  ir::Builder b;
  int32_t x, y, out;
  ValueId count;
};

TEST_F(ControlTest, ForCountsBothWaysAndUnrolls) {
  const ir::VarId sum = b.Declare("sum", b.Int(0));
  b.For(
      b.Int(-3), count, 2,
      [&](ValueId i) { b.Write(sum, Sum(Op(Opcode::kMul, b.Read(sum), b.Int(3)), i)); },
      /*unroll=*/4);
  b.For(count, b.Int(-5), -3,
        [&](ValueId i) { b.Write(sum, Sum(Op(Opcode::kMul, b.Read(sum), b.Int(5)), i)); });
  Store(out, Fill(b.Cast(b.Read(sum), DType::kI32)));
  Check({-10, -3, -2, 0, 1, 4, 5, 6, 7, 8, 9, 100});
}

TEST_F(ControlTest, ForEndsAtTheEndsOfTheIntegers) {
  const ir::VarId turns = b.Declare("turns", b.Int(0));
  const ValueId greatest = b.Int(std::numeric_limits<int64_t>::max());
  const ValueId least = b.Int(std::numeric_limits<int64_t>::min());
  b.For(
      Op(Opcode::kSub, greatest, count), greatest, 3,
      [&](ValueId) { b.Write(turns, Sum(b.Read(turns), b.Int(1))); }, /*unroll=*/2);
  b.For(Sum(least, count), least, -7,
        [&](ValueId) { b.Write(turns, Sum(b.Read(turns), b.Int(1000))); });
  // Most of the integers in one stride.
  b.For(least, greatest, std::numeric_limits<int64_t>::max(),
        [&](ValueId) { b.Write(turns, Sum(b.Read(turns), b.Int(1000000))); });
  Store(out, Fill(b.Cast(b.Read(turns), DType::kI32)));
  Check({0, 1, 2, 3, 20});
}

// 16^5 copies of the innermost body would not compile in a lifetime.
TEST_F(ControlTest, NestedUnrollingIsBounded) {
  const ir::VarId sum = b.Declare("sum", b.Int(1));
  const std::function<void(int, ValueId)> nest = [&](int depth, ValueId outer) {
    if (depth == 0) {
      b.Write(sum, Sum(Op(Opcode::kMul, b.Read(sum), b.Int(3)), outer));
      return;
    }
    b.For(
        b.Int(0), count, 1,
        [&](ValueId i) { nest(depth - 1, Sum(Op(Opcode::kMul, outer, b.Int(2)), i)); },
        /*unroll=*/16);
  };
  nest(5, b.Int(0));
  Store(out, Fill(b.Cast(b.Read(sum), DType::kI32)));
  Check({3});
}

TEST_F(ControlTest, BreakAndContinueInNestedLoops) {
  const ir::VarId sum = b.Declare("sum", b.Int(1));
  b.For(
      b.Int(0), count, 1,
      [&](ValueId i) {
        b.If(Op(Opcode::kEqual, i, b.Int(2)), [&] { b.Continue(); });
        b.For(
            b.Int(0), b.Int(10), 1,
            [&](ValueId j) {
              b.If(Op(Opcode::kGreater, Op(Opcode::kMul, i, j), b.Int(12)), [&] { b.Break(); });
              b.Write(sum, Sum(Op(Opcode::kMul, b.Read(sum), b.Int(3)), j));
            },
            /*unroll=*/3);
        b.If(
            Op(Opcode::kEqual, i, b.Int(7)), [&] { b.Break(); },
            [&] { b.Write(sum, Sum(b.Read(sum), i)); });
      },
      /*unroll=*/2);
  Store(out, Fill(b.Cast(b.Read(sum), DType::kI32)));
  Check({0, 1, 3, 7, 8, 12});
}

TEST_F(ControlTest, WhileWithBreakContinueAndReturn) {
  const ir::VarId i = b.Declare("i", count);
  b.While([&] { return Op(Opcode::kGreater, b.Read(i), b.Int(0)); },
          [&] {
            b.Write(i, Op(Opcode::kSub, b.Read(i), b.Int(1)));
            b.If(Op(Opcode::kEqual, Op(Opcode::kMod, b.Read(i), b.Int(3)), b.Int(1)),
                 [&] { b.Continue(); });
            b.If(Op(Opcode::kEqual, b.Read(i), b.Int(5)), [&] { b.Break(); });
            b.If(Op(Opcode::kEqual, b.Read(i), b.Int(12)), [&] { b.Return(); });
            Store(out, Sum(Load(out), Fill(b.Cast(b.Read(i), DType::kI32))));
          });
  Store(y, Load(out));
  Check({0, 1, 4, 9, 13, 14});
}

TEST_F(ControlTest, ReturnEndsOneBlockOnly) {
  b.If(Op(Opcode::kEqual, b.BlockId(0), count), [&] { b.Return(); });
  b.Store(out, {ElementAt(b.BlockId(0))}, I32(77));
  Check({0, 1, 4, 9}, /*grid=*/5);
}

TEST_F(ControlTest, VariablesOfTilesStartAnewInEachTurn) {
  const ir::VarId total = b.Declare("total", Fill(I32(0)));
  b.For(
      b.Int(0), count, 1,
      [&](ValueId i) {
        const ir::VarId part = b.Declare("part", Load(x));
        b.Write(part, Sum(b.Read(part), Fill(b.Cast(i, DType::kI32))));
        b.Write(total, Sum(b.Read(total), b.Read(part)));
      },
      /*unroll=*/2);
  Store(out, b.Read(total));
  Check({0, 1, 2, 5});
}

TEST_F(ControlTest, UpdateInPlace) {
  Store(out, Sum(Load(out), Load(x)));
  Check({0});
}

TEST_F(ControlTest, LoadIsWhatWasThereWhenItStood) {
  const ValueId before = Load(out);
  Store(out, Load(x));
  Store(y, Sum(before, Load(out)));
  Check({0});
}

TEST_F(ControlTest, SwapThroughValues) {
  const ValueId a = Load(x);
  const ValueId c = Load(y);
  Store(x, c);
  Store(y, a);
  Check({0});
}

TEST_F(ControlTest, OverlappingShiftInPlace) {
  b.Store(out, {SliceAt(b.Int(1), kSize)}, Load(out));
  b.Store(x, {SliceAt(b.Int(-1), kSize)}, Load(x));
  Check({0});
}

TEST_F(ControlTest, ReverseByIndexInPlace) {
  const ValueId reversed = Op(Opcode::kSub, b.Broadcast(b.Int(kSize - 1), {kSize}), b.Iota(kSize));
  Store(out, b.Load(out, {GatherAt(reversed)}));
  b.Store(x, {GatherAt(reversed)}, Load(x));
  Check({0});
}

TEST_F(ControlTest, ValueFromBeforeALoopThatOverwritesItsSource) {
  const ValueId before = Load(out);
  const ir::VarId variable = b.Declare("v", Load(x));
  const ValueId read_before = b.Read(variable);
  b.For(b.Int(0), count, 1, [&](ValueId) {
    Store(out, Sum(Load(out), before));
    b.Write(variable, Sum(b.Read(variable), read_before));
  });
  Store(y, b.Read(variable));
  Check({0, 1, 4});
}

TEST_F(ControlTest, StoreInOneArmOnly) {
  const ValueId before = Load(out);
  b.If(
      Op(Opcode::kGreater, count, b.Int(0)), [&] { Store(out, Load(x)); },
      [&] { Store(y, Load(x)); });
  Store(x, Sum(before, Load(y)));
  Check({0, 1});
}

TEST_F(ControlTest, MaskAndPositionsReadBeforeTheyChange) {
  const ValueId is_positive = Op(Opcode::kGreater, Load(x), Fill(I32(0)));
  const ValueId wrapped = Op(Opcode::kMod, Load(y), Fill(I32(kSize)));
  const ValueId positions = b.Cast(wrapped, DType::kI64);
  Store(x, Fill(I32(-1)));
  b.Store(x, {SliceAt(b.Int(0), kSize)}, Fill(I32(5)), is_positive);
  Store(y, Fill(I32(3)));
  Store(out, b.Load(out, {GatherAt(positions)}, ir::kNoValue, is_positive));
  Check({0});
}

TEST_F(ControlTest, DearValuesAreHeldOnceAndUsedTwice) {
  const ValueId dear = Op(Opcode::kFloorDiv, Load(x), Load(y));
  Store(out, Sum(dear, Fill(I32(1))));
  Store(x, Op(Opcode::kMul, dear, Fill(I32(2))));
  b.For(b.Int(0), count, 1, [&](ValueId) { Store(y, Sum(Load(y), dear)); });
  Check({0, 3});
}

}  // namespace
}  // namespace phobos::compiler::testing
