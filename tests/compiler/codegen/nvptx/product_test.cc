// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles as the threads of a block do them, on the emulated chip: by matrix instructions
// and without, copied ahead and not, at extents around the tiles. The numbers are small enough for
// every sum to be exact, so that results are compared to the bit.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/codegen/nvptx/nvptx.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/emulated.h"
#include "tests/compiler/sema/lower/lowered.h"

namespace phobos::compiler::testing {
namespace {

using Extents = std::map<std::string, int64_t>;

Launch LaunchOf(const ir::Function& function, const Extents& extents,
                const std::array<int64_t, 3>& grid) {
  Launch launch;
  launch.grid = grid;
  for (const ir::Param& param : function.params) {
    Argument argument;
    int64_t elements = 1;
    for (const ir::Dim& dim : param.dims) {
      argument.sides.push_back(dim.extent >= 0 ? extents.at(function.extents[dim.extent].name)
                                               : dim.literal);
      elements *= argument.sides.back();
    }
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t number =
          (i * i * 7 + i * 13 + i / 5) % 9 - (param.dtype == ir::DType::kU8 ? 0 : 4);
      argument.elements.push_back(ir::IsFloat(param.dtype)
                                      ? FromReal(param.dtype, static_cast<double>(number))
                                      : FromInteger(param.dtype, number));
    }
    launch.arguments.push_back(std::move(argument));
  }
  return launch;
}

ir::Function FunctionOf(const std::string& text) {
  const auto function = sema::LowerFile(absl::StrCat(
      "from __future__ import annotations\nimport phobos.lang as ph\n\n@ph.kernel\n", text));
  EXPECT_TRUE(function.ok()) << function.status() << text;
  return function.ok() ? *function : ir::Function();
}

void ExpectSame(const std::string& text, int32_t threads, const std::vector<Extents>& cases,
                const std::array<int64_t, 3>& grid) {
  const ir::Function function = FunctionOf(text);
  const auto emulated = Emulated::Make(function, threads);
  ASSERT_TRUE(emulated.ok()) << emulated.status() << text;
  for (const Extents& extents : cases) {
    std::string name = absl::StrCat(text, threads, " threads");
    for (const auto& [extent, value] : extents) absl::StrAppend(&name, " ", extent, "=", value);
    const Launch launch = LaunchOf(function, extents, grid);
    const auto want = Interpret((*emulated)->ordered(), launch);
    ASSERT_TRUE(want.ok()) << want.status() << name;
    for (Against against : {Against::kPageAfter, Against::kPageBefore}) {
      const auto got = (*emulated)->Run(launch, against);
      ASSERT_TRUE(got.ok()) << got.status() << name;
      for (size_t p = 0; p < want->size(); ++p) {
        for (size_t i = 0; i < (*want)[p].elements.size(); ++i) {
          ASSERT_EQ((*got)[p].elements[i], (*want)[p].elements[i])
              << name << " " << function.params[p].name << "[" << i << "]";
        }
      }
    }
  }
}

struct Gemm {
  std::string type, sum, call, precision;
  int64_t m, n, k;
  int32_t threads, stages;
};

std::string TextOf(const Gemm& g) {
  const bool is_transposed = g.call == "dot_t";
  return absl::StrReplaceAll(R"(
def k(a: ph.tensor[ph.TYPE][M, K], b: ph.tensor[ph.TYPE][SIDES], c: ph.tensor[ph.SUM][M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    acc: ph.tile[ph.SUM][BM, BN] = 0
    for k in ph.range(0, K, BK, stages=STAGES):
        acc += ph.CALL(a[i:+BM, k:+BK], b[PLACE]PRECISION)
    c[i:+BM, j:+BN] = acc
)",
                             {{"TYPE", g.type},
                              {"SUM", g.sum},
                              {"SIDES", is_transposed ? "N, K" : "K, N"},
                              {"PLACE", is_transposed ? absl::StrCat("j:+", g.n, ", k:+", g.k)
                                                      : absl::StrCat("k:+", g.k, ", j:+", g.n)},
                              {"CALL", g.call},
                              {"PRECISION", g.precision},
                              {"BM", absl::StrCat(g.m)},
                              {"BN", absl::StrCat(g.n)},
                              {"BK", absl::StrCat(g.k)},
                              {"STAGES", absl::StrCat(g.stages)}});
}

TEST(ProductTest, OfEveryTypeByEveryWay) {
  const std::vector<Gemm> gemms = {
      {"f16", "f32", "dot", "", 32, 32, 32, 32, 1},
      {"f16", "f32", "dot", "", 64, 32, 16, 64, 3},
      {"f16", "f32", "dot_t", "", 32, 64, 64, 128, 2},
      {"bf16", "f32", "dot", "", 32, 48, 32, 64, 2},
      {"bf16", "f32", "dot_t", "", 16, 8, 16, 32, 4},
      {"i8", "i32", "dot_t", "", 32, 16, 64, 32, 3},
      {"i8", "i32", "dot", "", 32, 32, 32, 64, 2},
      {"u8", "i32", "dot", "", 16, 16, 32, 32, 1},
      {"f32", "f32", "dot", "", 32, 64, 16, 64, 3},
      {"f32", "f32", "dot_t", "", 16, 32, 8, 32, 1},
      {"f32", "f32", "dot", "", 64, 64, 16, 32, 2},
      {"f64", "f64", "dot", "", 16, 16, 8, 32, 2},
      {"f32", "f32", "dot", "", 7, 5, 3, 32, 2},
      {"f16", "f32", "dot", "", 20, 12, 10, 64, 2},
      {"f16", "f32", "dot", "", 1, 16, 32, 32, 1},
      {"f32", "f32", "dot", ", precision=\"tf32\"", 32, 32, 16, 64, 2},
      {"f32", "f32", "dot_t", ", precision=\"tf32\"", 16, 16, 32, 32, 3},
      {"f32", "f32", "dot", ", precision=\"f16\"", 16, 32, 16, 32, 1},
      // Copies ahead between products: in a loop, in several steps, in a last turn of some threads.
      {"f16", "f32", "dot", "", 32, 64, 128, 32, 3},
      {"f16", "f32", "dot", "", 48, 64, 48, 96, 4},
      {"i8", "i32", "dot_t", "", 32, 32, 96, 64, 4},
  };
  for (const Gemm& g : gemms) {
    ExpectSame(TextOf(g), g.threads,
               {{{"M", g.m}, {"N", g.n}, {"K", 4 * g.k}},
                {{"M", 2 * g.m}, {"N", 2 * g.n}, {"K", g.k}},
                {{"M", g.m + 3}, {"N", 2 * g.n - 8}, {"K", 3 * g.k - 8}},
                {{"M", 2 * g.m - 1}, {"N", g.n + 5}, {"K", 2 * g.k + 1}},
                {{"M", 1}, {"N", 1}, {"K", 1}},
                {{"M", 3}, {"N", 4}, {"K", 0}}},
               {2, 2, 1});
  }
}

TEST(ProductTest, WhatComesBehindStaysWithItsThreads) {
  ExpectSame(R"(
def k(a: ph.tensor[ph.f16][M, K], b: ph.tensor[ph.f16][K, N], bias: ph.tensor[ph.f32][N],
      c: ph.tensor[ph.f16][M, N], beta: ph.f32):
    acc: ph.tile[ph.f32][32, 32] = 1.0
    for k in ph.range(0, K, 32, stages=3):
        acc += ph.dot(a[0:+32, k:+32], b[k:+32, 0:+32])
    c[0:+32, 0:+32] = acc * 2.0 + bias[0:+32] + beta * c[0:+32, 0:+32]
)",
             64, {{{"M", 32}, {"N", 32}, {"K", 64}}, {{"M", 31}, {"N", 30}, {"K", 40}}}, {1, 1, 1});
}

TEST(ProductTest, OfProducts) {
  ExpectSame(R"(
def k(q: ph.tensor[ph.f16][M, 32], kk: ph.tensor[ph.f16][N, 32], v: ph.tensor[ph.f16][N, 32],
      out: ph.tensor[ph.f32][M, 32]):
    i: ph.let = ph.ctx.block.x * 32
    query: ph.let = q[i:+32, :]
    acc: ph.tile[ph.f32][32, 32] = 0.0
    most: ph.tile[ph.f32][32, 1] = -100.0
    for j in ph.range(0, N, 16, stages=2):
        s: ph.let = ph.dot_t(query, kk[j:+16, :])
        new: ph.let = ph.maximum(most, ph.rowmax(s))
        p: ph.let = ph.maximum(s - new, -4.0)
        acc = acc * 0.5 + ph.dot(ph.cast(p, ph.f16), v[j:+16, :])
        most = new
    out[i:+32, :] = acc + most
)",
             64, {{{"M", 64}, {"N", 48}}, {{"M", 33}, {"N", 17}}}, {2, 1, 1});
}

