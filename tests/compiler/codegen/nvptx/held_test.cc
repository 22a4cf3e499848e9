// SPDX-License-Identifier: Apache-2.0
//
// Tiles that are held from one statement to another: in registers, in a thread's local memory where
// they are too large for that, in shared memory where threads pass elements to each other.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/nvptx/nvptx.h"
#include "compiler/ir/builder.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::Opcode;
using ir::SliceAt;
using ir::ValueId;

// total = x; for j in 0..2: total = total * 2 + x[j:]; flags = total > x; out = total where flags.
ir::Function Accumulate(int64_t length, DType dtype) {
  ir::Builder b(ir::Function{.name = "accumulate"});
  const ir::Dim n{.extent = b.AddExtent("N")};
  const int32_t x = b.AddTensor("x", dtype, {n});
  const int32_t out = b.AddTensor("out", dtype, {n});
  const auto slice = [&](ValueId first) {
    return std::vector<ir::Subscript>{SliceAt(first, length)};
  };
  const ir::VarId total = b.Declare("total", b.Load(x, slice(b.Int(0))));
  b.For(b.Int(0), b.Int(3), 1, [&](ValueId index) {
    const ValueId old = b.Read(total);
    const ValueId twice = b.Elementwise(Opcode::kAdd, {old, old});
    b.Write(total, b.Elementwise(Opcode::kAdd, {twice, b.Load(x, slice(index))}));
  });
  const ir::VarId flags = b.Declare(
      "flags", b.Elementwise(Opcode::kGreater, {b.Read(total), b.Load(x, slice(b.Int(0)))}));
  b.Write(total, b.Elementwise(Opcode::kSelect,
                               {b.Read(flags), b.Read(total), b.Load(x, slice(b.Int(0)))}));
  b.Store(out, slice(b.Int(0)), b.Read(total));
  return b.Finish();
}

Launch LaunchOf(int64_t size, DType dtype) {
  Launch launch;
  for (int p = 0; p < 2; ++p) {
    Argument argument{.sides = {size}, .elements = {}};
    for (int64_t i = 0; i < size; ++i) {
      argument.elements.push_back(ir::IsFloat(dtype) ? FromReal(dtype, i % 61 - 30)
                                                     : FromInteger(dtype, i % 61 - 30));
    }
    launch.arguments.push_back(std::move(argument));
  }
  return launch;
}

bool Has(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

TEST(HeldTest, SmallTilesAreRegistersAndLargeOnesLocalMemory) {
  struct Case {
    DType dtype;
    int64_t length;
  };
  for (const auto& [dtype, length] :
       {Case{DType::kF32, 64}, Case{DType::kF32, 1000}, Case{DType::kF32, 4096},
        Case{DType::kF32, 4100}, Case{DType::kI8, 4112}, Case{DType::kF64, 5001}}) {
    ir::Function function = Accumulate(length, dtype);
    for (const int64_t size : {length, length - 7}) {
      EXPECT_EQ(Differences(function, LaunchOf(size, dtype)), "") << length << " of " << size;
    }
    function.threads = 64;
    const auto artifact = nvptx::Compile(function, *nvptx::ResolveChip("sm_90"));
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    EXPECT_EQ(Has(artifact->ptx, ".local"), length > 4096) << length;
    EXPECT_FALSE(Has(artifact->ptx, "bar.sync"));
    EXPECT_EQ(artifact->shared_memory_bytes, 0);
  }
}

// A row and a column that all threads need, held over a loop that changes them.
TEST(HeldTest, TilesThatOthersReadAreInSharedMemory) {
  for (const int64_t length : {4, 33, 128}) {
    ir::Builder b(ir::Function{.name = "outer"});
    const ir::Dim n{.extent = b.AddExtent("N")};
    const int32_t x = b.AddTensor("x", DType::kI16, {n});
    const int32_t out = b.AddTensor("out", DType::kI16, {n, n});
    const ir::VarId row = b.Declare("row", b.Load(x, {SliceAt(b.Int(0), length)}));
    b.For(b.Int(0), b.Int(4), 1, [&](ValueId index) {
      const std::vector<ir::Subscript> place = {SliceAt(index, 8), SliceAt(b.Int(0), length)};
      const ValueId many = b.Broadcast(b.Read(row), {8, length});
      b.Store(out, place, b.Elementwise(Opcode::kAdd, {b.Load(out, place), many}));
      b.Write(row, b.Elementwise(Opcode::kAdd, {b.Read(row), b.Load(x, {SliceAt(index, length)})}));
    });
    const ir::Function function = b.Finish();
    Launch launch = LaunchOf(130, DType::kI16);
    launch.arguments[1].sides = {130, 130};
    launch.arguments[1].elements.resize(130 * 130);
    EXPECT_EQ(Differences(function, launch), "") << length;
    const auto artifact = nvptx::Compile(function, *nvptx::ResolveChip("sm_90"));
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    EXPECT_EQ(artifact->shared_memory_bytes, (2 * length + 15) / 16 * 16);
    EXPECT_TRUE(Has(artifact->ptx, ".shared .align 16"));
    EXPECT_FALSE(Has(artifact->ptx, ".local"));
  }
}

}  // namespace
}  // namespace phobos::compiler::testing
