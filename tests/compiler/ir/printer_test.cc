// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/printer.h"

#include <gtest/gtest.h>

#include <limits>

#include "compiler/ir/builder.h"
#include "compiler/ir/verifier.h"

namespace phobos::compiler::ir {
namespace {

Function Named(std::string name) {
  Function function;
  function.name = std::move(name);
  return function;
}

TEST(Printer, VectorAdd) {
  Function start = Named("add");
  start.settings = {{"BLOCK", "256"}};
  start.index_bits = 32;
  Builder b(start);
  const int32_t n = b.AddExtent("N", 4);
  const int32_t x = b.AddTensor("x", DType::kF32, {{n, 0}});
  const int32_t out = b.AddTensor("out", DType::kF32, {{n, 0}});
  const ValueId base = b.Elementwise(Opcode::kMul, {b.BlockId(0), b.Int(256)});
  const ValueId tile = b.Load(x, {SliceAt(base, 256)});
  b.Store(out, {SliceAt(base, 256)}, b.Elementwise(Opcode::kAdd, {tile, tile}));
  const Function function = b.Finish();
  EXPECT_EQ(
      Print(function),
      R"(kernel add(x: f32[N] in, out: f32[N] out) BLOCK=256 N:multiple=4 threads=256 index_bits=32
  %0: i64 = block_id x
  %1: i64 = constant 256
  %2: i64 = mul %0, %1
  %3: f32[256] = load x[%2:+256]
  %4: f32[256] = add %3, %3
  store out[%2:+256], %4
)");
  EXPECT_TRUE(Verify(function).ok()) << Verify(function);
}

// Every kind of line once.
TEST(Printer, EverythingElse) {
  Builder b(Named("all"));
  const int32_t n = b.AddExtent("N");
  const int32_t a = b.AddTensor("a", DType::kF16, {{n, 0}, {-1, 8}});
  const int32_t s = b.AddScalar("s", DType::kU64);
  const ValueId extent = b.Extent(n);
  b.Assume(b.Elementwise(Opcode::kGreater, {extent, b.Int(0)}));
  b.ScalarParam(s);
  b.GridSize(2);
  b.Constant(DType::kU64, int64_t{-1});
  b.Constant(DType::kBool, int64_t{1});
  const ValueId fill = b.Constant(DType::kF16, -std::numeric_limits<double>::infinity());
  const ValueId mask = b.Broadcast(b.Constant(DType::kBool, int64_t{0}), {4, 8});
  const ValueId rows = b.Iota(4);
  const ValueId zero = b.Int(0);
  const ValueId tile = b.Load(a, {GatherAt(rows), SliceAt(zero, 8)}, fill, mask);
  const VarId var = b.Declare("acc", tile);
  b.For(
      zero, extent, -2,
      [&](ValueId index) {
        b.If(
            b.Elementwise(Opcode::kEqual, {index, zero}), [&] { b.Continue(); },
            [&] { b.Break(); });
      },
      4);
  b.While([&] { return b.Constant(DType::kBool, int64_t{0}); },
          [&] { b.If(b.Constant(DType::kBool, int64_t{1}), [&] { b.Return(); }); });
  b.Write(var, b.Elementwise(Opcode::kPowInt, {b.Read(var)}, 3));
  b.Store(a, {SliceAt(zero, 4), SliceAt(zero, 8)}, b.Read(var), mask);
  const Function function = b.Finish();
  EXPECT_EQ(Print(function), R"(kernel all(a: f16[N, 8] in out, s: u64) threads=256 index_bits=64
  %0: i64 = extent N
  %1: i64 = constant 0
  %2: bool = gt %0, %1
  assume %2
  %3: u64 = scalar s
  %4: i64 = grid_size z
  %5: u64 = constant 18446744073709551615
  %6: bool = constant true
  %7: f16 = constant -inf
  %8: bool = constant false
  %9: bool[4, 8] = broadcast %8
  %10: i64[4] = iota
  %11: i64 = constant 0
  %12: f16[4, 8] = load a[gather %10, %11:+8] fill %7 mask %9
  declare $0:acc, %12
  %13: i64 = constant -2
  for loop0 = %11 to %0 step %13 unroll 4 {
    %14: i64 = loop_index loop0
    %15: bool = eq %14, %11
    if %15 {
      continue
    } else {
      break
    }
  }
  while {
    %16: bool = constant false
    yield %16
  } do {
    %17: bool = constant true
    if %17 {
      return
    }
  }
  %18: f16[4, 8] = read $0:acc
  %19: f16[4, 8] = powi %18, 3
  write $0:acc, %19
  %20: f16[4, 8] = read $0:acc
  store a[%11:+4, %11:+8], %20 mask %9
)");
  EXPECT_TRUE(Verify(function).ok()) << Verify(function);
}

// The names are in the order of the opcodes.
TEST(Printer, OpcodeNames) {
  EXPECT_EQ(Name(Opcode::kConstant), "constant");
  EXPECT_EQ(Name(Opcode::kPowInt), "powi");
  EXPECT_EQ(Name(Opcode::kExp), "exp");
  EXPECT_EQ(Name(Opcode::kRound), "round");
  EXPECT_EQ(Name(Opcode::kEqual), "eq");
  EXPECT_EQ(Name(Opcode::kLoad), "load");
  EXPECT_EQ(Name(Opcode::kYield), "yield");
  EXPECT_EQ(Name(Opcode::kStage), "stage");
}

}  // namespace
}  // namespace phobos::compiler::ir
