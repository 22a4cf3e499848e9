// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/stage.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "gtest/gtest.h"

namespace phobos::compiler::passes {
namespace {

using ir::DType;
using ir::ElementAt;
using ir::GatherAt;
using ir::Opcode;
using ir::SliceAt;
using ir::ValueId;

class StageTest : public ::testing::Test {
 protected:
  StageTest() : b(ir::Function{.name = "k"}) {
    const ir::Dim n{.extent = b.AddExtent("N")};
    x = b.AddTensor("x", DType::kF32, {n});
    out = b.AddTensor("out", DType::kF32, {n});
    base = b.Elementwise(Opcode::kMul, {b.BlockId(0), b.Int(64)});
  }

  ValueId LoadAt(int32_t tensor, ValueId position) {
    return b.Load(tensor, {SliceAt(position, 64)});
  }
  ValueId Sum(ValueId a, ValueId c) { return b.Elementwise(Opcode::kAdd, {a, c}); }
  void Store(ValueId value) { b.Store(out, {SliceAt(base, 64)}, value); }

  // The function after the pass, as text; it is well formed.
  std::string Staged() {
    const ir::Function function = Stage(b.Finish());
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
    return ir::Print(function);
  }

  static int Count(const std::string& text, const std::string& part) {
    int count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  }
  int Stages() { return Count(Staged(), " = stage "); }

