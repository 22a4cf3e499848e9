// SPDX-License-Identifier: Apache-2.0
//
// Atomics, compiled for the host and for a GPU's threads, against the interpreter: those whose
// result does not depend on the order of the steps.
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/ir/printer.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::ElementAt;
using ir::GatherAt;
using ir::kDTypes;
using ir::Opcode;
using ir::SliceAt;
using ir::ValueId;

constexpr Opcode kSteps[] = {Opcode::kAtomicAdd, Opcode::kAtomicMaximum, Opcode::kAtomicMinimum,
                             Opcode::kAtomicAnd, Opcode::kAtomicOr,      Opcode::kAtomicXor};

// Small whole numbers, of which sums are exact in every type and order.
Argument Numbers(std::vector<int64_t> sides, DType dtype, uint64_t seed) {
  std::mt19937_64 random(seed);
  Argument argument{std::move(sides), {}};
  const ir::Type type{dtype, argument.sides};
  for (int64_t i = 0; i < type.elements(); ++i) {
    const auto value = static_cast<int64_t>(random() % 9) - 4;
    argument.elements.push_back(ir::IsFloat(dtype) ? FromReal(dtype, value)
                                                   : FromInteger(dtype, value));
  }
  return argument;
}

Argument Places(int64_t count, int64_t lo, int64_t hi, uint64_t seed) {
  std::mt19937_64 random(seed);
  Argument argument{{count}, {}};
  for (int64_t i = 0; i < count; ++i) {
    argument.elements.push_back(lo +
                                static_cast<int64_t>(random() % static_cast<uint64_t>(hi - lo)));
  }
  return argument;
}

// Of tiles: how threads share one out does not depend on the type, so one type has both.
std::vector<int64_t> LengthsFor(DType dtype, int64_t few, int64_t many) {
  if (dtype == DType::kI32) return {few, many};
  return {many};
}

class AtomicOfTypeTest : public ::testing::TestWithParam<DType> {};

// A gather that names elements several times, some outside; a slice that is clipped; an element
// that every block changes.
TEST_P(AtomicOfTypeTest, EveryElementOfAClashingIndexCounts) {
  const DType dtype = GetParam();
  for (Opcode step : kSteps) {
    if (!ir::AtomicWorksOn(step, dtype)) continue;
    for (int64_t length : LengthsFor(dtype, 5, 200)) {
      ir::Builder b(ir::Function{.name = "clash"});
      const ir::Dim n{.extent = b.AddExtent("N")}, m{.extent = b.AddExtent("M")};
      const int32_t out = b.AddTensor("out", dtype, {n});
      const int32_t to = b.AddTensor("to", DType::kI64, {m});
      const int32_t x = b.AddTensor("x", dtype, {m});
      const ValueId base = b.Elementwise(Opcode::kMul, {b.BlockId(0), b.Int(length)});
      const ValueId value = b.Load(x, {SliceAt(base, length)});
      const ValueId places = b.Load(to, {SliceAt(base, length)}, b.Int(-1));
      b.Atomic(step, out, {GatherAt(places)}, {value}, /*has_result=*/false);
      b.Atomic(step, out, {SliceAt(b.Int(-3), length)}, {value}, /*has_result=*/false);
      b.Atomic(step, out, {ElementAt(b.Int(6))}, {b.Load(x, {ElementAt(base)})},
               /*has_result=*/false);
      Launch launch;
      launch.arguments = {Numbers({17}, dtype, 1), Places(203, -2, 20, 2),
                          Numbers({203}, dtype, 3)};
      launch.grid[0] = 203 / length + 1;
      const ir::Function function = b.Finish();
      EXPECT_EQ(Differences(function, launch), "") << ir::Print(function);
    }
  }
}

