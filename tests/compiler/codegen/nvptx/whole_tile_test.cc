// SPDX-License-Identifier: Apache-2.0
//
// Reductions, scans, transposes and moving reshapes as the threads of a block do them: every way in
// which a reduction can be dealt out, on the emulated chip, to the bit as the interpreter has it in
// the order that the plan says.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/nvptx/nvptx.h"
#include "compiler/codegen/nvptx/plan/dealing.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/shape.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"
#include "tests/compiler/codegen/compiled/emulated.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::Opcode;
using ir::Shape;
using ir::SliceAt;
using ir::ValueId;

// k(x, out): out = body(x), x a tile of `shape` of which the last row may lie outside its tensor.
template <typename Body>
ir::Function KernelOf(const Shape& shape, DType dtype, Body body) {
  ir::Builder b(ir::Function{.name = "k"});
  std::vector<ir::Dim> dims = {{.extent = b.AddExtent("N")}};
  std::vector<ir::Subscript> place;
  for (size_t side = 0; side < shape.size(); ++side) {
    if (side > 0) dims.push_back({.extent = -1, .literal = shape[side]});
    place.push_back(SliceAt(b.Int(0), shape[side]));
  }
  const int32_t x = b.AddTensor("x", dtype, dims);
  const ValueId result = body(b, b.Load(x, place));
  const ir::Type type = b.TypeOf(result);
  std::vector<ir::Dim> out_dims;
  std::vector<ir::Subscript> out_place;
  for (int64_t side : type.is_scalar() ? Shape{1} : type.shape) {
    out_dims.push_back({.extent = -1, .literal = side});
    out_place.push_back(SliceAt(b.Int(0), side));
  }
  if (type.is_scalar()) out_place = {ir::ElementAt(b.Int(0))};
  const int32_t out = b.AddTensor("out", type.dtype, out_dims);
  b.Store(out, out_place, result);
  return b.Finish();
}

Launch LaunchOf(const ir::Function& function, int64_t rows) {
  Launch launch;
  for (const ir::Param& param : function.params) {
    Argument argument;
    int64_t elements = 1;
    for (const ir::Dim& dim : param.dims) {
      argument.sides.push_back(dim.extent >= 0 ? rows : dim.literal);
      elements *= argument.sides.back();
    }
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t number = (i * i * 7 + i * 13) % 1009 - 500;
      argument.elements.push_back(ir::IsFloat(param.dtype)
                                      ? FromReal(param.dtype, static_cast<double>(number) / 7)
                                      : FromInteger(param.dtype, number));
    }
    launch.arguments.push_back(std::move(argument));
  }
  return launch;
}

void ExpectSame(const ir::Function& function, int64_t rows, int32_t threads) {
  const auto emulated = Emulated::Make(function, threads);
  ASSERT_TRUE(emulated.ok()) << emulated.status() << ir::Print(function);
  for (const int64_t there : {rows, rows - 1}) {
    const Launch launch = LaunchOf(function, there);
    const auto want = Interpret((*emulated)->ordered(), launch);
    const auto got = (*emulated)->Run(launch, Against::kPageAfter);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status() << ir::Print(function);
    EXPECT_EQ(got->back().elements, want->back().elements)
        << threads << " threads, " << there << " rows\n"
        << ir::Print((*emulated)->ordered());
  }
}

struct Case {
  Shape shape;
  int32_t axis;
};

// Whole tiles, rows that are turns or parts of turns, columns, and what fits no layout.
const std::vector<Case> kCases = {
    {{1}, 0},        {{7}, 0},       {{64}, 0},       {{1000}, 0},        {{2048}, 0},
    {{3, 512}, 1},   {{16, 32}, 1},  {{16, 64}, 1},   {{5, 128}, 1},      {{4, 24}, 1},
    {{7, 100}, 1},   {{6, 1}, 1},    {{64, 16}, 0},   {{33, 64}, 0},      {{5, 512}, 0},
    {{8, 24}, 0},    {{3, 7}, 0},    {{100, 4}, 0},   {{2, 64, 16}, 1},   {{3, 8, 64}, 1},
    {{4, 2, 8}, 1},  {{3, 5, 7}, 1}, {{2, 3, 64}, 0}, {{2, 3, 4, 16}, 2}, {{1, 256}, 1},
    {{8, 1, 64}, 2},
};

TEST(WholeTileTest, SumsOfFloatsAreToTheBit) {
  for (const auto& [shape, axis] : kCases) {
    const auto sum = [axis = axis](ir::Builder& b, ValueId x) {
      return b.Reduce(Opcode::kSumOver, x, axis, 1);
    };
    for (const int32_t threads : {32, 64, 96}) {
      ExpectSame(KernelOf(shape, DType::kF32, sum), shape[0], threads);
    }
  }
}

TEST(WholeTileTest, EveryReductionOfEveryWidth) {
  constexpr Opcode kOpcodes[] = {Opcode::kProductOver, Opcode::kMaximumOver, Opcode::kMinimumOver,
                                 Opcode::kArgMaximum, Opcode::kArgMinimum};
  constexpr DType kTypes[] = {DType::kF64, DType::kI8, DType::kF16, DType::kU64, DType::kI32};
  for (const Shape& shape : {Shape{300}, Shape{8, 64}, Shape{40, 8}, Shape{5, 6}}) {
    for (size_t i = 0; i < std::size(kOpcodes); ++i) {
      const auto reduce = [&](ir::Builder& b, ValueId x) {
        return b.Reduce(kOpcodes[i], x, static_cast<int32_t>(shape[0] == 40 ? 0 : shape.size() - 1),
                        1);
      };
      for (const DType dtype : {kTypes[i], DType::kF32}) {
        ExpectSame(KernelOf(shape, dtype, reduce), shape[0], 64);
      }
    }
  }
}