  ir::Builder b;
  int32_t x = 0, out = 0;
  ValueId base = 0;
};

int64_t CpuNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// As long as a kernel is, so long it takes: stores that each might disturb each load.
TEST(Stage, TakesTimeByTheLengthOfTheText) {
  const auto time_of = [](int stores) {
    ir::Builder b(ir::Function{.name = "k"});
    const int32_t out = b.AddTensor("out", DType::kF32, {{.extent = b.AddExtent("N")}});
    const ValueId base = b.BlockId(0);
    for (int i = 0; i < stores; ++i) {
      b.Store(out, {SliceAt(base, 64)}, b.Load(out, {SliceAt(base, 64)}));
    }
    ir::Function function = b.Finish();
    const int64_t begin = CpuNanoseconds();
    Stage(std::move(function));
    return CpuNanoseconds() - begin;
  };
  const int64_t of_few = std::max<int64_t>(time_of(2000), 1000);
  EXPECT_LT(time_of(64000) / of_few, 32 * 8);  // by the square: 32 * 32
}

TEST_F(StageTest, AChainOfOperationsIsHeldNowhere) {
  Store(b.Elementwise(Opcode::kTanh, {Sum(LoadAt(x, base), LoadAt(x, base))}));
  EXPECT_EQ(Stages(), 0);
}

TEST_F(StageTest, UpdatingInPlaceIsHeldNowhere) {
  // The same place, by the same value and by an equal one.
  Store(Sum(LoadAt(out, base), LoadAt(x, base)));
  const ValueId again = b.Elementwise(Opcode::kMul, {b.BlockId(0), b.Int(64)});
  Store(Sum(LoadAt(out, again), LoadAt(x, base)));
  EXPECT_EQ(Stages(), 0);
}

TEST_F(StageTest, ReadingAnotherPlaceThanIsWrittenIsHeld) {
  Store(LoadAt(out, Sum(base, b.Int(1))));
  EXPECT_EQ(Staged(), R"(kernel k(x: f32[N], out: f32[N] in out) threads=256 index_bits=64
  %0: i64 = block_id x
  %1: i64 = constant 64
  %2: i64 = mul %0, %1
  %3: i64 = constant 1
  %4: i64 = add %2, %3
  %5: f32[64] = load out[%4:+64]
  %6: f32[64] = stage %5
  store out[%2:+64], %6
)");
}

TEST_F(StageTest, AStoreInBetweenHoldsTheLoad) {
  const ValueId before = LoadAt(out, base);
  Store(LoadAt(x, base));
  Store(Sum(before, LoadAt(x, base)));
  EXPECT_EQ(Stages(), 1);
}

TEST_F(StageTest, AGatherFromWhatIsWrittenIsHeld) {
  const ValueId places = b.Cast(LoadAt(x, base), DType::kI64);
  Store(b.Load(out, {GatherAt(places)}));
  EXPECT_EQ(Stages(), 1);
}

TEST_F(StageTest, AWriteOfTheVariableInBetweenHoldsItsOldValue) {
  const ir::VarId v = b.Declare("v", LoadAt(x, base));
  const ValueId old = b.Read(v);
  b.Write(v, Sum(b.Read(v), old));
  Store(Sum(old, b.Read(v)));
  EXPECT_EQ(Stages(), 1);
}

TEST_F(StageTest, ALoopThatWritesWhatWasReadBeforeItHoldsTheLoad) {
  const ValueId before = LoadAt(out, base);
  b.For(b.Int(0), b.Extent(0), 1, [&](ValueId) { Store(Sum(before, LoadAt(out, base))); });
  EXPECT_EQ(Stages(), 1);
}

TEST_F(StageTest, ALoopThatReadsAndWritesInOneTurnHoldsNothing) {
  b.For(b.Int(0), b.Extent(0), 1, [&](ValueId) { Store(Sum(LoadAt(out, base), LoadAt(x, base))); });
  EXPECT_EQ(Stages(), 0);
}

TEST_F(StageTest, ATransposeIsHeldAndAReshapeOfItIsNot) {
  const ValueId tile = b.Reshape(LoadAt(x, base), {8, 8});
  const ValueId turned = b.Reshape(b.Transpose(tile, {1, 0}), {64});
  Store(turned);
  const std::string text = Staged();
  EXPECT_EQ(Count(text, " = stage "), 2) << text;  // what is turned, and what the reshape reads
  EXPECT_EQ(Count(text, "transpose"), 1) << text;
}

TEST_F(StageTest, AReductionIsHeldIfItGivesATile) {
  const ValueId tile = b.Reshape(LoadAt(x, base), {8, 8});
  const ValueId rows = b.Reduce(Opcode::kSumOver, tile, 1, 8);
  const ValueId all = b.Reduce(Opcode::kSumOver, rows, 0, 8);
  Store(b.Broadcast(all, {64}));
  const std::string text = Staged();
  EXPECT_EQ(Count(text, " = stage "), 2) << text;  // what is reshaped, and the rows
}

TEST_F(StageTest, WhatIsMultipliedIsHeldAndWhatAVariableTakesIsNot) {
  const int32_t m = b.AddTensor("m", DType::kF32, {{-1, 8}, {-1, 8}});
  const std::vector<ir::Subscript> all = {SliceAt(b.Int(0), 8), SliceAt(b.Int(0), 8)};
  const ir::VarId sums = b.Declare("sums", b.Load(m, all));
  const ValueId product = b.Dot(b.Load(m, all), b.Read(sums), b.Read(sums),
                                /*is_transposed=*/false, ir::Precision::kExact);
  b.Write(sums, product);
  b.Store(m, all, b.Read(sums));
  const std::string text = Staged();
  // Both operands, but not what the sums start from, nor the sums.
  EXPECT_EQ(Count(text, " = stage "), 2) << text;
  EXPECT_EQ(Count(text, " acc "), 1) << text;
}

TEST_F(StageTest, AProductThatIsUsedTwiceIsHeld) {
  const int32_t m = b.AddTensor("m", DType::kF32, {{-1, 8}, {-1, 8}});
  const std::vector<ir::Subscript> all = {SliceAt(b.Int(0), 8), SliceAt(b.Int(0), 8)};
  const ValueId tile = b.Load(m, all);
  const ValueId product = b.Dot(tile, tile, ir::kNoValue, true, ir::Precision::kTf32);
  b.Declare("first", product);
  b.Store(m, all, product);
  EXPECT_EQ(Stages(), 2);  // the tile, and the product
}

TEST_F(StageTest, InRegistersALoadThatIsReducedAndUsedIsHeld) {
  const ValueId loaded = LoadAt(x, base);
  const ValueId all = b.Reduce(Opcode::kSumOver, loaded, 0, 32);
  Store(Sum(loaded, b.Broadcast(all, {64})));
  ir::Function function = b.Finish();
  EXPECT_EQ(Count(ir::Print(Stage(function)), " = stage "), 0);
  EXPECT_EQ(Count(ir::Print(StageInRegisters(function)), " = stage "), 1);
  function.threads = 0;  // a thread would hold too much
  EXPECT_EQ(Count(ir::Print(StageInRegisters(function)), " = stage "), 0);
}

TEST_F(StageTest, WhatAScalarIsReducedFromIsComputedBeforeLaterStores) {
  const ValueId all = b.Reduce(Opcode::kSumOver, LoadAt(out, base), 0, 32);
  Store(LoadAt(x, base));
  Store(b.Broadcast(all, {64}));
  EXPECT_EQ(Stages(), 0);
}

TEST_F(StageTest, SidesOfOneNeedNoMemory) {
  Store(b.Reshape(b.Reshape(LoadAt(x, base), {1, 64, 1}), {64}));
  EXPECT_EQ(Stages(), 0);
}

TEST_F(StageTest, WhatABroadcastRepeatsIsComputedOnceUnlessItIsCheap) {
  const ValueId row = b.Reshape(LoadAt(x, base), {64, 1});
  const ValueId cheap = b.Broadcast(Sum(row, row), {64, 8});
  const ValueId dear = b.Broadcast(b.Elementwise(Opcode::kExp, {row}), {64, 8});
  b.Declare("v", Sum(cheap, dear));
  const std::string text = Staged();
  EXPECT_EQ(Count(text, " = stage "), 1) << text;
  EXPECT_NE(text.find("f32[64, 1] = stage"), std::string::npos) << text;
}

TEST_F(StageTest, DearValuesAreComputedOnce) {
  const ValueId dear = b.Elementwise(Opcode::kExp, {LoadAt(x, base)});
  const ValueId cheap = Sum(LoadAt(x, base), LoadAt(x, base));
  Store(Sum(dear, cheap));
  b.Store(out, {SliceAt(Sum(base, b.Int(64)), 64)}, Sum(dear, cheap));
  const std::string text = Staged();
  EXPECT_EQ(Count(text, " = stage "), 1);
  EXPECT_EQ(Count(text, " = exp "), 1);
}

TEST_F(StageTest, OfAChainTheLastDearValueIsHeld) {
  const ValueId dear = b.Elementwise(Opcode::kExp, {LoadAt(x, base)});
  const ValueId last = Sum(dear, dear);
  Store(last);
  b.Store(out, {SliceAt(Sum(base, b.Int(64)), 64)}, last);
  const std::string text = Staged();
  EXPECT_EQ(Count(text, " = stage "), 1);
  EXPECT_EQ(Count(text, "stage %" + std::to_string(last)), 1);
}

TEST_F(StageTest, DearValuesOutsideALoopAreNotComputedInIt) {
  const ValueId dear = b.Elementwise(Opcode::kExp, {LoadAt(x, base)});
  b.For(b.Int(0), b.Extent(0), 1, [&](ValueId) { Store(Sum(LoadAt(out, base), dear)); });
  EXPECT_EQ(Stages(), 1);
}

TEST_F(StageTest, ScalarsAreNeverHeld) {
  const ValueId scalar = b.Load(out, {ElementAt(base)});
  Store(LoadAt(x, base));
  b.Store(out, {ElementAt(base)}, scalar);
  EXPECT_EQ(Stages(), 0);
}

}  // namespace
}  // namespace phobos::compiler::passes
