// SPDX-License-Identifier: Apache-2.0
//
// Every element-wise opcode with an exact result, on every element type, against plain C++: all
// pairs of edge values and random bits, as tiles and as scalars, on each chip that runs here.
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/floor_division.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/printer.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"
#include "tests/compiler/codegen/compiled/ulp.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::kDTypes;
using ir::Opcode;
using ir::ValueId;

std::vector<Bits> EdgeValues(DType dtype) {
  std::vector<Bits> edges;
  if (dtype == DType::kBool) return {0, 1};
  if (ir::IsFloat(dtype)) {
    const int width = ir::BitWidth(dtype);
    for (long double value :
         {0.0L,          1.0L,          1.5L,          2.0L,     0.5L,
          2.5L,          3.0L,          0.1L,          7.0L,     127.5L,
          255.0L,        1e-40L,        1e-7L,         65504.0L, 65520.0L,
          2147483647.0L, 2147483648.0L, 4294967296.0L, 9.2e18L,  1.8446744073709551616e19L,
          3e38L,         1e300L}) {
      edges.push_back(FromReal(dtype, value));
      edges.push_back(FromReal(dtype, -value));
    }
    const Bits infinity = FromReal(dtype, std::numeric_limits<long double>::infinity());
    const Bits sign = width == 64 ? std::numeric_limits<Bits>::min() : Bits{1} << (width - 1);
    // The least subnormal, the largest finite, infinity, a NaN, each with both signs.
    for (Bits bits : {Bits{1}, infinity - 1, infinity, infinity + 1}) {
      edges.push_back(bits);
      edges.push_back(bits | sign);
    }
    return edges;
  }
  const int width = ir::BitWidth(dtype);
  for (__int128 value : {0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100}) {
    edges.push_back(FromInteger(dtype, value));
    edges.push_back(FromInteger(dtype, -value));
  }
  for (int bit : {width - 1, width / 2}) {
    for (int distance : {-1, 0, 1}) {
      edges.push_back(FromInteger(dtype, (__int128{1} << bit) + distance));
      edges.push_back(FromInteger(dtype, -(__int128{1} << bit) + distance));
    }
  }
  return edges;
}

Bits RandomBits(DType dtype, std::mt19937_64& random) {
  const uint64_t bits = random();
  if (ir::IsFloat(dtype)) {
    // Half of the time numbers near each other, so that sums and quotients are of interest.
    if (bits & 1)
      return FromReal(dtype, static_cast<long double>(static_cast<int64_t>(random()) >> 40) / 64);
    const int width = ir::BitWidth(dtype);
    return width == 64 ? static_cast<Bits>(random())
                       : static_cast<Bits>(random() & ((uint64_t{1} << width) - 1));
  }
  // Short and long ones.
  return FromInteger(dtype, static_cast<int64_t>(random()) >> (bits % 64));
}

// `arity` columns of equal length: all pairs of edge values, then random ones.
std::vector<std::vector<Bits>> Inputs(DType dtype, int arity) {
  std::mt19937_64 random(static_cast<uint64_t>(dtype) * 7 + static_cast<uint64_t>(arity));
  const std::vector<Bits> edges = EdgeValues(dtype);
  std::vector<std::vector<Bits>> columns(arity);
  auto add = [&](Bits a, Bits b, Bits c) {
    const Bits row[] = {a, b, c};
    for (int i = 0; i < arity; ++i) columns[i].push_back(row[i]);
  };
  if (arity == 1) {
    for (Bits a : edges) add(a, 0, 0);
  } else {
    for (Bits a : edges) {
      for (Bits b : edges) add(a, b, edges[random() % edges.size()]);
    }
  }
  for (int i = 0; i < 300; ++i) {
    const Bits a = RandomBits(dtype, random);
    add(a, i % 7 == 0 ? a : RandomBits(dtype, random), RandomBits(dtype, random));
  }
  return columns;
}

struct Case {
  Opcode opcode;
  int arity = 2;
  int power = 0;
  DType to = DType::kBool;  // kCast, kBitcast
};

