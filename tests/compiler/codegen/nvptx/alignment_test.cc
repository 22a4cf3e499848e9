// SPDX-License-Identifier: Apache-2.0
//
// Wide accesses happen exactly where they are aligned: promises that are kept, positions that are
// multiples and positions that are not. (A wide access that is not aligned ends the test.)
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/builder.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"
#include "tests/compiler/codegen/compiled/emulated.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::ElementAt;
using ir::SliceAt;
using ir::ValueId;

struct Case {
  int64_t promised_bytes;
  int64_t promised_multiple;  // of a row
  int64_t columns;
  int64_t step;   // between blocks
  int64_t first;  // of block 0
};

// out[r, c:+32] = x[r, c:+32] and out[r:+2, c:+32] += x[r:+2, c:+32], row by row.
ir::Function Rows(const Case& c) {
  ir::Builder b(ir::Function{.name = "rows"});
  const ir::Dim m{.extent = b.AddExtent("M")};
  const ir::Dim n{.extent = b.AddExtent("N", c.promised_multiple)};
  const int32_t x = b.AddTensor("x", DType::kF32, {m, n});
  const int32_t out = b.AddTensor("out", DType::kF32, {m, n});
  const ValueId column = b.Elementwise(
      ir::Opcode::kAdd,
      {b.Elementwise(ir::Opcode::kMul, {b.BlockId(0), b.Int(c.step)}), b.Int(c.first)});
  b.For(b.Int(0), b.Extent(0), 1, [&](ValueId row) {
    b.Store(out, {ElementAt(row), SliceAt(column, 32)},
            b.Load(x, {ElementAt(row), SliceAt(column, 32)}));
    const std::vector<ir::Subscript> two = {SliceAt(row, 2), SliceAt(column, 32)};
    b.Store(out, two, b.Elementwise(ir::Opcode::kAdd, {b.Load(out, two), b.Load(x, two)}));
  });
  ir::Function function = b.Finish();
  for (ir::Param& param : function.params) param.aligned_bytes = c.promised_bytes;
  return function;
}

TEST(AlignmentTest, HoldsAtEveryPromiseAndPosition) {
  for (const Case& c : {Case{1, 1, 100, 32, 0}, Case{16, 1, 100, 32, 0}, Case{16, 4, 100, 32, 0},
                        Case{16, 4, 100, 32, 1}, Case{16, 2, 98, 32, 0}, Case{16, 1, 97, 32, 0},
                        Case{4, 4, 100, 32, 0}, Case{8, 4, 100, 34, 0}, Case{16, 4, 100, 30, 2},
                        Case{16, 4, 100, 20, -4}, Case{16, 64, 128, 32, 0}}) {
    const ir::Function function = Rows(c);
    Launch launch;
    for (int p = 0; p < 2; ++p) {
      Argument argument{.sides = {5, c.columns}, .elements = {}};
      for (int64_t i = 0; i < 5 * c.columns; ++i) {
        argument.elements.push_back(FromReal(DType::kF32, (i * 7 + p) % 53));
      }
      launch.arguments.push_back(std::move(argument));
    }
    launch.grid[0] = 4;
    const auto want = Interpret(function, launch);
    ASSERT_TRUE(want.ok()) << want.status();
    for (int32_t threads : {32, 64}) {
      const auto emulated = Emulated::Make(function, threads);
      ASSERT_TRUE(emulated.ok()) << emulated.status();
      for (Against against : {Against::kPageBefore, Against::kPageAfter}) {
        const auto got = (*emulated)->Run(launch, against);
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_EQ((*got)[1].elements, (*want)[1].elements)
            << c.promised_bytes << " " << c.promised_multiple << " " << c.columns << " " << c.step
            << " " << c.first;
      }
    }
  }
}

// What the other tests of promises count on.
TEST(AlignmentTest, TensorsLieWhereTheyArePromisedTo) {
  ir::Builder b(ir::Function{.name = "nothing"});
  constexpr int64_t kPromises[] = {1, 4, 16, 64, 256};
  Launch launch;
  for (const int64_t promise : kPromises) {
    b.AddTensor(absl::StrCat("x", promise), DType::kU8, {ir::Dim{.extent = -1, .literal = 5}});
    launch.arguments.push_back({.sides = {5}, .elements = std::vector<Bits>(5)});
  }
  ir::Function function = b.Finish();
  for (size_t p = 0; p < function.params.size(); ++p) {
    function.params[p].aligned_bytes = kPromises[p];
  }
  for (Against against : {Against::kPageBefore, Against::kPageAfter}) {
    const auto after = RunGuarded(function, launch, against, [&](const uint64_t* slots) {
      for (size_t p = 0; p < function.params.size(); ++p) {
        EXPECT_EQ(slots[p] % static_cast<uint64_t>(kPromises[p]), 0u) << kPromises[p];
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(after.ok()) << after.status();
  }
}

}  // namespace
}  // namespace phobos::compiler::testing
