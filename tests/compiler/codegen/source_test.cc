// SPDX-License-Identifier: Apache-2.0
//
// Kernels as users write them, through the front end and the host back end, against the
// interpreter, at sizes around the tile's.
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/printer.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"
#include "tests/compiler/sema/lower/lowered.h"

namespace phobos::compiler::testing {
namespace {

struct Kernel {
  const char* name;
  const char* text;  // decorators below @ph.kernel, then the definition
};

const Kernel kKernels[] = {
    {"vector_add", R"(
@ph.autotune(BLOCK=[64, 256])
def k(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
)"},
    {"saxpy_in_place", R"(
@ph.autotune(BLOCK=[48, 24, 12], U=[4, 2, 1])
def k(a: ph.f32, x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    first: ph.let = ph.ctx.block.x * BLOCK
    for part in ph.range(4, unroll=U):
        at: ph.let = first + part * (BLOCK // 4)
        out[at:+BLOCK // 4] += a * x[at:+BLOCK // 4]
)"},
    {"leaky_relu_of_three_types", R"(
def k(x: ph.tensor[ph.f16][N], y: ph.tensor[ph.bf16][N], out: ph.tensor[ph.f32][N], slope: ph.f32):
    at: ph.let = ph.ctx.block.x * 40
    h: ph.let = x[at:+40]
    b: ph.let = y[at:+40]
    out[at:+40] = ph.where(h > 0, h, slope * h) + ph.maximum(b, 0) * h
    x[at:+40] = h * h + b
    y[at:+40] = ph.minimum(b, 0.5) - h
)"},
    {"stencil", R"(
def k(x: ph.tensor[ph.f64][N], out: ph.tensor[ph.f64][N]):
    i: ph.let = ph.ctx.block.x * 100
    out[i:+100] = 0.25 * x[i - 1:+100] + 0.5 * x[i:+100] + 0.25 * x[i + 1:+100]
)"},
    {"shift_in_place", R"(
def k(x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N]):
    if ph.ctx.block.x == 0:
        x[1:+60] = x[0:+60]
        out[0:+60] = x[0:+60]
        out[3:+60] -= x[5:+60]
)"},
    {"masks_and_fills", R"(
def k(x: ph.tensor[ph.f32][N], m: ph.tensor[ph.bool][N], out: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x * 33
    v: ph.let = ph.load(x[i - 5:+33], fill=-1.0, mask=m[i:+33])
    ph.store(out[i:+33], v + 1.0, mask=~m[i + 2:+33])
)"},
    {"integers", R"(
def k(x: ph.tensor[ph.u8][N], y: ph.tensor[ph.i64][N], out: ph.tensor[ph.i64][N], d: ph.i64):
    i: ph.let = ph.ctx.block.x * 70
    a: ph.let = x[i:+70]
    b: ph.let = y[i:+70]
    out[i:+70] = (b // d) * 3 + b % (d + 1) + (a >> 2) + ph.cast(a + 200, ph.u8) + ph.mulhi(b, b << 40)
    x[i:+70] = a ^ ph.cast(b, ph.u8) & 15
)"},
    {"tile_variable_over_a_loop", R"(
@ph.fn
def both(a, b):
    return a + b, a - b

@ph.kernel
def k(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N], n: ph.i32):
    i: ph.let = ph.ctx.block.x * 50
    total: ph.tile[ph.f32][50] = 0.0
    last: ph.var = x[i:+50]
    for j in ph.range(n):
        if j == 3:
            continue
        plus, minus = both(total, x[i + j:+50])
        total = plus
        if j > 5:
            break
        last = minus * 0.5
    out[i:+50] = total + last
)"},
    {"while_and_return", R"(
def k(x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N], n: ph.i32):
    i: ph.let = ph.ctx.block.x * 16
    if i >= ph.extent(x, 0) or n < 0:
        return
    steps: ph.var = 0
    left: ph.var = n
    while left > 1:
        left = left // 2 if left % 2 == 0 else left * 3 + 1
        steps += 1
    out[i:+16] = x[i:+16] * steps + ph.cast(ph.iota(16), ph.i32) ** 3
)"},
    {"elements", R"(
def k(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x
    sum: ph.var = 0.0
    for j in ph.range(i, -1, -1):
        sum += x[j]
    out[i] = sum
    out[i - 1000] = 5.0
)"},
    {"gemm_and_bias", R"(
@ph.autotune(BM=[16, 5], BN=[16, 20], BK=[8, 7])
def k(x: ph.tensor[ph.bf16][N, 24], w: ph.tensor[ph.bf16][20, 24], b: ph.tensor[ph.f32][20],
      out: ph.tensor[ph.f32][N, 20]):
    i: ph.let = ph.ctx.block.x * BM
    for j in ph.range(0, 20, BN):
        acc: ph.tile[ph.f32][BM, BN] = b[j:+BN]
        for l in ph.range(0, 24, BK):
            acc += ph.dot_t(x[i:+BM, l:+BK], w[j:+BN, l:+BK])
        out[i:+BM, j:+BN] = acc
)"},
    {"attention", R"(
def k(q: ph.tensor[ph.f32][N, 16], keys: ph.tensor[ph.f32][N, 16], values: ph.tensor[ph.f32][N, 16],
      out: ph.tensor[ph.f32][N, 16]):
    i: ph.let = ph.ctx.block.x * 11
    mine: ph.let = q[i:+11, :] * 0.25
    top: ph.tile[ph.f32][11] = -ph.inf
    total: ph.tile[ph.f32][11] = 0.0
    acc: ph.tile[ph.f32][11, 16] = 0.0
    for j in ph.range(0, N, 24):
        s: ph.let = ph.where(j + ph.iota(24) < N, ph.dot_t(mine, keys[j:+24, :], precision="tf32"), -ph.inf)
        higher: ph.let = ph.maximum(top, ph.max(s, axis=1))
        p: ph.let = ph.maximum(s - higher[:, None], -100.0)
        total = total + ph.sum(p, axis=1)
        acc = acc * (top - higher + 1.0)[:, None] + ph.dot(p, values[j:+24, :])
        top = ph.minimum(higher, 8.0)
    out[i:+11, :] = acc / total[:, None]
)"},
    {"wide_indices", R"(
@ph.index_bits(64)
def k(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x * 128 + 4611686018427387904 - 4611686018427387900
    out[i:+128] = x[i:+128] * 2.0
)"},
};

std::string FileOf(const Kernel& kernel) {
  const std::string text = kernel.text;
  const bool has_decorator = text.find("@ph.kernel") != std::string::npos;
  return "from __future__ import annotations\nimport phobos.lang as ph\n" +
         std::string(has_decorator ? "" : "@ph.kernel") + text;
}

Launch LaunchOf(const ir::Function& function, int64_t size) {
  Launch launch;
  for (size_t p = 0; p < function.params.size(); ++p) {
    const ir::Param& param = function.params[p];
    Argument argument;
    int64_t elements = 1;
    for (const ir::Dim& dim : param.dims) {
      argument.sides.push_back(dim.extent < 0 ? dim.literal : size);
      elements *= argument.sides.back();
    }
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t value = (i * 7919 + static_cast<int64_t>(p) * 271 + 7) % 97 - 40;
      argument.elements.push_back(ir::IsFloat(param.dtype)
                                      ? FromReal(param.dtype, static_cast<long double>(value) / 16)
                                      : FromInteger(param.dtype, param.is_tensor ? value : 7));
    }
    launch.arguments.push_back(std::move(argument));
  }
  launch.grid[0] = 5;
  return launch;
}

class SourceTest : public ::testing::TestWithParam<Kernel> {};

TEST_P(SourceTest, DoesWhatTheInterpreterDoes) {
  const auto function = sema::LowerFile(FileOf(GetParam()));
  ASSERT_TRUE(function.ok()) << function.status();
  for (int64_t size : {0, 1, 7, 47, 48, 49, 61, 101, 640}) {
    EXPECT_EQ(Differences(*function, LaunchOf(*function, size)), "") << "size " << size << "\n"
                                                                     << ir::Print(*function);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SourceTest, ::testing::ValuesIn(kKernels),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace phobos::compiler::testing