// What is said of rows is with the threads that have them, whatever has the same length; a tile of
// weights is multiplied from the registers that it was made in.
TEST(ProductTest, OfWhatThreadsHaveOfRows) {
  const std::string text = R"(
def k(q: ph.tensor[ph.f16][M, 32], kk: ph.tensor[ph.f16][N, 32], v: ph.tensor[ph.f16][N, 16],
      scale: ph.tensor[ph.f32][M], out: ph.tensor[ph.f32][M, 16], tops: ph.tensor[ph.f32][M]):
    i: ph.let = ph.ctx.block.x * 32
    query: ph.let = q[i:+32, :]
    acc: ph.tile[ph.f32][32, 16] = 0.0
    most: ph.tile[ph.f32][32, 1] = -100.0
    total: ph.tile[ph.f32][32, 1] = 0.0
    for j in ph.range(0, N, 32, stages=STAGES):
        s: ph.let = ph.dot_t(query, kk[j:+32, :]) + BIAS
        new: ph.let = ph.maximum(most, ph.rowmax(s))
        p: ph.let = ph.maximum(s - new, -4.0)
        total = total + ph.rowsum(p) * scale[i:+32][:, None]
        acc = acc * 0.5 + ph.dot(ph.cast(p, ph.f16), v[j:+32, :])
        most = new
    out[i:+32, :] = acc + most * total
    TOPS
)";
  const std::vector<Extents> cases = {{{"M", 64}, {"N", 64}}, {{"M", 33}, {"N", 49}}};
  // The bias of columns and the store of what rows have are what threads cannot have of their rows.
  for (const char* bias : {"0.0", "ph.cast(ph.iota(32), ph.f32)[:, None]", "scale[i:+32][None, :]",
                           "scale[i:+32][:, None]"}) {
    for (const char* stages : {"1", "2"}) {
      for (const char* tops : {"", "tops[i:+32] = ph.reshape(most, 32)"}) {
        ExpectSame(absl::StrReplaceAll(text, {{"BIAS", bias}, {"STAGES", stages}, {"TOPS", tops}}),
                   64, cases, {2, 1, 1});
      }
    }
  }
}