bool Takes(const Case& c, DType dtype) {
  const bool is_float = ir::IsFloat(dtype);
  const bool is_integer = ir::IsInteger(dtype);
  switch (c.opcode) {
    case Opcode::kDiv:
    case Opcode::kFma:
    case Opcode::kSqrt:
    case Opcode::kFloor:
    case Opcode::kCeil:
    case Opcode::kRound:
    case Opcode::kIsNan:
    case Opcode::kIsInf:
      return is_float;
    case Opcode::kMulHigh:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRight:
      return is_integer;
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
      return !is_float;
    case Opcode::kBitcast:
      return ir::BitWidth(dtype) == ir::BitWidth(c.to) &&
             (dtype == DType::kBool) == (c.to == DType::kBool);
    default:
      return dtype != DType::kBool || c.opcode >= Opcode::kEqual;
  }
}

std::vector<Case> CasesFor(DType dtype) {
  std::vector<Case> all = {
      {Opcode::kAdd},           {Opcode::kSub},          {Opcode::kMul},
      {Opcode::kDiv},           {Opcode::kFloorDiv},     {Opcode::kMod},
      {Opcode::kPowInt, 1, 0},  {Opcode::kPowInt, 1, 1}, {Opcode::kPowInt, 1, 5},
      {Opcode::kPowInt, 1, 10}, {Opcode::kNegate, 1},    {Opcode::kAbs, 1},
      {Opcode::kMinimum},       {Opcode::kMaximum},      {Opcode::kMulHigh},
      {Opcode::kFma, 3},        {Opcode::kShiftLeft},    {Opcode::kShiftRight},
      {Opcode::kAnd},           {Opcode::kOr},           {Opcode::kXor},
      {Opcode::kNot, 1},        {Opcode::kSqrt, 1},      {Opcode::kFloor, 1},
      {Opcode::kCeil, 1},       {Opcode::kRound, 1},     {Opcode::kIsNan, 1},
      {Opcode::kIsInf, 1},      {Opcode::kEqual},        {Opcode::kNotEqual},
      {Opcode::kLess},          {Opcode::kLessEqual},    {Opcode::kGreater},
      {Opcode::kGreaterEqual},
  };
  for (DType to : kDTypes) {
    all.push_back({Opcode::kCast, 1, 0, to});
    all.push_back({Opcode::kBitcast, 1, 0, to});
  }
  std::erase_if(all, [&](const Case& c) { return !Takes(c, dtype); });
  return all;
}

DType ResultType(const Case& c, DType dtype) {
  if (c.opcode == Opcode::kCast || c.opcode == Opcode::kBitcast) return c.to;
  const bool gives_bool = c.opcode == Opcode::kIsNan || c.opcode == Opcode::kIsInf ||
                          (c.opcode >= Opcode::kEqual && c.opcode <= Opcode::kGreaterEqual);
  return gives_bool ? DType::kBool : dtype;
}

ValueId Emit(ir::Builder& b, const Case& c, const std::vector<ValueId>& operands) {
  if (c.opcode == Opcode::kCast) return b.Cast(operands[0], c.to);
  if (c.opcode == Opcode::kBitcast) return b.Bitcast(operands[0], c.to);
  return b.Elementwise(c.opcode, operands, c.power);
}

// out[i] = op(in0[i], ...), by tiles of `block` elements, or one by one where it is 0.
ir::Function KernelOf(const Case& c, DType dtype, int64_t block) {
  ir::Builder b(ir::Function{.name = "op"});
  const ir::Dim n{.extent = b.AddExtent("N")};
  std::vector<int32_t> inputs;
  for (int i = 0; i < c.arity; ++i) {
    inputs.push_back(b.AddTensor("in" + std::to_string(i), dtype, {n}));
  }
  const int32_t out = b.AddTensor("out", ResultType(c, dtype), {n});
  const ValueId base = b.Elementwise(Opcode::kMul, {b.BlockId(0), b.Int(block == 0 ? 1 : block)});
  const ir::Subscript place = block == 0 ? ir::ElementAt(base) : ir::SliceAt(base, block);
  std::vector<ValueId> operands;
  for (int32_t input : inputs) operands.push_back(b.Load(input, {place}));
  b.Store(out, {place}, Emit(b, c, operands));
  return b.Finish();
}