// With results: places that do not clash within a launch of one block, old values 0 outside.
TEST_P(AtomicOfTypeTest, TheOldValuesComeBack) {
  const DType dtype = GetParam();
  for (int i = 0; i < 7; ++i) {
    const Opcode step = i < 6 ? kSteps[i] : Opcode::kAtomicCompareSwap;
    if (!ir::AtomicWorksOn(step, dtype)) continue;
    for (int64_t length : LengthsFor(dtype, 3, 130)) {
      ir::Builder b(ir::Function{.name = "old"});
      const ir::Dim n{.extent = b.AddExtent("N")};
      const int32_t out = b.AddTensor("out", dtype, {n});
      const int32_t x = b.AddTensor("x", dtype, {n});
      const int32_t old = b.AddTensor("old", dtype, {n});
      const int32_t one = b.AddTensor("one", dtype, {n});
      const ValueId value = b.Load(x, {SliceAt(b.Int(0), length)});
      std::vector<ValueId> operands = {value};
      if (i == 6) operands.push_back(b.Load(x, {SliceAt(b.Int(9), length)}));
      const ValueId by_two =
          b.Elementwise(Opcode::kMul, {b.Iota(length), b.Broadcast(b.Int(2), {length})});
      // Read twice, so that an evaluation in place would be seen.
      const ValueId before = b.Atomic(step, out, {GatherAt(by_two)}, operands, true);
      b.Store(old, {SliceAt(b.Int(1), length)}, before);
      const ValueId again = b.Atomic(step, out, {SliceAt(b.Int(-2), length)}, operands, true);
      b.Store(one, {SliceAt(b.Int(0), length)},
              b.Elementwise(Opcode::kSelect,
                            {b.Elementwise(Opcode::kEqual, {before, again}), before, again}));
      std::vector<ValueId> scalars(operands.size(), b.Load(x, {ElementAt(b.Int(1))}));
      const ValueId first = b.Atomic(step, out, {ElementAt(b.Int(4))}, scalars, true);
      b.Store(one, {ElementAt(b.Int(5))}, first);
      const ValueId outside = b.Atomic(step, out, {ElementAt(b.Int(-4))}, scalars, true);
      b.Store(one, {ElementAt(b.Int(6))}, outside);
      Launch launch;
      launch.arguments = {Numbers({67}, dtype, 1), Numbers({67}, dtype, 2), Numbers({67}, dtype, 3),
                          Numbers({67}, dtype, 4)};
      const ir::Function function = b.Finish();
      EXPECT_EQ(Differences(function, launch), "") << ir::Print(function);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AtomicOfTypeTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

// Statements take effect in order: plain accesses of the elements come before and behind, and the
// atomic in the loop is done once a turn whatever is made of its result.
TEST(AtomicTest, TakesEffectInOrder) {
  ir::Builder b(ir::Function{.name = "order"});
  const ir::Dim n{.extent = b.AddExtent("N")};
  const int32_t out = b.AddTensor("out", DType::kI32, {n});
  const int32_t seen = b.AddTensor("seen", DType::kI32, {n});
  const ValueId one = b.Broadcast(b.Constant(DType::kI32, int64_t{1}), {40});
  const std::vector<ir::Subscript> whole = {SliceAt(b.Int(0), 40)};
  const ValueId at_first = b.Load(out, whole);
  const ValueId back = b.Elementwise(Opcode::kSub, {b.Broadcast(b.Int(39), {40}), b.Iota(40)});
  b.For(b.Int(0), b.Int(3), 1, [&](ValueId) {
    const ValueId old = b.Atomic(Opcode::kAtomicAdd, out, {GatherAt(back)}, {one}, true);
    b.Store(seen, whole, b.Elementwise(Opcode::kAdd, {b.Load(seen, whole), old}));
    b.Atomic(Opcode::kAtomicMaximum, out, whole, {b.Load(seen, {GatherAt(back)})}, false);
    b.Atomic(Opcode::kAtomicAdd, out, {ElementAt(b.Int(7))}, {b.Load(out, {ElementAt(b.Int(8))})},
             true);
  });
  b.Store(seen, whole, b.Elementwise(Opcode::kAdd, {at_first, b.Load(out, whole)}));
  Launch launch;
  launch.arguments = {Numbers({40}, DType::kI32, 1), Numbers({40}, DType::kI32, 2)};
  EXPECT_EQ(Differences(b.Finish(), launch), "");
}

// A product takes its operands where they are computed, but not old values: their steps were done.
TEST(AtomicTest, AProductOfOldValues) {
  ir::Builder b(ir::Function{.name = "product"});
  const ir::Dim four{.extent = -1, .literal = 4};
  const int32_t x = b.AddTensor("x", DType::kF32, {four, four});
  const int32_t out = b.AddTensor("out", DType::kF32, {four, four});
  const std::vector<ir::Subscript> whole = {SliceAt(b.Int(0), 4), SliceAt(b.Int(0), 4)};
  const ValueId read = b.Load(x, whole);
  const ValueId old = b.Atomic(Opcode::kAtomicAdd, x, whole, {b.Load(out, whole)}, true);
  const ValueId pair =
      b.Pair(Opcode::kInterleave, b.Load(x, {SliceAt(b.Int(0), 4), SliceAt(b.Int(0), 2)}),
             b.Load(x, {SliceAt(b.Int(0), 4), SliceAt(b.Int(2), 2)}));
  const ValueId first = b.Dot(old, pair, ir::kNoValue, false, ir::Precision::kExact);
  b.Store(out, whole, b.Dot(read, first, ir::kNoValue, false, ir::Precision::kExact));
  Launch launch;
  launch.arguments = {Numbers({4, 4}, DType::kF32, 1), Numbers({4, 4}, DType::kF32, 2)};
  EXPECT_EQ(Differences(b.Finish(), launch), "");
}

// Of two NaNs either may stay; a NaN is the largest and the smallest.
TEST(AtomicTest, ExtremesOfFloatsPassNaNsOn) {
  ir::Builder b(ir::Function{.name = "nan"});
  const ir::Dim four{.extent = -1, .literal = 4};
  const int32_t out = b.AddTensor("out", DType::kF32, {four});
  const int32_t x = b.AddTensor("x", DType::kF32, {four});
  const std::vector<ir::Subscript> whole = {SliceAt(b.Int(0), 4)};
  b.Atomic(Opcode::kAtomicMaximum, out, whole, {b.Load(x, whole)}, false);
  b.Atomic(Opcode::kAtomicMinimum, out, whole, {b.Load(x, whole)}, false);
  constexpr Bits kNan = 0x7fc00000, kOne = 0x3f800000, kZero = 0, kMinusZero = 0x80000000;
  Launch launch;
  launch.arguments = {{{4}, {kNan, kOne, kZero, kMinusZero}},
                      {{4}, {kOne, kNan, kMinusZero, kZero}}};
  EXPECT_EQ(Differences(b.Finish(), launch), "");
}

}  // namespace
}  // namespace phobos::compiler::testing
