// SPDX-License-Identifier: Apache-2.0
//
// Kernels beside the IR that they become.
#include <gtest/gtest.h>

#include "compiler/ir/printer.h"
#include "tests/compiler/sema/lower/lowered.h"
#include "tests/status_matchers.h"

namespace phobos::compiler::sema {
namespace {

TEST(Golden, VectorAdd) {
  ASSERT_OK_AND_ASSIGN(ir::Function function, LowerFile(R"(
from __future__ import annotations
import phobos.lang as ph

@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[256, 4096], THREADS=[64, 512], BITS=[32, 64])
@ph.launch("THREADS")
@ph.index_bits("BITS")
@ph.aligned(x=16, N=4)
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
)"));
  EXPECT_EQ(ir::Print(function),
            "kernel add(x: f32[N] aligned 16 in, y: f32[N] in, out: f32[N] out) BLOCK=256 "
            "THREADS=64 BITS=32 N:multiple=4 threads=64 index_bits=32 grid=x\n"
            R"(  %0: i64 = block_id x
  %1: i64 = constant 256
  %2: i64 = mul %0, %1
  %3: f32[256] = load x[%2:+256]
  %4: f32[256] = load y[%2:+256]
  %5: f32[256] = add %3, %4
  store out[%2:+256], %5
)");
  EXPECT_EQ(function.body.back().line, 12);
  EXPECT_EQ(function.body.back().column, 5);
}

struct Case {
  const char* what;
  KernelText text;
  const char* ir;
};

const char kWithScalars[] =
    "x: ph.tensor[ph.f32][N], a: ph.f32, n: ph.i32, out: ph.tensor[ph.f32][N]";

const Case kCases[] = {
    {"a product that is added starts from the other summand; one that has another use does not",
     {.body = "d: ph.let = ph.dot(x[0:+2][:, None], x[0:+2][None, :])\n"
              "u: ph.let = d + 1.0\n"
              "v: ph.let = ph.dot_t(d, u, precision=\"tf32\") + ph.dot(u, d)\n"
              "out[0:+4] = ph.reshape(v, 4)"},
     R"(  %0: i64 = constant 0
  %1: f32[2] = load x[%0:+2]
  %2: f32[2, 1] = reshape %1
  %3: f32[2] = load x[%0:+2]
  %4: f32[1, 2] = reshape %3
  %5: f32[2, 2] = dot %2, %4
  %6: f32 = constant 1
  %7: f32[2, 2] = broadcast %6
  %8: f32[2, 2] = add %5, %7
  %9: f32[2, 2] = dot %5, %8 transposed tf32
  %10: f32[2, 2] = dot %8, %5 acc %9
  %11: f32[4] = reshape %10
  store out[%0:+4], %11
)"},
    {"a ph.fn is inlined, its literals stay weak",
     {.body = "out[0:+BLOCK] = twice(x[0:+BLOCK], 3)",
      .prelude = "@ph.fn\ndef twice(v, n):\n    w: ph.let = v * n\n    return w + v"},
     R"(  %0: i64 = constant 0
  %1: f32[4] = load x[%0:+4]
  %2: f32 = constant 3
  %3: f32[4] = broadcast %2
  %4: f32[4] = mul %1, %3
  %5: f32[4] = add %4, %1
  store out[%0:+4], %5
)"},
    {"a ph.fn takes tensors and gives tuples; new names of a tuple are bound",
     {.body = "lo, hi = pair(x, ph.ctx.block.x)\nout[0] = lo - hi",
      .prelude = "@ph.fn\ndef pair(t, i):\n    return t[i], t[i + 1]"},
     R"(  %0: i64 = block_id x
  %1: f32 = load x[%0]
  %2: i64 = constant 1
  %3: i64 = add %0, %2
  %4: f32 = load x[%3]
  %5: f32 = sub %1, %4
  %6: i64 = constant 0
  store out[%6], %5
)"},
    {"module constants and constant expressions leave one constant",
     {.body = "i: ph.let = ph.ctx.block.x * (BLOCK * CHUNK + 2 ** 3)\nout[i] = x[i]",
      .prelude = "CHUNK = 8"},
     R"(  %0: i64 = block_id x
  %1: i64 = constant 40
  %2: i64 = mul %0, %1
  %3: f32 = load x[%2]
  store out[%2], %3
)"},
    {"equal scalar expressions are made once",
     {.body = "out[ph.ctx.block.x * N + 1] = x[ph.ctx.block.x * N + 1]"},
     R"(  %0: i64 = block_id x
  %1: i64 = extent N
  %2: i64 = mul %0, %1
  %3: i64 = constant 1
  %4: i64 = add %2, %3
  %5: f32 = load x[%4]
  store out[%4], %5
)"},
    {"variables: a scalar fills a tile; a loop starts a variable anew",
     {.body = "acc: ph.tile[ph.f32][BLOCK] = 0.0\n"
              "for i in ph.range(0, N, 2, unroll=2):\n"
              "    t: ph.var = 1\n"
              "    t += i\n"
              "    acc += x[i:+BLOCK]\n"
              "out[0:+BLOCK] = acc"},
     R"(  %0: f32 = constant 0
  %1: f32[4] = broadcast %0
  declare $0:acc, %1
  %2: i64 = extent N
  %3: i64 = constant 0
  %4: i64 = constant 2
  for loop0 = %3 to %2 step %4 unroll 2 {
    %5: i32 = constant 1
    declare $1:t, %5
    %6: i64 = loop_index loop0
    %7: i64 = cast %5
    %8: i64 = add %7, %6
    %9: i32 = cast %8
    write $1:t, %9
    %10: f32[4] = read $0:acc
    %11: f32[4] = load x[%6:+4]
    %12: f32[4] = add %10, %11
    write $0:acc, %12
  }
  %13: f32[4] = read $0:acc
  store out[%3:+4], %13
)"},
    {"while, break, continue, return, pass",
     {.parameters = kWithScalars,
      .body = "i: ph.var = n\n"
              "while i > 0:\n"
              "    i -= 1\n"
              "    if i == 3:\n"
              "        continue\n"
              "    elif i == 2:\n"
              "        break\n"
              "    else:\n"
              "        pass\n"
              "return\n"
              "out[0] = a"},
     R"(  %0: i32 = scalar n
  declare $0:i, %0
  while {
    %1: i32 = read $0:i
    %2: i32 = constant 0
    %3: bool = gt %1, %2
    yield %3
  } do {
    %4: i32 = read $0:i
    %5: i32 = constant 1
    %6: i32 = sub %4, %5
    write $0:i, %6
    %7: i32 = constant 3
    %8: bool = eq %6, %7
    if %8 {
      continue
    } else {
      %9: i32 = read $0:i
      %10: i32 = constant 2
      %11: bool = eq %9, %10
      if %11 {
        break
      }
    }
  }
  return
)"},
    {"an if over constants leaves the arm taken",
     {.body =
          "if BLOCK > 8:\n    out[0] = 1.0\nelif BLOCK == 4:\n    out[1] = 2\nelse:\n    return"},
     R"(  %0: i64 = constant 1
  %1: f32 = constant 2
  store out[%0], %1
)"},
    {"what follows a return over constants is checked and dropped",
     {.body = "if BLOCK == 4:\n    return\nout[0] = 1.0"},
     "  return\n"},
    {"load with fill and mask, store with mask",
     {.body = "m: ph.let = ph.iota(BLOCK) < 3\n"
              "ph.store(out[0:+BLOCK], ph.load(x[0:+BLOCK], fill=1, mask=m), mask=m)"},
     R"(  %0: i64[4] = iota
  %1: i64 = constant 3
  %2: i64[4] = broadcast %1
  %3: bool[4] = lt %0, %2
  %4: i64 = constant 0
  %5: f32 = constant 1
  %6: f32[4] = load x[%4:+4] fill %5 mask %3
  store out[%4:+4], %6 mask %3
)"},
    {"an augmented store evaluates its subscripts once",
     {.body = "out[ph.ctx.block.x:+BLOCK] *= x[0:+BLOCK]"},
     R"(  %0: i64 = block_id x
  %1: f32[4] = load out[%0:+4]
  %2: i64 = constant 0
  %3: f32[4] = load x[%2:+4]
  %4: f32[4] = mul %1, %3
  store out[%0:+4], %4
)"},
    {"a[i:j] where j - i is constant",
     {.body = "b: ph.let = ph.ctx.block.x * BLOCK\nout[b + 1 : 2 * b + 5 - b] = x[b:b + BLOCK]"},
     R"(  %0: i64 = block_id x
  %1: i64 = constant 4
  %2: i64 = mul %0, %1
  %3: f32[4] = load x[%2:+4]
  %4: i64 = constant 1
  %5: i64 = add %2, %4
  store out[%5:+4], %3
)"},
    {"ranks above one: scalars, one slice, a whole literal dimension",
     {.parameters = "x: ph.tensor[ph.f32][N, M, 8], out: ph.tensor[ph.f32][N, M]",
      .body = "out[1, 0:+8] = x[0, ph.extent(x, 1) - 1, :]"},
     R"(  %0: i64 = constant 0
  %1: i64 = extent M
  %2: i64 = constant 1
  %3: i64 = sub %1, %2
  %4: f32[8] = load x[%0, %3, %0:+8]
  store out[%2, %0:+8], %4
)"},
    {"short circuit: pure sides are computed, a load is guarded",
     {.parameters = kWithScalars, .body = "if n > 0 and n < 9 and x[n] > a:\n    out[0] = a"},
     R"(  %0: i32 = scalar n
  %1: i32 = constant 0
  %2: bool = gt %0, %1
  %3: i32 = constant 9
  %4: bool = lt %0, %3
  %5: bool = and %2, %4
  %6: bool = constant false
  declare $0:chosen, %6
  if %5 {
    %7: i64 = cast %0
    %8: f32 = load x[%7]
    %9: f32 = scalar a
    %10: bool = gt %8, %9
    write $0:chosen, %10
  } else {
    write $0:chosen, %5
  }
  %11: bool = read $0:chosen
  if %11 {
    %12: f32 = scalar a
    %13: i64 = constant 0
    store out[%13], %12
  }
)"},
    {"a conditional expression selects, or guards what it loads",
     {.parameters = kWithScalars,
      .body = "out[0] = a if n > 0 else 2\nout[1] = x[n] if n > 0 else 0"},
     R"(  %0: i32 = scalar n
  %1: i32 = constant 0
  %2: bool = gt %0, %1
  %3: f32 = scalar a
  %4: f32 = constant 2
  %5: f32 = select %2, %3, %4
  %6: i64 = constant 0
  store out[%6], %5
  %7: f32 = constant 0
  declare $0:chosen, %7
  if %2 {
    %8: i64 = cast %0
    %9: f32 = load x[%8]
    write $0:chosen, %9
  } else {
    write $0:chosen, %7
  }
  %10: f32 = read $0:chosen
  %11: i64 = constant 1
  store out[%11], %10
)"},
    {"constraints over extents and assumptions become kAssume",
     {.body = "ph.assume(ph.ctx.grid.x * BLOCK >= N)\nout[0] = x[0]",
      .decorators = "@ph.constraint(\"N % BLOCK == 0\", \"BLOCK > 2\")"},
     R"(  %0: i64 = extent N
  %1: i64 = constant 4
  %2: i64 = mod %0, %1
  %3: i64 = constant 0
  %4: bool = eq %2, %3
  assume %4
  %5: i64 = grid_size x
  %6: i64 = constant 4
  %7: i64 = mul %5, %6
  %8: i64 = extent N
  %9: bool = ge %7, %8
  assume %9
  %10: i64 = constant 0
  %11: f32 = load x[%10]
  store out[%10], %11
)"},
};

TEST(Golden, Cases) {
  for (const Case& c : kCases) EXPECT_EQ(Lowered(c.text), c.ir) << c.what;
}

// What an expression becomes.
TEST(Golden, Types) {
  struct Row {
    const char* expr;
    const char* op;  // the op that makes the value, as printed from its type on
  };
  // The names stand for scalar parameters of the type they spell.
  const Row rows[] = {
      // Promotion.
      {"f16_ + f32_", "f32 = add"},
      {"f16_ + bf16_", "f32 = add"},
      {"f16_ + f16_", "f16 = add"},
      {"f64_ * f16_", "f64 = mul"},
      {"i64_ + f16_", "f16 = add"},
      {"u32_ + i32_", "i32 = add"},
      {"u32_ + i64_", "i64 = add"},
      {"u64_ - i8_", "i64 = sub"},
      {"u8_ + u16_", "u16 = add"},
      {"u8_ + i8_", "i8 = add"},
      {"bool_ + u8_", "u8 = add"},
      {"bool_ * f16_", "f16 = mul"},
      {"u8_ << i32_", "i32 = shl"},
      {"bool_ & bool_", "bool = and"},
      {"bool_ | u8_", "u8 = or"},
      {"~u8_", "u8 = not"},
      {"~bool_", "bool = not"},
      {"not i32_", "bool = not"},
      {"-u8_", "u8 = neg"},
      {"i32_ // i8_", "i32 = floordiv"},
      {"f32_ % 2", "f32 = mod"},
      {"f32_ / i32_", "f32 = div"},
      {"i8_ < i32_", "bool = lt"},
      {"bool_ == bool_", "bool = eq"},
      {"i32_ ** 3", "i32 = powi"},
      // Weak literals.
      {"u8_ + 255", "u8 = add"},
      {"f16_ + 1", "f16 = add"},
      {"f16_ + 1.5", "f16 = add"},
      {"f64_ + 0.1", "f64 = add"},
      {"i64_ + 1.5", "f32 = add"},
      {"u8_ + True", "u8 = add"},
      {"bool_ + 1", "i32 = add"},
      {"bool_ + 1.5", "f32 = add"},
      {"u64_ + 18446744073709551615", "u64 = add"},
      {"1 - i8_", "i8 = sub"},
      // Built-ins.
      {"ph.exp(f16_)", "f16 = exp"},
      {"ph.exp(i32_)", "f32 = exp"},
      {"ph.pow(f16_, f64_)", "f64 = pow"},
      {"ph.pow(i32_, 2)", "i32 = powi"},
      {"ph.fma(f32_, 2, 0.5)", "f32 = fma"},
      {"ph.minimum(i8_, i32_)", "i32 = min"},
      {"ph.minimum(bool_, bool_)", "bool = and"},
      {"ph.maximum(f32_, 0)", "f32 = max"},
      {"ph.clip(f16_, 0, 1)", "f16 = min"},
      {"ph.abs(i8_)", "i8 = abs"},
      {"ph.floor(f32_)", "f32 = floor"},
      {"ph.isnan(f32_)", "bool = isnan"},
      {"ph.mulhi(u32_, 3)", "u32 = mulhi"},
      {"ph.where(bool_, f16_, 1)", "f16 = select"},
      {"ph.where(bool_, 1, 2)", "i32 = select"},
      {"ph.where(bool_, 1, 2.5)", "f32 = select"},
      {"ph.where(i32_, f32_, f64_)", "f64 = select"},
      {"ph.cast(f32_, ph.i8)", "i8 = cast"},
      {"ph.bitcast(f32_, ph.u32)", "u32 = bitcast"},
      {"ph.cdiv(u8_, 3)", "u8 = add"},
      {"ph.extent(x, -1)", "i64 = extent"},
  };
  std::string parameters = "x: ph.tensor[ph.f32][N]";
  for (const char* t : {"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32",
                        "u64", "bool"}) {
    parameters += std::string(", ") + t + "_: ph." + t;
  }
  for (const Row& row : rows) {
    KernelText text{.parameters = parameters,
                    .body = std::string("v: ph.var = ") + row.expr + "\nx[0] = ph.cast(v, ph.f32)"};
    const std::string ir = Lowered(text);
    const std::string before = ir.substr(0, ir.find("  declare "));
    const size_t line = before.rfind("  %");
    ASSERT_NE(line, std::string::npos) << row.expr << "\n" << ir;
    EXPECT_NE(before.find(row.op, line), std::string::npos) << row.expr << "\n" << ir;
  }
}

// Expressions of constants, and the constant that a store of them to a tensor of the type makes.
TEST(Golden, Constants) {
  struct Row {
    const char* type;
    const char* expr;
    const char* constant;
  };
  const Row rows[] = {
      {"f32", "0.1", "f32 = constant 0.10000000149011612"},
      {"f64", "0.1", "f64 = constant 0.1"},
      {"f16", "0.1", "f16 = constant 0.0999755859375"},
      {"bf16", "0.1", "bf16 = constant 0.10009765625"},
      {"f16", "65504.0", "f16 = constant 65504"},
      {"f16", "2.0 ** -24 * 1.5", "error"},
      {"f16", "0.0000001", "f16 = constant 1.1920928955078125e-07"},
      {"f32", "16777217", "f32 = constant 16777216"},
      {"f32", "2 ** 100", "f32 = constant 1.2676506002282294e+30"},
      {"i32", "7 // 2", "i32 = constant 3"},
      {"i32", "-7 // 2", "i32 = constant -4"},
      {"i32", "-7 % 3", "i32 = constant 2"},
      {"i32", "7 // 0 + 7 % 0", "i32 = constant 0"},
      {"f32", "-7.5 % 2", "f32 = constant 0.5"},
      {"i64", "(2 ** 64 - 1) // 3 - 2 ** 62", "i64 = constant 1537228672809129301"},
      {"u64", "2 ** 64 - 1", "u64 = constant 18446744073709551615"},
      {"i32", "2.9", "i32 = constant 2"},
      {"i8", "-3.9e9", "i8 = constant -128"},
      {"i32", "ph.nan", "i32 = constant 0"},
      {"u8", "ph.cast(300, ph.u8)", "u8 = constant 44"},
      {"i32", "1 << 20 >> 3 | 5 & 6 ^ 1", "i32 = constant 131077"},
      {"i32", "True + True", "i32 = constant 2"},
      {"bool", "1 < 2 <= 2", "bool = constant true"},
      {"bool", "\"a\" == \"b\"", "bool = constant false"},
      {"bool", "not BLOCK == 4 or BLOCK > 3 and True", "bool = constant true"},
      {"bool", "2", "bool = constant true"},
      {"i32", "5 if BLOCK > 3 else 6", "i32 = constant 5"},
      {"i32", "ph.minimum(BLOCK, 3) + ph.abs(-2) + ph.cdiv(7, 2)", "i32 = constant 9"},
      {"i32", "ph.clip(9, 0, 5) + ph.where(BLOCK > 3, 1, 2)", "i32 = constant 6"},
      {"f64", "ph.sqrt(2)", "f64 = constant 1.4142135623730951"},
      {"f32", "ph.round(2.5) + ph.round(3.5)", "f32 = constant 6"},
      {"f32", "-ph.inf", "f32 = constant -inf"},
      {"f32", "ph.finfo(ph.f16).max", "f32 = constant 65504"},
      {"f32", "ph.finfo(ph.bf16).eps", "f32 = constant 0.0078125"},
      {"f64", "ph.finfo(ph.f32).min", "f64 = constant -3.4028234663852886e+38"},
      {"u8", "ph.iinfo(ph.u8).max", "u8 = constant 255"},
      {"i64", "ph.iinfo(ph.i64).min", "i64 = constant -9223372036854775808"},
  };
  for (const Row& row : rows) {
    KernelText text{.parameters = std::string("o: ph.tensor[ph.") + row.type + "][N]",
                    .body = std::string("o[0] = ") + row.expr};
    const std::string ir = Lowered(text);
    EXPECT_NE(ir.find(row.constant), std::string::npos) << row.expr << "\n" << ir;
  }
}

// A let of a constant has a type, and is still known: as a length, and in later constants.
TEST(Golden, TypedConstantsAreKnown) {
  EXPECT_EQ(Lowered({.body = "half: ph.let = BLOCK // 2\n"
                             "out[half * half:+half] = x[0:+half - 1 + 1]"}),
            R"(  %0: i64 = constant 0
  %1: f32[2] = load x[%0:+2]
  %2: i64 = constant 4
  store out[%2:+2], %1
)");
}

}  // namespace
}  // namespace phobos::compiler::sema