void ExpectAgreement(const Case& c, DType dtype, int64_t block) {
  const std::vector<std::vector<Bits>> inputs = Inputs(dtype, c.arity);
  const int64_t count = static_cast<int64_t>(inputs[0].size());
  Launch launch;
  for (const std::vector<Bits>& column : inputs) launch.arguments.push_back({{count}, column});
  launch.arguments.push_back({{count}, std::vector<Bits>(count)});
  launch.grid[0] = block == 0 ? count : (count + block - 1) / block;
  EXPECT_EQ(Differences(KernelOf(c, dtype, block), launch), "")
      << ir::Name(c.opcode) << " of " << ir::Name(dtype) << " to " << ir::Name(ResultType(c, dtype))
      << ", power " << c.power << ", block " << block << "; inputs in the order of edge pairs";
}

class ElementwiseTest : public ::testing::TestWithParam<DType> {};

TEST_P(ElementwiseTest, TilesAgreeWithTheReference) {
  for (const Case& c : CasesFor(GetParam())) ExpectAgreement(c, GetParam(), 64);
}

TEST_P(ElementwiseTest, ScalarsAgreeWithTheReference) {
  // They take the same way through the emitter; the fast tier looks at one type of each kind.
  if (getenv("PHOBOS_TEST_EVERY_CHIP") == nullptr && GetParam() != DType::kF16 &&
      GetParam() != DType::kF32 && GetParam() != DType::kI8 && GetParam() != DType::kU64) {
    GTEST_SKIP() << "left to the long tier";
  }
  for (const Case& c : CasesFor(GetParam())) ExpectAgreement(c, GetParam(), 0);
}

TEST_P(ElementwiseTest, SelectTakesByLane) {
  const DType dtype = GetParam();
  ir::Builder b(ir::Function{.name = "pick"});
  const ir::Dim n{.extent = b.AddExtent("N")};
  const int32_t condition = b.AddTensor("c", DType::kBool, {n});
  const int32_t x = b.AddTensor("x", dtype, {n});
  const int32_t y = b.AddTensor("y", dtype, {n});
  const int32_t out = b.AddTensor("out", dtype, {n});
  const ir::Subscript place = ir::SliceAt(b.Int(0), 700);
  b.Store(out, {place},
          b.Elementwise(Opcode::kSelect,
                        {b.Load(condition, {place}), b.Load(x, {place}), b.Load(y, {place})}));
  const std::vector<std::vector<Bits>> inputs = Inputs(dtype, 2);
  Launch launch;
  launch.arguments = {{{700}, {}}, {{700}, {}}, {{700}, {}}, {{700}, std::vector<Bits>(700)}};
  std::mt19937_64 random(3);
  for (int i = 0; i < 700; ++i) {
    launch.arguments[0].elements.push_back(static_cast<Bits>(random() & 1));
    launch.arguments[1].elements.push_back(inputs[0][i % inputs[0].size()]);
    launch.arguments[2].elements.push_back(inputs[1][i % inputs[1].size()]);
  }
  EXPECT_EQ(Differences(b.Finish(), launch), "");
}

// What the reference says, and so what is emitted, is what constants and conditions are folded to.
TEST(FloatDivision, OfConstantsIsThatOfTheReference) {
  const std::vector<std::vector<Bits>> inputs = Inputs(DType::kF64, 2);
  for (Opcode opcode : {Opcode::kFloorDiv, Opcode::kMod}) {
    ir::Op op;
    op.opcode = opcode;
    op.type = {DType::kF64, {}};
    for (size_t i = 0; i < inputs[0].size(); ++i) {
      const Bits bits =
          interpreter::Apply(op, DType::kF64, {inputs[0][i], inputs[1][i]}).value_or(-1);
      const double a = static_cast<double>(ToReal(DType::kF64, inputs[0][i]));
      const double b = static_cast<double>(ToReal(DType::kF64, inputs[1][i]));
      const double folded = opcode == Opcode::kMod ? FloorModulo(a, b) : FloorDivide(a, b);
      EXPECT_EQ(std::isnan(folded), IsNan(DType::kF64, bits)) << a << ", " << b;
      if (std::isnan(folded)) continue;
      EXPECT_EQ(FromReal(DType::kF64, folded), bits) << ir::Name(opcode) << ": " << a << ", " << b;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ElementwiseTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

}  // namespace
}  // namespace phobos::compiler::testing
