// SPDX-License-Identifier: Apache-2.0
//
// What the interpreter makes of each kind of op, against values worked out by hand, and what it
// refuses. That compiled kernels do the same is the business of tests/compiler/codegen.
#include "compiler/interpreter/interpreter.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "compiler/ir/builder.h"
#include "gtest/gtest.h"

namespace phobos::compiler::interpreter {
namespace {

using ir::DType;
using ir::ElementAt;
using ir::GatherAt;
using ir::Opcode;
using ir::SliceAt;
using ir::ValueId;

Argument Floats(std::vector<int64_t> sides, const std::vector<double>& values) {
  Argument argument{std::move(sides), {}};
  for (double value : values) argument.elements.push_back(FromReal(DType::kF32, value));
  return argument;
}

std::vector<double> Values(const Argument& argument) {
  std::vector<double> values;
  for (Bits bits : argument.elements) {
    values.push_back(static_cast<double>(ToReal(DType::kF32, bits)));
  }
  return values;
}

std::vector<double> UpTo(int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  return values;
}

// A kernel on x: f32[N] and out: f32[M].
struct Kernel {
  Kernel() : b(ir::Function{.name = "k"}) {
    x = b.AddTensor("x", DType::kF32, {{b.AddExtent("N"), 0}});
    out = b.AddTensor("out", DType::kF32, {{b.AddExtent("M"), 0}});
  }
  ValueId F32(double value) { return b.Constant(DType::kF32, value); }

  // `out` after a launch of one block on these x, and zeros in out.
  std::vector<double> Run(const std::vector<double>& xs, int64_t outs) {
    const auto result =
        Interpret(b.Finish(), {.arguments = {Floats({static_cast<int64_t>(xs.size())}, xs),
                                             Floats({outs}, std::vector<double>(outs))}});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? Values((*result)[1]) : std::vector<double>();
  }

