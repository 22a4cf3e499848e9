// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores: every element type at sizes around the tile, positions outside on either side,
// fills, masks, gathers, scatters, strided and multi-dimensional slices; each tensor lies against
// a page that may not be touched.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/ir/verifier.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"
#include "tests/compiler/codegen/compiled/emulated.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::ElementAt;
using ir::GatherAt;
using ir::kDTypes;
using ir::Opcode;
using ir::SliceAt;
using ir::ValueId;

Argument Tensor(std::vector<int64_t> sides, DType dtype, uint64_t seed) {
  std::mt19937_64 random(seed);
  Argument argument{std::move(sides), {}};
  const ir::Type type{dtype, argument.sides};
  for (int64_t i = 0; i < type.elements(); ++i) {
    const auto value = static_cast<int64_t>(random() % 201) - 100;
    argument.elements.push_back(ir::IsFloat(dtype)
                                    ? FromReal(dtype, static_cast<long double>(value) / 4)
                                    : FromInteger(dtype, value));
  }
  return argument;
}

Argument Indices(std::vector<int64_t> sides, int64_t lo, int64_t hi, uint64_t seed) {
  std::mt19937_64 random(seed);
  Argument argument{std::move(sides), {}};
  const ir::Type type{DType::kI64, argument.sides};
  for (int64_t i = 0; i < type.elements(); ++i) {
    argument.elements.push_back(lo +
                                static_cast<int64_t>(random() % static_cast<uint64_t>(hi - lo)));
  }
  return argument;
}

class MemoryTest : public ::testing::Test {
 protected:
  explicit MemoryTest() : b(ir::Function{.name = "memory"}) {}

  ir::Dim Extent(const char* name) { return {.extent = b.AddExtent(name)}; }
  ValueId Sum(ValueId x, ValueId y) { return b.Elementwise(Opcode::kAdd, {x, y}); }
  ValueId Product(ValueId x, ValueId y) { return b.Elementwise(Opcode::kMul, {x, y}); }
  ValueId BlockBase(int64_t block) { return Product(b.BlockId(0), b.Int(block)); }

  ir::Builder b;
};

class MemoryOfTypeTest : public ::testing::TestWithParam<DType> {};

// out[base:+B] = x[base:+B] for sizes around multiples of B, B not always a multiple of a vector.
TEST_P(MemoryOfTypeTest, CopiesTensorsOfAnySize) {
  const DType dtype = GetParam();
  for (int64_t block : {1, 7, 64, 100, 1024}) {
    ir::Builder b(ir::Function{.name = "copy"});
    const ir::Dim n{.extent = b.AddExtent("N")};
    const int32_t x = b.AddTensor("x", dtype, {n});
    const int32_t out = b.AddTensor("out", dtype, {n});
    const ValueId base = b.Elementwise(Opcode::kMul, {b.BlockId(0), b.Int(block)});
    b.Store(out, {SliceAt(base, block)}, b.Load(x, {SliceAt(base, block)}));
    const ir::Function function = b.Finish();
    std::vector<std::unique_ptr<Compiled>> compiled;
    for (const host::Chip& chip : ChipsUnderTest()) {
      auto made = Compiled::Make(function, chip);
      ASSERT_TRUE(made.ok()) << made.status();
      compiled.push_back(*std::move(made));
    }
    for (int64_t size : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{61}, block - 1, block,
                         block + 1, 2 * block + 3}) {
      Launch launch;
      launch.arguments = {Tensor({size}, dtype, 1), Tensor({size}, dtype, 2)};
      // One block more than there are elements for.
      launch.grid[0] = (size + block - 1) / block + 1;
      for (const auto& kernel : compiled) {
        for (Against against : {Against::kPageAfter, Against::kPageBefore}) {
          const auto got = kernel->Run(launch, against);
          ASSERT_TRUE(got.ok()) << got.status();
          EXPECT_EQ((*got)[1].elements, launch.arguments[0].elements)
              << "block " << block << ", size " << size;
        }
      }
    }
  }
}