TEST(ProductTest, InLoopsAroundLoops) {
  ExpectSame(R"(
def k(a: ph.tensor[ph.f16][M, K], b: ph.tensor[ph.f16][K, N], c: ph.tensor[ph.f32][M, N]):
    for i in ph.range(0, M, 16):
        for j in ph.range(0, N, 16):
            acc: ph.tile[ph.f32][16, 16] = 0.0
            for k in ph.range(0, K, 16, stages=3, unroll=2):
                acc += ph.dot(a[i:+16, k:+16], b[k:+16, j:+16])
            c[i:+16, j:+16] = acc
)",
             32, {{{"M", 48}, {"N", 32}, {"K", 80}}}, {1, 1, 1});
  ExpectSame(R"(
def k(a: ph.tensor[ph.f16][M, K], b: ph.tensor[ph.f16][4, K, N], c: ph.tensor[ph.f32][M, N]):
    acc: ph.tile[ph.f32][16, 16] = 0.0
    for k in ph.range(K - 16, -1, -16, stages=3):
        if k > 16:
            acc += ph.dot(a[0:+16, k:+16], b[k % 3, k:+16, 0:+16])
    t: ph.let = ph.transpose(a[0:+16, 0:+16])
    c[0:+16, 0:+16] = acc + ph.dot(t, b[2, 0:+16, 0:+16])
)",
             32, {{{"M", 16}, {"N", 16}, {"K", 80}}}, {1, 1, 1});
}