  ir::Builder b;
  int32_t x;
  int32_t out;
};

TEST(Interpreter, WhatLiesOutsideIsFillAndIsNotWritten) {
  Kernel k;
  const ValueId tile = k.b.Load(k.x, {SliceAt(k.b.Int(-1), 4)}, k.F32(9));
  k.b.Store(k.out, {SliceAt(k.b.Int(2), 4)}, tile);
  EXPECT_EQ(k.Run({1, 2}, 4), (std::vector<double>{0, 0, 9, 1}));
}

TEST(Interpreter, PositionsAreUnbounded) {
  Kernel k;
  const ValueId last = k.b.Int(std::numeric_limits<int64_t>::max());
  k.b.Store(k.out, {SliceAt(k.b.Int(0), 2)}, k.b.Load(k.x, {SliceAt(last, 2)}, k.F32(7)));
  k.b.Store(k.out, {SliceAt(last, 2)}, k.b.Load(k.x, {SliceAt(k.b.Int(0), 2)}));
  EXPECT_EQ(k.Run({1, 2}, 3), (std::vector<double>{7, 7, 0}));
}

TEST(Interpreter, MaskedElementsAreNotTouched) {
  Kernel k;
  const ValueId is_odd = k.b.Cast(
      k.b.Elementwise(Opcode::kMod, {k.b.Iota(4), k.b.Broadcast(k.b.Int(2), {4})}), DType::kBool);
  const ValueId tile = k.b.Load(k.x, {SliceAt(k.b.Int(0), 4)}, ir::kNoValue, is_odd);
  k.b.Store(k.out, {SliceAt(k.b.Int(0), 4)}, tile);
  k.b.Store(k.out, {SliceAt(k.b.Int(4), 4)}, k.b.Broadcast(k.F32(5), {4}), is_odd);
  EXPECT_EQ(k.Run({1, 2, 3, 4}, 8), (std::vector<double>{0, 2, 0, 4, 0, 5, 0, 5}));
}

// Two gathers around an element and a slice: their axes stand together where the first one stands.
TEST(Interpreter, GathersStandWhereTheFirstOneStands) {
  ir::Builder b(ir::Function{.name = "k"});
  const ir::Dim two{-1, 2};
  const ir::Dim three{-1, 3};
  const int32_t x = b.AddTensor("x", DType::kF32, {three, two, three, three});
  const int32_t out = b.AddTensor("out", DType::kF32, {two, three, two});
  const int32_t at = b.AddTensor("at", DType::kI64, {two, {-1, 1}});
  const ValueId rows = b.Broadcast(b.Iota(3), {1, 3});
  const ValueId columns = b.Load(at, {SliceAt(b.Int(0), 2), SliceAt(b.Int(0), 1)});
  const ValueId tile =
      b.Load(x, {GatherAt(rows), ElementAt(b.Int(1)), SliceAt(b.Int(1), 2), GatherAt(columns)});
  EXPECT_EQ(b.TypeOf(tile), (ir::Type{DType::kF32, {2, 3, 2}}));
  b.Store(out, {SliceAt(b.Int(0), 2), SliceAt(b.Int(0), 3), SliceAt(b.Int(0), 2)}, tile);
  const auto result = Interpret(b.Finish(), {.arguments = {Floats({3, 2, 3, 3}, UpTo(54)),
                                                           Floats({2, 3, 2}, UpTo(12)),
                                                           {{2, 1}, {2, 1}}}});
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<double> want;
  for (int i = 0; i < 2; ++i) {
    for (int row = 0; row < 3; ++row) {
      for (int s = 1; s < 3; ++s) want.push_back(18 * row + 9 * 1 + 3 * s + 2 - i);
    }
  }
  EXPECT_EQ(Values((*result)[1]), want);
}

TEST(Interpreter, ScatterWritesWhereItsPositionsSay) {
  Kernel k;
  const ValueId twice =
      k.b.Elementwise(Opcode::kMul, {k.b.Iota(3), k.b.Broadcast(k.b.Int(2), {3})});
  k.b.Store(k.out, {GatherAt(twice)}, k.b.Load(k.x, {SliceAt(k.b.Int(0), 3)}));
  EXPECT_EQ(k.Run({1, 2, 3}, 4), (std::vector<double>{1, 0, 2, 0}));
}

TEST(Interpreter, AtomicsStepOneAfterTheOther) {
  ir::Builder b(ir::Function{.name = "atomic"});
  const ir::Dim four{.extent = -1, .literal = 4};
  const int32_t out = b.AddTensor("out", DType::kI32, {four});
  const int32_t to = b.AddTensor("to", DType::kI64, {four});
  const int32_t old = b.AddTensor("old", DType::kI32, {four});
  const std::vector<ir::Subscript> whole = {ir::SliceAt(b.Int(0), 4)};
  const ValueId two = b.Broadcast(b.Constant(DType::kI32, int64_t{2}), {4});
  const ValueId before =
      b.Atomic(Opcode::kAtomicAdd, out, {ir::GatherAt(b.Load(to, whole))}, {two}, true);
  b.Store(old, whole, before);
  b.Atomic(Opcode::kAtomicCompareSwap, out, {ir::ElementAt(b.Int(3))},
           {b.Constant(DType::kI32, int64_t{13}), b.Constant(DType::kI32, int64_t{-1})}, false);
  Launch launch;
  launch.arguments = {{{4}, {10, 11, 12, 13}}, {{4}, {1, 1, 7, 1}}, {{4}, {9, 9, 9, 9}}};
  const auto result = Interpret(b.Finish(), launch);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)[0].elements, (std::vector<Bits>{10, 17, 12, -1}));
  EXPECT_EQ((*result)[2].elements, (std::vector<Bits>{11, 13, 0, 15}));
}