// Positions far outside on both sides, a mask, a fill; the store is shifted too.
TEST_P(MemoryOfTypeTest, ClipsAtBothEndsWithMaskAndFill) {
  const DType dtype = GetParam();
  ir::Builder b(ir::Function{.name = "clip"});
  const ir::Dim n{.extent = b.AddExtent("N")};
  const int32_t x = b.AddTensor("x", dtype, {n});
  const int32_t m = b.AddTensor("m", DType::kBool, {n});
  const int32_t out = b.AddTensor("out", dtype, {n});
  const int32_t shift = b.AddScalar("shift", DType::kI64);
  const ValueId position = b.Elementwise(
      Opcode::kAdd, {b.Elementwise(Opcode::kMul, {b.BlockId(0), b.Int(96)}), b.ScalarParam(shift)});
  const ValueId mask = b.Load(m, {SliceAt(b.Int(0), 96)});
  const ValueId fill = ir::IsFloat(dtype) ? b.Constant(dtype, 3.0) : b.Constant(dtype, int64_t{1});
  const ValueId value = b.Load(x, {SliceAt(position, 96)}, fill, mask);
  const ValueId store_at = b.Elementwise(Opcode::kSub, {position, b.Int(5)});
  b.Store(out, {SliceAt(store_at, 96)}, value);
  const ir::Function function = b.Finish();
  for (int64_t by :
       {int64_t{0}, int64_t{-95}, int64_t{-200}, int64_t{17}, std::numeric_limits<int64_t>::min(),
        std::numeric_limits<int64_t>::max() - 1000}) {
    Launch launch;
    launch.arguments = {Tensor({150}, dtype, 3),
                        Tensor({150}, DType::kBool, 4),
                        Tensor({150}, dtype, 5),
                        {{}, {by}}};
    launch.grid[0] = 3;
    EXPECT_EQ(Differences(function, launch), "") << "shift " << by;
  }
}

TEST_P(MemoryOfTypeTest, GathersAndScatters) {
  const DType dtype = GetParam();
  for (int32_t index_bits : {32, 64}) {
    ir::Function header{.name = "gather"};
    header.index_bits = index_bits;
    ir::Builder b(header);
    const ir::Dim n{.extent = b.AddExtent("N")};
    const ir::Dim m{.extent = b.AddExtent("M")};
    const int32_t x = b.AddTensor("x", dtype, {n});
    const int32_t from = b.AddTensor("from", DType::kI64, {m});
    const int32_t to = b.AddTensor("to", DType::kI64, {m});
    const int32_t out = b.AddTensor("out", dtype, {n});
    const int32_t dense = b.AddTensor("dense", dtype, {m});
    const ValueId base = b.Elementwise(Opcode::kMul, {b.BlockId(0), b.Int(40)});
    const ValueId value = b.Load(x, {GatherAt(b.Load(from, {SliceAt(base, 40)}))});
    b.Store(dense, {SliceAt(base, 40)}, value);
    b.Store(out, {GatherAt(b.Load(to, {SliceAt(base, 40)}, b.Int(-1)))}, value);
    Launch launch;
    launch.arguments = {Tensor({90}, dtype, 6),
                        Indices({77}, -20, 110, 7),
                        {{77}, {}},
                        Tensor({90}, dtype, 8),
                        Tensor({77}, dtype, 9)};
    // Distinct places, some outside.
    for (int64_t i = 0; i < 77; ++i) launch.arguments[2].elements.push_back((i * 37) % 101 - 5);
    launch.grid[0] = 2;
    EXPECT_EQ(Differences(b.Finish(), launch), "") << "index bits " << index_bits;
  }
}

TEST_P(MemoryOfTypeTest, ScalarsAreTestedToo) {
  const DType dtype = GetParam();
  ir::Builder b(ir::Function{.name = "scalar"});
  const ir::Dim n{.extent = b.AddExtent("N")};
  const int32_t x = b.AddTensor("x", dtype, {n});
  const int32_t out = b.AddTensor("out", dtype, {n});
  const int32_t fill = b.AddScalar("fill", dtype);
  const ValueId i = b.Elementwise(Opcode::kSub, {b.BlockId(0), b.Int(4)});
  const ValueId is_even =
      b.Elementwise(Opcode::kEqual, {b.Elementwise(Opcode::kMod, {i, b.Int(2)}), b.Int(0)});
  const ValueId back = b.Elementwise(Opcode::kSub, {b.Int(9), i});
  b.Store(out, {ElementAt(back)}, b.Load(x, {ElementAt(i)}, b.ScalarParam(fill), is_even));
  Launch launch;
  launch.arguments = {Tensor({13}, dtype, 10), Tensor({11}, dtype, 11), Tensor({1}, dtype, 12)};
  launch.arguments[1] = Tensor({13}, dtype, 11);
  launch.arguments[2].sides.clear();
  launch.grid[0] = 30;
  EXPECT_EQ(Differences(b.Finish(), launch), "");
}