// A row's softmax but for exp: the row is held, its maximum and its sum go to all threads.
TEST(WholeTileTest, WhatIsHeldIsReducedWhereItIs) {
  for (const Shape& shape : {Shape{700}, Shape{1024}, Shape{6, 128}, Shape{4, 50}}) {
    const auto body = [&](ir::Builder& b, ValueId x) {
      const auto axis = static_cast<int32_t>(shape.size() - 1);
      Shape kept = shape;
      kept.back() = 1;
      const auto over = [&](Opcode opcode, ValueId v) {
        ValueId r = b.Reduce(opcode, v, axis, 1);
        if (shape.size() > 1) r = b.Reshape(r, kept);
        return b.Broadcast(r, shape);
      };
      const ValueId moved = b.Elementwise(Opcode::kSub, {x, over(Opcode::kMaximumOver, x)});
      const ValueId three = b.Broadcast(b.Constant(DType::kF32, 3.7), shape);
      const ValueId dear = b.Elementwise(Opcode::kMod, {moved, three});
      return b.Elementwise(Opcode::kDiv, {dear, over(Opcode::kSumOver, dear)});
    };
    for (const int32_t threads : {32, 64, 256}) {
      ExpectSame(KernelOf(shape, DType::kF32, body), shape[0], threads);
    }
  }
}

// One reduction in a loop writes where the one of the turn before is read.
TEST(WholeTileTest, ReductionsInALoopWaitForEachOther) {
  const auto body = [](ir::Builder& b, ValueId x) {
    const ir::VarId total = b.Declare("total", x);
    b.For(b.Int(0), b.Int(5), 1, [&](ValueId) {
      const ValueId sum = b.Reduce(Opcode::kSumOver, b.Read(total), 0, 1);
      b.Write(total, b.Elementwise(Opcode::kSub, {b.Broadcast(sum, {200}), b.Read(total)}));
    });
    return b.Read(total);
  };
  ExpectSame(KernelOf({200}, DType::kF32, body), 200, 64);
  const ir::Function function = KernelOf({200}, DType::kI32, body);
  ExpectSame(function, 200, 128);
  const auto without = Emulated::Make(function, 128, Emulated::Barriers::kNone);
  ASSERT_TRUE(without.ok()) << without.status();
  const Launch launch = LaunchOf(function, 200);
  const auto got = (*without)->Run(launch, Against::kPageAfter);
  EXPECT_FALSE(got.ok() && got->back().elements == Interpret(function, launch)->back().elements);
}

TEST(WholeTileTest, ScansInPieces) {
  for (const auto& [shape, axis] : kCases) {
    const auto scan = [axis = axis](ir::Builder& b, ValueId x) { return b.CumulativeSum(x, axis); };
    for (const DType dtype : {DType::kF32, DType::kI16}) {
      ExpectSame(KernelOf(shape, dtype, scan), shape[0], 64);
    }
  }
}

TEST(WholeTileTest, TransposesAndReshapesMoveElements) {
  struct Move {
    Shape shape;
    std::vector<int32_t> permutation;
    Shape reshaped;
  };
  for (const Move& move :
       {Move{{32, 64}, {1, 0}, {16, 128}}, Move{{24, 40}, {1, 0}, {960}},
        Move{{7, 9}, {1, 0}, {3, 21}}, Move{{4, 8, 16}, {2, 0, 1}, {32, 16}},
        Move{{2, 8, 4, 8}, {0, 3, 2, 1}, {8, 64}}, Move{{1, 12}, {1, 0}, {3, 4}}}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kI64, DType::kU8}) {
      const auto transpose = [&](ir::Builder& b, ValueId x) {
        return b.Transpose(x, move.permutation);
      };
      const auto both = [&](ir::Builder& b, ValueId x) {
        return b.Reshape(b.Transpose(x, move.permutation), move.reshaped);
      };
      const auto twice = [&](ir::Builder& b, ValueId x) {
        return b.Reshape(b.Reshape(x, move.reshaped), move.shape);
      };
      ExpectSame(KernelOf(move.shape, dtype, transpose), move.shape[0], 64);
      ExpectSame(KernelOf(move.shape, dtype, both), move.shape[0], 32);
      ExpectSame(KernelOf(move.shape, dtype, twice), move.shape[0], 64);
    }
  }
}

nvptx::ReductionDealing Dealt(const Shape& shape, int axis, int64_t threads) {
  return nvptx::DealReduction(shape, axis, nvptx::LayoutOf(shape, threads, 4, false), 4);
}

TEST(DealingTest, RowsAndColumnsOfPowersOfTwoNeedNoSharedMemoryWithinAWarp) {
  EXPECT_EQ(Dealt({16, 128}, 1, 128).left(), 1);
  EXPECT_EQ(Dealt({16, 64}, 1, 128).folded, 16);
  EXPECT_EQ(Dealt({4096}, 0, 256).left(), 8);
  EXPECT_EQ(Dealt({4, 4096}, 1, 256).parts, 4);
  EXPECT_EQ(Dealt({64, 64}, 0, 128).folded, 2);
  EXPECT_EQ(Dealt({64, 64}, 0, 128).left(), 4);
  EXPECT_EQ(Dealt({64, 4096}, 0, 128).partials, 1);
  for (const auto& [shape, axis] : kCases) {
    if (shape.size() == 2 && shape[1] % 64 == 0) EXPECT_FALSE(Dealt(shape, axis, 64).is_apart);
  }
  EXPECT_TRUE(Dealt({7, 100}, 1, 64).is_apart);
}

}  // namespace
}  // namespace phobos::compiler::testing