TEST(ProductTest, Batched) {
  ExpectSame(R"(
def k(a: ph.tensor[ph.f16][4, M, 16], b: ph.tensor[ph.f16][4, 16, N],
      c: ph.tensor[ph.f32][4, M, N]):
    c[0:+4, 0:+8, 0:+16] = ph.dot(a[0:+4, 0:+8, :], b[0:+4, :, 0:+16])
)",
             64, {{{"M", 8}, {"N", 16}}, {{"M", 5}, {"N", 9}}}, {1, 1, 1});
  // The two long sides of the result are no row and column of one product.
  ExpectSame(R"(
def k(a: ph.tensor[ph.f32][8, M, 16], b: ph.tensor[ph.f32][8, 16, N],
      c: ph.tensor[ph.f32][8, M, N]):
    c[0:+8, 0:+1, 0:+32] = ph.dot(a[0:+8, 0:+1, :], b[0:+8, :, 0:+32])
    c[0:+8, 1:+8, 0:+1] = ph.dot(a[0:+8, 1:+8, :], b[0:+8, :, 0:+1])
)",
             32, {{{"M", 9}, {"N", 32}}, {{"M", 5}, {"N", 9}}}, {1, 1, 1});
}

// What is multiplied in f32 by the threads themselves and by matrix instructions lies in shared
// memory as the latter want it.
TEST(ProductTest, OneOperandTwoWays) {
  ExpectSame(R"(
def k(a: ph.tensor[ph.f32][M, K], b: ph.tensor[ph.f32][K, N], c: ph.tensor[ph.f32][M, N],
      d: ph.tensor[ph.f32][M, N]):
    exact: ph.tile[ph.f32][16, 32] = 0.0
    rounded: ph.tile[ph.f32][16, 32] = 0.0
    for k in ph.range(0, K, 16, stages=2):
        x: ph.let = a[0:+16, k:+16]
        y: ph.let = b[k:+16, 0:+32]
        exact += ph.dot(x, y)
        rounded += ph.dot(x, y, precision="tf32")
    c[0:+16, 0:+32] = exact
    d[0:+16, 0:+32] = rounded
)",
             32, {{{"M", 16}, {"N", 32}, {"K", 48}}, {{"M", 15}, {"N", 20}, {"K", 20}}}, {1, 1, 1});
}

// A scan and a reduction write their results by number, where a product's operands have their rows
// swizzled.
TEST(ProductTest, OfAScanAndOfSums) {
  const std::vector<std::string> operands = {
      "ph.cumsum(x[0, 0:+32, 0:+16], axis=1)", "ph.cumsum(x[0, 0:+32, 0:+16], axis=0)",
      "ph.sum(x[0:+4, 0:+32, 0:+16], axis=0)", "ph.max(x[0:+4, 0:+32, 0:+16], axis=0)"};
  for (const std::string& operand : operands) {
    for (const char* type : {"f32", "f16", "f64"}) {
      const std::string text = absl::StrReplaceAll(R"(
def k(x: ph.tensor[ph.TYPE][P, M, K], b: ph.tensor[ph.TYPE][K, N], y: ph.tensor[ph.TYPE][M, N]):
    y[0:+32, 0:+16] = ph.dot(OPERAND, b[0:+16, 0:+16])
)",
                                                   {{"TYPE", type}, {"OPERAND", operand}});
      ExpectSame(text, 32, {{{"P", 4}, {"M", 32}, {"K", 16}, {"N", 16}}}, {1, 1, 1});
    }
  }
}