// The vectors that come with Random123.
TEST(Interpreter, PhiloxIsThePublishedOne) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kAll = 0xffffffff;
  EXPECT_EQ(Philox({kAll, kAll, kAll, kAll}, {kAll, kAll}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Interpreter, BroadcastsByNumPysRules) {
  ir::Builder b(ir::Function{.name = "k"});
  const int32_t x = b.AddTensor("x", DType::kF32, {{-1, 2}, {-1, 1}, {-1, 2}});
  const int32_t out = b.AddTensor("out", DType::kF32, {{-1, 2}, {-1, 2}, {-1, 3}, {-1, 2}});
  const ValueId zero = b.Int(0);
  const ValueId tile = b.Load(x, {SliceAt(zero, 2), SliceAt(zero, 1), SliceAt(zero, 2)});
  b.Store(out, {SliceAt(zero, 2), SliceAt(zero, 2), SliceAt(zero, 3), SliceAt(zero, 2)},
          b.Broadcast(tile, {2, 2, 3, 2}));
  const auto result = Interpret(
      b.Finish(), {.arguments = {Floats({2, 1, 2}, {1, 2, 3, 4}), Floats({2, 2, 3, 2}, UpTo(24))}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Values((*result)[1]), (std::vector<double>{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4,
                                                       1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}));
}

// Loops that go up and down, one in the other, left and shortened; a return.
TEST(Interpreter, ControlFlow) {
  Kernel k;
  ir::Builder& b = k.b;
  const ir::VarId next = b.Declare("next", b.Int(0));
  const auto push = [&](ValueId value) {
    b.Store(k.out, {ElementAt(b.Read(next))}, b.Cast(value, DType::kF32));
    b.Write(next, b.Elementwise(Opcode::kAdd, {b.Read(next), b.Int(1)}));
  };
  b.For(b.Int(5), b.Int(-2), -3, [&](ValueId i) {
    b.For(b.Int(0), b.Int(10), 1, [&](ValueId j) {
      b.If(b.Elementwise(Opcode::kEqual, {j, b.Int(1)}), [&] { b.Continue(); });
      b.If(b.Elementwise(Opcode::kGreater, {j, b.Int(2)}), [&] { b.Break(); });
      push(b.Elementwise(Opcode::kAdd, {b.Elementwise(Opcode::kMul, {i, b.Int(10)}), j}));
    });
  });
  const ir::VarId count = b.Declare("count", b.Int(3));
  b.While(
      [&] {
        return b.Elementwise(Opcode::kGreater, {b.Read(count), b.Int(0)});
      },
      [&] {
        push(b.Read(count));
        b.Write(count, b.Elementwise(Opcode::kSub, {b.Read(count), b.Int(1)}));
        b.If(
            b.Elementwise(Opcode::kEqual, {b.Read(count), b.Int(1)}), [&] { b.Return(); },
            [&] { push(b.Int(100)); });
      });
  push(b.Int(1000));
  EXPECT_EQ(k.Run({}, 12), (std::vector<double>{50, 52, 20, 22, -10, -8, 3, 100, 2, 0, 0, 0}));
}

TEST(Interpreter, AllBlocksOfTheGridRun) {
  ir::Builder b(ir::Function{.name = "k"});
  const int32_t out = b.AddTensor("out", DType::kI64, {{-1, 2}, {-1, 3}, {-1, 2}});
  ValueId value = b.BlockId(0);
  for (int axis : {1, 2}) {
    value = b.Elementwise(
        Opcode::kAdd, {b.Elementwise(Opcode::kMul, {value, b.GridSize(axis)}), b.BlockId(axis)});
  }
  b.Store(out, {ElementAt(b.BlockId(2)), ElementAt(b.BlockId(1)), ElementAt(b.BlockId(0))}, value);
  const auto result =
      Interpret(b.Finish(), {.arguments = {{{2, 3, 2}, std::vector<Bits>(12)}}, .grid = {2, 3, 2}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)[0].elements, (std::vector<Bits>{0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11}));
}

// One operation on scalars of `dtype`.
Bits Of(Opcode opcode, DType dtype, const std::vector<Bits>& operands, DType result,
        int32_t power = 0) {
  ir::Op op{.opcode = opcode, .type = {result, {}}, .index = power};
  const std::optional<Bits> bits = Apply(op, dtype, operands);
  EXPECT_TRUE(bits.has_value());
  return bits.value_or(-1);
}

TEST(Interpreter, IntegersWrap) {
  constexpr DType kI8 = DType::kI8;
  constexpr DType kU64 = DType::kU64;
  EXPECT_EQ(Of(Opcode::kAdd, kI8, {127, 1}, kI8), -128);
  EXPECT_EQ(Of(Opcode::kFloorDiv, kI8, {-128, -1}, kI8), -128);
  EXPECT_EQ(Of(Opcode::kFloorDiv, kI8, {-7, 2}, kI8), -4);
  EXPECT_EQ(Of(Opcode::kMod, kI8, {-7, 2}, kI8), 1);
  EXPECT_EQ(Of(Opcode::kMod, kI8, {7, 0}, kI8), 0);
  EXPECT_EQ(Of(Opcode::kShiftRight, kI8, {-128, 8}, kI8), -1);
  EXPECT_EQ(Of(Opcode::kShiftLeft, kI8, {1, -1}, kI8), 0);
  EXPECT_EQ(Of(Opcode::kMulHigh, kU64, {-1, -1}, kU64), -2);
  EXPECT_EQ(Of(Opcode::kFloorDiv, kU64, {-1, 2}, kU64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Of(Opcode::kPowInt, DType::kI32, {3}, DType::kI32, (1 << 30) + 1), 3);
  EXPECT_EQ(Of(Opcode::kNot, DType::kBool, {1}, DType::kBool), 0);
}

TEST(Interpreter, FloatsRoundAfterEachOperation) {
  // 1 + 2^-11 lies between two f16, and the even one is 1; twice in a row nothing is added.
  const Bits one = FromReal(DType::kF16, 1);
  EXPECT_EQ(Of(Opcode::kAdd, DType::kF16, {one, FromReal(DType::kF16, 0x1p-11L)}, DType::kF16),
            one);
  // (1 + e)^2 = 1 + 2e + e^2: only fma keeps the last term.
  const Bits root = FromReal(DType::kF32, 1 + 0x1p-23L);
  const Bits most = FromReal(DType::kF32, -1 - 0x1p-22L);
  EXPECT_EQ(ToReal(DType::kF32, Of(Opcode::kFma, DType::kF32, {root, root, most}, DType::kF32)),
            0x1p-46L);
  EXPECT_EQ(Of(Opcode::kCast, DType::kF32, {FromReal(DType::kF32, 3e9L)}, DType::kI32),
            std::numeric_limits<int32_t>::max());
  EXPECT_EQ(Of(Opcode::kCast, DType::kF32, {FromReal(DType::kF32, NAN)}, DType::kI32), 0);
  EXPECT_EQ(Of(Opcode::kBitcast, DType::kI16, {-1}, DType::kBF16), 0xffff);
  EXPECT_EQ(Of(Opcode::kBitcast, DType::kBF16, {0xffff}, DType::kI16), -1);
}

// One rounding of a wider result: for f32 it is the nearest float of double's.
TEST(Interpreter, BuiltInsAreRoundedOnce) {
  struct Case {
    Opcode opcode;
    double (*exact)(double);
  };
  const Case cases[] = {{Opcode::kExp, std::exp},
                        {Opcode::kExp2, std::exp2},
                        {Opcode::kExpm1, std::expm1},
                        {Opcode::kLog, std::log},
                        {Opcode::kLog2, std::log2},
                        {Opcode::kLog1p, std::log1p},
                        {Opcode::kRsqrt, [](double x) { return 1 / std::sqrt(x); }},
                        {Opcode::kSin, std::sin},
                        {Opcode::kCos, std::cos},
                        {Opcode::kTanh, std::tanh},
                        {Opcode::kErf, std::erf},
                        {Opcode::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }}};
  for (const Case& c : cases) {
    for (double x : {0.1, 0.7, 1.5, 3.25, 20.0, 700.0}) {
      const Bits bits = FromReal(DType::kF32, x);
      const double rounded = static_cast<float>(x);
      EXPECT_EQ(Of(c.opcode, DType::kF32, {bits}, DType::kF32),
                FromReal(DType::kF32, c.exact(rounded)))
          << static_cast<int>(c.opcode) << " of " << x;
    }
  }
  EXPECT_EQ(Of(Opcode::kPow, DType::kF64, {FromReal(DType::kF64, 2), FromReal(DType::kF64, 0.5)},
               DType::kF64),
            FromReal(DType::kF64, std::sqrt(2.0L)));
  const Bits lowest = FromReal(DType::kBF16, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(
      Of(Opcode::kPow, DType::kBF16, {lowest, FromReal(DType::kBF16, -0x1p63L)}, DType::kBF16), 0);
}

// A step for each op and each element: what ends, ends by its limit.
TEST(Interpreter, NothingIsEndless) {
  Kernel endless;
  endless.b.While([&] { return endless.b.Constant(DType::kBool, int64_t{1}); }, [] {});
  const Launch launch{.arguments = {Floats({0}, {}), Floats({0}, {})}};
  EXPECT_EQ(Interpret(endless.b.Finish(), launch, {.steps = 1000}).status().code(),
            absl::StatusCode::kResourceExhausted);

  Kernel long_for;
  long_for.b.For(long_for.b.Int(std::numeric_limits<int64_t>::min()),
                 long_for.b.Int(std::numeric_limits<int64_t>::max()), 1, [](ValueId) {});
  EXPECT_EQ(Interpret(long_for.b.Finish(), launch, {.steps = 1000}).status().code(),
            absl::StatusCode::kResourceExhausted);

  Kernel empty;
  Launch large = launch;
  large.grid = {int64_t{1} << 40, int64_t{1} << 40, 1};
  EXPECT_EQ(Interpret(empty.b.Finish(), large, {.steps = 1000}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(Interpreter, NoTileIsTooLargeForTheMemory) {
  Kernel k;
  const int64_t side = int64_t{1} << 40;
  k.b.Broadcast(k.F32(1), {side, side, side, side});
  const Launch launch{.arguments = {Floats({0}, {}), Floats({0}, {})}};
  EXPECT_EQ(Interpret(k.b.Finish(), launch).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Interpreter, RefusesWhatIsNoLaunchOfTheFunction) {
  Kernel k;
  const ValueId extent = k.b.Extent(0);
  k.b.Assume(k.b.Elementwise(Opcode::kGreater, {extent, k.b.Int(1)}));
  ir::Function function = k.b.Finish();
  function.grid_dims_used = 1;
  const auto refusal = [&](Launch launch) {
    return std::string(Interpret(function, std::move(launch)).status().message());
  };
  const Argument two = Floats({2}, {1, 2});
  EXPECT_EQ(refusal({.arguments = {two, two}}), "");
  EXPECT_EQ(refusal({.arguments = {two}}), "k takes 2 arguments, not 1");
  EXPECT_EQ(refusal({.arguments = {two, Floats({1, 2}, {1, 2})}}),
            "the argument for out has 2 dimensions, not 1");
  EXPECT_EQ(refusal({.arguments = {two, Floats({3}, {1, 2})}}),
            "the argument for out has another number of elements than its sides say");
  EXPECT_EQ(refusal({.arguments = {two, two}, .grid = {1, 2, 1}}),
            "the grid has 2 blocks in y, which k does not use");
  EXPECT_EQ(refusal({.arguments = {two, two}, .grid = {-1, 1, 1}}),
            "the grid has a negative side x");
  EXPECT_EQ(refusal({.arguments = {Floats({1}, {1}), two}}),
            "the launch breaks the assumption of k at line 0");
  function.body.clear();
  function.params[1].dims[0].extent = 0;
  EXPECT_EQ(refusal({.arguments = {two, Floats({1}, {1})}}),
            "the argument for out has N = 1, but it is 2 before");
  function.params[1].dims[0] = {-1, 5};
  EXPECT_EQ(refusal({.arguments = {two, two}}), "the argument for out has a side of 2, not 5");
}

TEST(Interpreter, AnIllFormedFunctionIsAnError) {
  Kernel k;
  k.b.Store(k.out, {SliceAt(k.b.Int(0), 2)}, k.b.Load(k.x, {SliceAt(k.b.Int(0), 2)}));
  ir::Function function = k.b.Finish();
  function.body.erase(function.body.begin());
  EXPECT_EQ(Interpret(function, {.arguments = {Floats({0}, {}), Floats({0}, {})}}).status().code(),
            absl::StatusCode::kInternal);
}

// Partials of these meet to other sums, near ones first and far ones first.
TEST(InterpreterTest, PartialsMeetInTheOrderThatIsSaid) {
  const std::vector<double> xs = {1e8, 1, -1e8, 1, 0.5, 0};
  const auto sum = [&](int32_t partials, bool is_near) {
    Kernel k;
    k.b.Store(k.out, {ElementAt(k.b.Int(0))},
              k.b.Reduce(Opcode::kSumOver, k.b.Load(k.x, {SliceAt(k.b.Int(0), 6)}), 0, partials));
    ir::Function function = k.b.Finish();
    for (ir::Op& op : function.body) op.is_near = is_near && op.opcode == Opcode::kSumOver;
    const auto result = Interpret(function, {.arguments = {Floats({6}, xs), Floats({1}, {0})}});
    return Values((*result)[1])[0];
  };
  EXPECT_EQ(sum(4, false), 2);  // ((1e8 + .5) - 1e8) + (1 + 1)
  EXPECT_EQ(sum(4, true), 0);   // ((1e8 + .5) + 1) + (-1e8 + 1)
  EXPECT_EQ(sum(3, true), 0);   // ((1e8 + 1) + (1 + .5)) + (-1e8 + 0)
}

TEST(InterpreterTest, AScanInPiecesAddsTheirSums) {
  Kernel k;
  ir::Builder& b = k.b;
  b.Store(k.out, {SliceAt(b.Int(0), 5)}, b.CumulativeSum(b.Load(k.x, {SliceAt(b.Int(0), 5)}), 0));
  ir::Function function = b.Finish();
  const auto scan = [&](int32_t piece) {
    for (ir::Op& op : function.body) {
      if (op.opcode == Opcode::kCumulativeSum) op.index = piece;
    }
    const Launch launch{
        .arguments = {Floats({5}, {1e8, 1, 3, 3, 1}), Floats({5}, {0, 0, 0, 0, 0})}};
    return Values((*Interpret(function, launch))[1]);
  };
  EXPECT_EQ(scan(0), (std::vector<double>{1e8, 1e8, 1e8, 1e8, 1e8}));
  EXPECT_EQ(scan(2), (std::vector<double>{1e8, 1e8, 1e8, 100000008, 100000008}));
}

}  // namespace
}  // namespace phobos::compiler::interpreter