INSTANTIATE_TEST_SUITE_P(Types, MemoryOfTypeTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

TEST_F(MemoryTest, StridedSliceOfAColumn) {
  const ir::Dim rows = Extent("R"), columns = Extent("C");
  const int32_t x = b.AddTensor("x", DType::kF32, {rows, columns});
  const int32_t out = b.AddTensor("out", DType::kF32, {columns, rows});
  // out[c, 0:+50] = x[0:+50, c]; then the transposed store as well.
  const ValueId column = b.Load(x, {SliceAt(b.Int(0), 50), ElementAt(b.BlockId(0))});
  b.Store(out, {ElementAt(b.BlockId(0)), SliceAt(b.Int(0), 50)}, column);
  const ValueId row = b.Load(x, {ElementAt(b.BlockId(0)), SliceAt(b.Int(1), 20)});
  b.Store(out, {SliceAt(b.Int(2), 20), ElementAt(b.BlockId(0))}, row);
  const ir::Function function = b.Finish();
  for (int64_t r : {50, 49, 31}) {
    Launch launch;
    launch.arguments = {Tensor({r, 23}, DType::kF32, 1), Tensor({23, r}, DType::kF32, 2)};
    launch.grid[0] = 24;
    EXPECT_EQ(Differences(function, launch), "") << r;
  }
}

TEST_F(MemoryTest, TilesOfTwoDimensionsWithBroadcasts) {
  const ir::Dim rows = Extent("R"), columns = Extent("C");
  const int32_t x = b.AddTensor("x", DType::kF32, {rows, columns});
  const int32_t bias = b.AddTensor("bias", DType::kF32, {columns});
  const int32_t scale = b.AddTensor("scale", DType::kF32, {rows});
  const int32_t out = b.AddTensor("out", DType::kF32, {rows, columns});
  const std::vector<int64_t> shape = {6, 20};
  const ValueId r = Product(b.BlockId(1), b.Int(6));
  const ValueId c = BlockBase(20);
  const ValueId by_column = b.Broadcast(b.Load(bias, {SliceAt(c, 20)}), shape);
  // A slice of length one of a second dimension makes the column vector.
  const ValueId tile = b.Load(x, {SliceAt(r, 6), SliceAt(c, 20)});
  const ValueId first = b.Broadcast(b.Load(x, {SliceAt(r, 6), SliceAt(c, 1)}), shape);
  const ValueId one = b.Broadcast(b.Load(scale, {ElementAt(r)}), shape);
  b.Store(out, {SliceAt(r, 6), SliceAt(c, 20)}, Sum(Sum(Product(tile, one), by_column), first));
  const ir::Function function = b.Finish();
  for (int64_t columns_size : {40, 33, 1}) {
    Launch launch;
    launch.arguments = {Tensor({13, columns_size}, DType::kF32, 1),
                        Tensor({columns_size}, DType::kF32, 2), Tensor({13}, DType::kF32, 3),
                        Tensor({13, columns_size}, DType::kF32, 4)};
    launch.grid = {3, 3, 1};
    EXPECT_EQ(Differences(function, launch), "") << columns_size;
  }
}

TEST_F(MemoryTest, VariablesOfTwoDimensionsKeepTheirRowsApart) {
  const ir::Dim rows = Extent("R"), columns = Extent("C");
  const int32_t x = b.AddTensor("x", DType::kI16, {rows, columns});
  const int32_t out = b.AddTensor("out", DType::kI16, {rows, columns});
  const ir::VarId sum = b.Declare("sum", b.Load(x, {SliceAt(b.Int(0), 5), SliceAt(b.Int(0), 11)}));
  b.For(b.Int(0), b.Int(3), 1, [&](ValueId) { b.Write(sum, Sum(b.Read(sum), b.Read(sum))); });
  b.Store(out, {SliceAt(b.Int(0), 5), SliceAt(b.Int(0), 11)}, b.Read(sum));
  Launch launch;
  launch.arguments = {Tensor({5, 11}, DType::kI16, 1), Tensor({5, 11}, DType::kI16, 2)};
  EXPECT_EQ(Differences(b.Finish(), launch), "");
}

TEST_F(MemoryTest, RowsByIndexAndPointwiseGathers) {
  const ir::Dim rows = Extent("R"), columns = Extent("C"), picks = Extent("P");
  const int32_t table = b.AddTensor("table", DType::kF32, {rows, columns});
  const int32_t index = b.AddTensor("index", DType::kI64, {picks});
  const int32_t out = b.AddTensor("out", DType::kF32, {picks, columns});
  const int32_t diagonal = b.AddTensor("diagonal", DType::kF32, {picks});
  const ValueId chosen = b.Load(index, {SliceAt(b.Int(0), 9)});
  b.Store(out, {SliceAt(b.Int(0), 9), SliceAt(b.Int(0), 12)},
          b.Load(table, {GatherAt(chosen), SliceAt(b.Int(0), 12)}));
  b.Store(diagonal, {SliceAt(b.Int(0), 9)}, b.Load(table, {GatherAt(chosen), GatherAt(b.Iota(9))}));
  Launch launch;
  launch.arguments = {Tensor({7, 10}, DType::kF32, 1), Indices({8}, -2, 9, 2),
                      Tensor({8, 10}, DType::kF32, 3), Tensor({8}, DType::kF32, 4)};
  EXPECT_EQ(Differences(b.Finish(), launch), "");
}

TEST_F(MemoryTest, LiteralSidesAndThreeGridDimensions) {
  const ir::Dim three{.extent = -1, .literal = 3}, eight{.extent = -1, .literal = 8};
  const int32_t x = b.AddTensor("x", DType::kI32, {three, three, eight});
  const int32_t out = b.AddTensor("out", DType::kI32, {three, three, eight});
  const std::vector<ir::Subscript> place = {ElementAt(b.BlockId(2)), ElementAt(b.BlockId(1)),
                                            SliceAt(b.Int(0), 8)};
  const ValueId here = b.Cast(
      Sum(Product(b.BlockId(0), b.GridSize(1)), Product(b.GridSize(2), b.BlockId(1))), DType::kI32);
  b.Store(out, place, Sum(b.Load(x, place), b.Broadcast(here, {8})));
  Launch launch;
  launch.arguments = {Tensor({3, 3, 8}, DType::kI32, 1), Tensor({3, 3, 8}, DType::kI32, 2)};
  launch.grid = {1, 3, 3};
  EXPECT_EQ(Differences(b.Finish(), launch), "");
}

// A column's one row is its slice's row 12, which is more than 2^31 elements behind the slice's
// start. The tensors are said to be that wide, and only what is touched is there.
TEST_F(MemoryTest, SlicesThatStartFarBeforeTheTensorReachIt) {
  const ir::Dim m = Extent("M");
  const ir::Dim n = Extent("N");
  const int32_t x = b.AddTensor("x", DType::kI32, {m, n});
  const int32_t y = b.AddTensor("y", DType::kI32, {m, n});
  const int32_t out = b.AddTensor("out", DType::kI32, {{.extent = -1, .literal = 16}});
  const std::vector<ir::Subscript> column = {SliceAt(b.Int(-12), 16), ElementAt(b.Int(5))};
  b.Store(out, {SliceAt(b.Int(0), 16)}, b.Load(x, column));
  b.Store(y, column, b.Cast(b.Iota(16), DType::kI32));
  ir::Function function = b.Finish();
  function.index_bits = 32;

  std::vector<int32_t> from(8, 7);
  std::vector<int32_t> to;
  std::vector<int32_t> loaded;
  std::vector<uint64_t> slots;
  auto prepare = [&] {
    to.assign(8, -1);
    loaded.assign(16, -1);
    slots = {reinterpret_cast<uint64_t>(from.data()), reinterpret_cast<uint64_t>(to.data()),
             reinterpret_cast<uint64_t>(loaded.data()), 1, (uint64_t{1} << 31) - 1};
  };
  std::vector<int32_t> want(16, 0);
  want[12] = 7;
  for (const host::Chip& chip : ChipsUnderTest()) {
    const auto compiled = Compiled::Make(function, chip);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    prepare();
    (*compiled)->RunRaw(slots.data(), 1);
    EXPECT_EQ(loaded, want) << chip.name;
    EXPECT_EQ(to[5], 12) << chip.name;
  }
  const auto emulated = Emulated::Make(function, /*threads=*/32);
  ASSERT_TRUE(emulated.ok()) << emulated.status();
  prepare();
  ASSERT_TRUE((*emulated)->RunRaw(slots.data()).ok());
  EXPECT_EQ(loaded, want);
  EXPECT_EQ(to[5], 12);
}

// A tensor large enough for streaming stores, with a tail.
TEST_F(MemoryTest, LargeTensorsAreStoredRight) {
  const ir::Dim n = Extent("N");
  const int32_t x = b.AddTensor("x", DType::kF32, {n});
  const int32_t out = b.AddTensor("out", DType::kF32, {n});
  const ValueId base = BlockBase(4096);
  b.Store(out, {SliceAt(base, 4096)},
          Sum(b.Load(x, {SliceAt(base, 4096)}), b.Load(x, {SliceAt(base, 4096)})));
  constexpr int64_t kSize = (int64_t{3} << 20) + 77;
  Launch launch;
  launch.arguments = {Tensor({kSize}, DType::kF32, 1), Tensor({kSize}, DType::kF32, 2)};
  launch.grid[0] = (kSize + 4095) / 4096;
  EXPECT_EQ(Differences(b.Finish(), launch), "");
}

}  // namespace
}  // namespace phobos::compiler::testing