// A column has one long side, along which vectors would run; each of its elements has a row of a.
TEST(ProductTest, ByAVector) {
  struct Case {
    std::string type, sum, product;
  };
  const std::vector<Case> cases = {
      {"f32", "f32", "ph.dot(a[i:+32, k:+8], x[k:+8][:, None])"},
      {"f64", "f64", "ph.dot(a[i:+32, k:+8], x[k:+8][:, None])"},
      {"f16", "f32", "ph.dot(a[i:+32, k:+8], x[k:+8][:, None])"},
      {"i8", "i32", "ph.dot(a[i:+32, k:+8], x[k:+8][:, None])"},
      {"f32", "f32", "ph.dot_t(a[i:+32, k:+8], x[k:+8][None, :])"},
  };
  for (const Case& test : cases) {
    for (const char* promise : {"", "@ph.aligned(a=16, x=16, y=16, M=8, K=8)\n"}) {
      const std::string text = absl::StrReplaceAll(R"(PROMISEdef k(a: ph.tensor[ph.TYPE][M, K],
      x: ph.tensor[ph.TYPE][K], y: ph.tensor[ph.SUM][M]):
    i: ph.let = ph.ctx.block.x * 32
    acc: ph.tile[ph.SUM][32, 1] = 0
    for k in ph.range(0, K, 8):
        acc += PRODUCT
    y[i:+32] = ph.reshape(acc, 32)
)",
                                                   {{"PROMISE", promise},
                                                    {"TYPE", test.type},
                                                    {"SUM", test.sum},
                                                    {"PRODUCT", test.product}});
      ExpectSame(text, 32, {{{"M", 64}, {"K", 24}}, {{"M", 40}, {"K", 8}}}, {2, 1, 1});
    }
    ExpectSame(
        absl::StrReplaceAll(R"(
def k(a: ph.tensor[ph.TYPE][M, K], x: ph.tensor[ph.TYPE][K], y: ph.tensor[ph.SUM][M]):
    i: ph.let = ph.ctx.block.x * 32
    k: ph.let = 0
    y[i:+32] = ph.sum(PRODUCT, axis=1)
)",
                            {{"TYPE", test.type}, {"SUM", test.sum}, {"PRODUCT", test.product}}),
        32, {{{"M", 64}, {"K", 8}}, {{"M", 35}, {"K", 7}}}, {2, 1, 1});
  }
}

// What a matrix instruction leaves with four threads is stored up to 16 bytes at a time, where
// alignment is promised and no other statement counts on who stores what.
TEST(ProductTest, ThreadsPoolWhatTheyStore) {
  struct Case {
    std::string type, store;
    int64_t columns;
    bool is_pooled;
  };
  const std::vector<Case> cases = {
      {"f16", "c[i:+32, j:+COLUMNS] = acc", 64, true},
      {"bf16", "c[i:+32, j:+COLUMNS] = acc * 2.0", 32, true},
      {"f32", "c[i:+32, j:+COLUMNS] = acc + c[i:+32, j:+COLUMNS]", 32, true},
      {"f16", "c[i:+32, j:+COLUMNS] = acc", 8, false},
      {"f16", "c[i:+32, j:+COLUMNS] = acc\n    c[i:+32, j:+COLUMNS] = c[i:+32, j:+COLUMNS] + acc",
       64, false},
      {"i16", "c[i:+32, j:+COLUMNS] = ph.cast(ph.clip(acc, -9.0, 9.0), ph.i16)", 64, true},
      {"f16", "c[i:+32, j:+COLUMNS] = ph.where(acc > 0.0, acc, 1.0)", 64, true},
      {"f16", "ph.store(c[i:+32, j:+COLUMNS], acc, mask=acc > 0.0)", 64, false},
      {"f32", "c[i:+32, j:+COLUMNS] = acc + c[i:+32, j + 1:+COLUMNS]", 32, true},
  };
  const std::vector<Extents> extents = {{{"M", 64}, {"N", 128}, {"K", 32}},
                                        {{"M", 37}, {"N", 72}, {"K", 40}}};
  for (const Case& test : cases) {
    const std::string text =
        absl::StrReplaceAll(absl::StrReplaceAll(R"(@ph.aligned(a=16, b=16, c=16, N=8, K=8)
def k(a: ph.tensor[ph.f16][M, K], b: ph.tensor[ph.f16][K, N], c: ph.tensor[ph.TYPE][M, N]):
    i: ph.let = ph.ctx.block.x * 32
    j: ph.let = ph.ctx.block.y * COLUMNS
    acc: ph.tile[ph.f32][32, COLUMNS] = 0.0
    for k in ph.range(0, K, 32, stages=3):
        acc += ph.dot(a[i:+32, k:+32], b[k:+32, j:+COLUMNS])
    STORE
)",
                                                {{"STORE", test.store}, {"TYPE", test.type}}),
                            {{"COLUMNS", absl::StrCat(test.columns)}});
    ir::Function function = FunctionOf(text);
    function.threads = 64;
    const auto compiled = nvptx::Compile(function, *nvptx::ResolveChip("sm_90"));
    ASSERT_TRUE(compiled.ok()) << compiled.status() << text;
    EXPECT_EQ(absl::StrContains(compiled->ptx, "shfl.sync"), test.is_pooled) << text;
    ExpectSame(text, 64, extents, {3, 128 / test.columns, 1});
  }
}

