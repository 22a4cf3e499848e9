// SPDX-License-Identifier: Apache-2.0
//
// Each barrier is needed: kernels whose threads pass elements to each other give the interpreter's
// results, and wrong ones where no thread waits.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/builder.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"
#include "tests/compiler/codegen/compiled/emulated.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::Opcode;
using ir::SliceAt;
using ir::ValueId;

Launch LaunchOf(const ir::Function& function, int64_t size) {
  Launch launch;
  for (const ir::Param& param : function.params) {
    Argument argument{.sides = std::vector<int64_t>(param.dims.size(), size), .elements = {}};
    int64_t count = 1;
    for (int64_t side : argument.sides) count *= side;
    for (int64_t i = 0; i < count; ++i) {
      argument.elements.push_back((i * 37 + static_cast<int64_t>(launch.arguments.size()) * 11) %
                                  101);
    }
    launch.arguments.push_back(std::move(argument));
  }
  return launch;
}

void ExpectThatBarriersMatter(const ir::Function& function, int64_t size) {
  const Launch launch = LaunchOf(function, size);
  EXPECT_EQ(Differences(function, launch), "");
  const auto without = Emulated::Make(function, 32, Emulated::Barriers::kNone);
  ASSERT_TRUE(without.ok()) << without.status();
  const auto got = (*without)->Run(launch, Against::kPageBefore);
  EXPECT_FALSE(got.ok()) << "the order of the threads should matter";
}

class BarrierTest : public ::testing::Test {
 protected:
  BarrierTest() : b(ir::Function{.name = "barriers"}) {
    n = {.extent = b.AddExtent("N")};
    x = b.AddTensor("x", DType::kI32, {n});
    out = b.AddTensor("out", DType::kI32, {n});
  }
  ValueId LoadAt(int32_t tensor, int64_t first, int64_t length) {
    return b.Load(tensor, {SliceAt(b.Int(first), length)});
  }
  void StoreAt(int64_t first, int64_t length, ValueId value) {
    b.Store(out, {SliceAt(b.Int(first), length)}, value);
  }

  ir::Builder b;
  ir::Dim n;
  int32_t x = 0;
  int32_t out = 0;
};

TEST_F(BarrierTest, ReadAfterANeighboursWrite) {
  StoreAt(0, 256, LoadAt(x, 0, 256));
  b.Store(x, {SliceAt(b.Int(0), 256)}, LoadAt(out, 1, 256));
  ExpectThatBarriersMatter(b.Finish(), 300);
}

TEST_F(BarrierTest, WriteOverWhatANeighbourReads) {
  StoreAt(1, 256, LoadAt(out, 0, 256));
  ExpectThatBarriersMatter(b.Finish(), 300);
}

TEST_F(BarrierTest, WriteAfterWrite) {
  StoreAt(0, 256, LoadAt(x, 0, 256));
  StoreAt(7, 256, b.Broadcast(b.Constant(DType::kI32, int64_t{5}), {256}));
  ExpectThatBarriersMatter(b.Finish(), 300);
}

TEST_F(BarrierTest, AroundALoop) {
  b.For(b.Int(0), b.Int(5), 1, [&](ValueId index) {
    const ValueId next = b.Elementwise(Opcode::kAdd, {index, b.Int(1)});
    b.Store(out, {SliceAt(next, 200)}, b.Load(out, {SliceAt(index, 200)}));
  });
  ExpectThatBarriersMatter(b.Finish(), 300);
}

TEST_F(BarrierTest, OneElementForAll) {
  const ValueId first = b.Load(x, {ir::ElementAt(b.Int(9))});
  b.Store(out, {ir::ElementAt(b.Int(3))}, first);
  const ValueId again = b.Load(out, {ir::ElementAt(b.Int(3))});
  StoreAt(4, 100, b.Broadcast(again, {100}));
  ExpectThatBarriersMatter(b.Finish(), 300);
}

TEST_F(BarrierTest, OtherLayoutsOfTheSameElements) {
  const int32_t wide = b.AddTensor("wide", DType::kI64, {n});
  StoreAt(0, 128, LoadAt(x, 0, 128));
  StoreAt(0, 64, b.Cast(b.Load(wide, {SliceAt(b.Int(0), 64)}), DType::kI32));
  ExpectThatBarriersMatter(b.Finish(), 300);
}

TEST_F(BarrierTest, ATileThatAllThreadsRead) {
  const int32_t table = b.AddTensor("table", DType::kI32, {n, n});
  const ir::VarId row = b.Declare("row", LoadAt(x, 0, 20));
  b.For(b.Int(0), b.Int(3), 1, [&](ValueId index) {
    b.Store(table, {SliceAt(index, 10), SliceAt(b.Int(0), 20)}, b.Broadcast(b.Read(row), {10, 20}));
    b.Write(row, b.Load(x, {SliceAt(index, 20)}));
  });
  ExpectThatBarriersMatter(b.Finish(), 30);
}

TEST_F(BarrierTest, AnAtomicAfterANeighboursWrite) {
  StoreAt(0, 256, LoadAt(x, 0, 256));
  b.Atomic(Opcode::kAtomicMaximum, out, {SliceAt(b.Int(3), 256)}, {LoadAt(x, 0, 256)}, false);
  ExpectThatBarriersMatter(b.Finish(), 300);
}

TEST_F(BarrierTest, AtomicsOfTwoKinds) {
  b.Atomic(Opcode::kAtomicAdd, out, {SliceAt(b.Int(3), 256)}, {LoadAt(x, 0, 256)}, false);
  b.Atomic(Opcode::kAtomicXor, out, {SliceAt(b.Int(0), 256)}, {LoadAt(x, 0, 256)}, false);
  ExpectThatBarriersMatter(b.Finish(), 300);
}

}  // namespace
}  // namespace phobos::compiler::testing