TEST(ProductTest, UsesWhatTheChipHas) {
  const ir::Function half = FunctionOf(TextOf({"f16", "f32", "dot", "", 64, 64, 32, 128, 3}));
  const auto turing = nvptx::Compile(half, *nvptx::ResolveChip("sm_75"));
  ASSERT_TRUE(turing.ok()) << turing.status();
  EXPECT_TRUE(absl::StrContains(turing->ptx, "mma.sync.aligned.m16n8k8"));
  EXPECT_TRUE(absl::StrContains(turing->ptx, "ldmatrix"));
  EXPECT_FALSE(absl::StrContains(turing->ptx, "cp.async"));
  for (const char* name : {"sm_80", "sm_90"}) {
    const auto ampere = nvptx::Compile(half, *nvptx::ResolveChip(name));
    ASSERT_TRUE(ampere.ok()) << ampere.status();
    EXPECT_TRUE(absl::StrContains(ampere->ptx, "mma.sync.aligned.m16n8k16"));
    EXPECT_TRUE(absl::StrContains(ampere->ptx, "cp.async.wait_group"));
    // Without a branch, so that copies can stand between products.
    EXPECT_TRUE(std::regex_search(ampere->ptx, std::regex("@%p[0-9]+ cp.async.cg.shared.global")));
  }
  const ir::Function exact = FunctionOf(TextOf({"f32", "f32", "dot", "", 64, 64, 16, 128, 3}));
  const auto sums = nvptx::Compile(exact, *nvptx::ResolveChip("sm_90"));
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_FALSE(absl::StrContains(sums->ptx, "mma.sync"));
  EXPECT_TRUE(absl::StrContains(sums->ptx, "fma.rn.f32"));
}

TEST(ProductTest, SaysWhatDoesNotFitIntoAChip) {
  const ir::Function function = FunctionOf(TextOf({"f16", "f32", "dot", "", 128, 128, 64, 256, 4}));
  for (const auto& [name, fits] :
       std::map<std::string, bool>{{"sm_75", false}, {"sm_80", true}, {"sm_86", false}}) {
    const auto artifact = nvptx::Compile(function, *nvptx::ResolveChip(name));
    EXPECT_EQ(artifact.ok(), fits || name == "sm_75") << name << artifact.status();
    if (name == "sm_80") {
      EXPECT_EQ(artifact->shared_memory_bytes, 131072);
      EXPECT_EQ(artifact->dynamic_shared_memory_bytes, 131072);
    }
    if (name == "sm_86") {
      EXPECT_NE(artifact.status().message().find("131072 bytes of shared memory"),
                std::string::npos)
          << artifact.status();
    }
  }
}

}  // namespace
}  // namespace phobos::compiler::testing
