# SPDX-License-Identifier: Apache-2.0
"""Products of tiles, and the kernels that need them, against NumPy at extents around the tiles."""

import itertools
import sys
import unittest

import numpy as np

import compiled
from compiled import bf16, cdiv, floats, from_bf16

COMPILER = sys.argv.pop(1)


def triples(bm, bn, bk):
    """Extents m, n, k around three tiles: each of a side's extents once or more, beside changing others."""
    rows, columns, depths = compiled.sizes(bm), compiled.sizes(bn)[::-1], compiled.sizes(bk)
    depths = depths[3:] + depths[:3]
    count = max(len(rows), len(columns), len(depths))
    cycles = [itertools.islice(itertools.cycle(sides), count) for sides in (rows, columns, depths)]
    return list(zip(*cycles)) + [(bm, bn, bk), (2 * bm + 1, 2 * bn - 1, 3 * bk), (bm, bn, 0)]


def for_sums(dtype, *shape, seed=1):
    """Floats; where a chip may add products in another order, ones whose sums are exact."""
    numbers = floats(*shape, seed=seed)
    return numbers if dtype == "f32" else np.rint(4 * numbers).astype(NUMPY[dtype])


def around(test, text, run, names=("BM", "BN", "BK")):
    """Calls run(variant, tiles, m, n, k) for each variant at extents around its tiles."""
    for variant in compiled.variants(COMPILER, text):
        tiles = tuple(variant.constants[name] for name in names)
        for m, n, k in triples(*tiles):
            with test.subTest(chip=variant.chip, constants=variant.constants, m=m, n=n, k=k):
                run(variant, tiles, m, n, k)


def in_order(a, b, start):
    """start + a @ b in f32, one product after the other, each rounded once: what the host chip gives, to the bit."""
    total = np.array(start, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(a.shape[1]):
            # A product is exact in 64 binary digits. Its sum is rounded twice, for these numbers as if once.
            exact = a[:, k:k + 1].astype(np.longdouble) * b[k].astype(np.longdouble) + total
            total = exact.astype(np.float32)
    return total


class Kernels(unittest.TestCase):

    def test_f32_gemm_with_alpha_and_beta(self):
        text = """
@ph.kernel
@ph.autotune(CONSTANTS)
def k(a: ph.tensor[ph.f32][M, K], b: ph.tensor[ph.f32][K, N], c: ph.tensor[ph.f32][M, N], alpha: ph.f32, beta: ph.f32):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    acc: ph.tile[ph.f32][BM, BN] = 0.0
    for l in ph.range(0, K, BK):
        acc += ph.dot(a[i:+BM, l:+BK], b[l:+BK, j:+BN])
    c[i:+BM, j:+BN] = alpha * acc + beta * c[i:+BM, j:+BN]
""".replace("CONSTANTS", CONSTANTS)

        def run(variant, tiles, m, n, k):
            a, b, c = floats(m, k), floats(k, n, seed=2), floats(m, n, seed=3)
            alpha, beta = np.float32(1.5), np.float32(-0.25)
            grid = (cdiv(m, tiles[0]), cdiv(n, tiles[1]))
            got = variant.run(grid, a=a, b=b, c=c, alpha=alpha, beta=beta)["c"]
            np.testing.assert_array_equal(got, alpha * in_order(a, b, np.zeros((m, n))) + beta * c)

        around(self, text, run)

    def test_half_float_gemms(self):
        for dtype, narrow, wide in (("f16", np.float16, np.float32), ("bf16", bf16, from_bf16)):
            text = f"""
@ph.kernel
@ph.autotune({CONSTANTS})
def k(a: ph.tensor[ph.{dtype}][M, K], b: ph.tensor[ph.{dtype}][K, N], c: ph.tensor[ph.{dtype}][M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    acc: ph.tile[ph.f32][BM, BN] = 0.0
    for l in ph.range(0, K, BK):
        acc = acc + ph.dot(a[i:+BM, l:+BK], b[l:+BK, j:+BN])
    c[i:+BM, j:+BN] = acc
"""

            def run(variant, tiles, m, n, k):
                a, b = narrow(floats(m, k)), narrow(floats(k, n, seed=2))
                grid = (cdiv(m, tiles[0]), cdiv(n, tiles[1]))
                got = variant.run(grid, a=a, b=b, c=narrow(np.zeros((m, n), np.float32)))["c"]
                np.testing.assert_array_equal(got, narrow(in_order(wide(a), wide(b), np.zeros((m, n)))))

            around(self, text, run)

    def test_integer_gemms(self):
        for dtype, np_dtype in (("i8", np.int8), ("u8", np.uint8)):
            text = f"""
@ph.kernel
@ph.autotune({CONSTANTS})
def k(a: ph.tensor[ph.{dtype}][M, K], b: ph.tensor[ph.{dtype}][K, N], c: ph.tensor[ph.i32][M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    acc: ph.tile[ph.i32][BM, BN] = 0
    for l in ph.range(0, K, BK):
        acc += ph.dot(a[i:+BM, l:+BK], b[l:+BK, j:+BN])
    c[i:+BM, j:+BN] = acc
"""

            def run(variant, tiles, m, n, k):
                generator = np.random.default_rng(3)
                limits = np.iinfo(np_dtype)
                a = generator.integers(limits.min, limits.max + 1, (m, k)).astype(np_dtype)
                b = generator.integers(limits.min, limits.max + 1, (k, n)).astype(np_dtype)
                grid = (cdiv(m, tiles[0]), cdiv(n, tiles[1]))
                got = variant.run(grid, a=a, b=b, c=np.zeros((m, n), np.int32))["c"]
                np.testing.assert_array_equal(got, a.astype(np.int32) @ b.astype(np.int32))

            around(self, text, run)

    def test_matrix_by_vector(self):
        for dtype, aligned in itertools.product(("f32", "f16"), ("", "@ph.aligned(a=16, x=16, y=16, M=8, K=8)\n")):
            text = f"""
@ph.kernel
@ph.autotune(BM=[32, 128, 5], BK=[8, 3])
{aligned}def k(a: ph.tensor[ph.{dtype}][M, K], x: ph.tensor[ph.{dtype}][K, 1], y: ph.tensor[ph.f32][M]):
    i: ph.let = ph.ctx.block.x * BM
    acc: ph.tile[ph.f32][BM, 1] = 0.0
    for l in ph.range(0, K, BK):
        acc += ph.dot(a[i:+BM, l:+BK], x[l:+BK, :])
    y[i:+BM] = ph.reshape(acc, BM)
"""

            def run(variant, bm, bk, m, k):
                if aligned and (m % 8 or k % 8):
                    return
                a, x = for_sums(dtype, m, k), for_sums(dtype, k, 1, seed=2)
                got = variant.run((cdiv(m, bm),), a=a, x=x, y=floats(m, seed=3))["y"]
                np.testing.assert_array_equal(got, in_order(a, x, np.zeros((m, 1)))[:, 0])

            compiled.around_tiles(self, COMPILER, text, ("BM", "BK"), run)

    def test_vector_by_matrix(self):
        for dtype, aligned in itertools.product(("f32", "f16"), ("", "@ph.aligned(x=16, b=16, y=16, K=8, N=8)\n")):
            text = f"""
@ph.kernel
@ph.autotune(BK=[8, 3], BN=[32, 128, 5])
{aligned}def k(x: ph.tensor[ph.{dtype}][1, K], b: ph.tensor[ph.{dtype}][K, N], y: ph.tensor[ph.f32][N]):
    j: ph.let = ph.ctx.block.x * BN
    acc: ph.tile[ph.f32][1, BN] = 0.0
    for l in ph.range(0, K, BK):
        acc += ph.dot(x[:, l:+BK], b[l:+BK, j:+BN])
    y[j:+BN] = ph.reshape(acc, BN)
"""

            def run(variant, bk, bn, k, n):
                if aligned and (k % 8 or n % 8):
                    return
                x, b = for_sums(dtype, 1, k), for_sums(dtype, k, n, seed=2)
                got = variant.run((cdiv(n, bn),), x=x, b=b, y=floats(n, seed=3))["y"]
                np.testing.assert_array_equal(got, in_order(x, b, np.zeros((1, n)))[0])

            compiled.around_tiles(self, COMPILER, text, ("BK", "BN"), run)

    def test_products_of_a_scan_and_of_sums(self):
        for operand in ("ph.cumsum(a[0, i:+BM, :], axis=1)", "ph.sum(a[:, i:+BM, :], axis=0)"):
            text = f"""
@ph.kernel
@ph.autotune(BM=[32, 16], BN=[16, 8])
def k(a: ph.tensor[ph.f32][2, M, 16], b: ph.tensor[ph.f32][16, N], y: ph.tensor[ph.f32][M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    y[i:+BM, j:+BN] = ph.dot({operand}, b[:, j:+BN])
"""

            def run(variant, bm, bn, m, n):
                a, b = for_sums("f32", 2 * m, 16).reshape(2, m, 16), for_sums("f32", 16, n, seed=2)
                left = a[0].cumsum(1) if "cumsum" in operand else a.sum(0)
                got = variant.run((cdiv(m, bm), cdiv(n, bn)), a=a, b=b, y=floats(m, n, seed=3))["y"]
                np.testing.assert_allclose(got, left @ b, rtol=1e-5, atol=1e-4)

            compiled.around_tiles(self, COMPILER, text, ("BM", "BN"), run)

    def test_gemm_bias_gelu_of_a_transposed_weight(self):
        text = f"""
@ph.fn
def gelu(v):
    return 0.5 * v * (1.0 + ph.erf(v * 0.70710678))

@ph.kernel
@ph.autotune({CONSTANTS})
def k(x: ph.tensor[ph.f32][M, K], w: ph.tensor[ph.f32][N, K], bias: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    acc: ph.tile[ph.f32][BM, BN] = bias[j:+BN]
    for l in ph.range(0, K, BK):
        acc += ph.dot_t(x[i:+BM, l:+BK], w[j:+BN, l:+BK])
    out[i:+BM, j:+BN] = gelu(acc)
"""
        erf = np.frompyfunc(__import__("math").erf, 1, 1)

        def run(variant, tiles, m, n, k):
            x, w, bias = floats(m, k), floats(n, k, seed=2), floats(n, seed=3)
            grid = (cdiv(m, tiles[0]), cdiv(n, tiles[1]))
            got = variant.run(grid, x=x, w=w, bias=bias, out=np.zeros((m, n), np.float32))["out"]
            v = in_order(x, w.T, np.broadcast_to(bias, (m, n))).astype(np.float64)
            want = 0.5 * v * (1 + erf(v * 0.70710678).astype(np.float64))
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)

        around(self, text, run)

    def test_batched_gemm(self):
        text = f"""
@ph.kernel
@ph.autotune({CONSTANTS})
def k(a: ph.tensor[ph.f64][B, M, K], b: ph.tensor[ph.f64][B, K, N], c: ph.tensor[ph.f64][B, M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    z: ph.let = ph.ctx.block.z
    acc: ph.tile[ph.f64][BM, BN] = 0.0
    for l in ph.range(0, K, BK):
        acc += ph.dot(a[z, i:+BM, l:+BK], b[z, l:+BK, j:+BN])
    c[z, i:+BM, j:+BN] = acc
"""

        def run(variant, tiles, m, n, k):
            for batch in (0, 3):
                a, b = floats(batch, m, k).astype(np.float64), floats(batch, k, n, seed=2).astype(np.float64)
                grid = (cdiv(m, tiles[0]), cdiv(n, tiles[1]), batch)
                got = variant.run(grid, a=a, b=b, c=np.zeros((batch, m, n)))["c"]
                np.testing.assert_allclose(got, a @ b, rtol=1e-12, atol=1e-12)

        around(self, text, run)

    def test_grouped_gemm(self):
        text = f"""
GROUP = 3

@ph.kernel
@ph.autotune({CONSTANTS})
def k(a: ph.tensor[ph.f32][M, K], b: ph.tensor[ph.f32][K, N], c: ph.tensor[ph.f32][M, N]):
    rows: ph.let = ph.cdiv(M, BM)
    columns: ph.let = ph.cdiv(N, BN)
    group: ph.let = ph.ctx.block.x // (GROUP * columns)
    first: ph.let = group * GROUP
    size: ph.let = ph.minimum(rows - first, GROUP)
    within: ph.let = ph.ctx.block.x % (GROUP * columns)
    i: ph.let = (first + within % size) * BM
    j: ph.let = within // size * BN
    acc: ph.tile[ph.f32][BM, BN] = 0.0
    for l in ph.range(0, K, BK):
        acc += ph.dot(a[i:+BM, l:+BK], b[l:+BK, j:+BN], precision="tf32")
    c[i:+BM, j:+BN] = acc
"""

        def run(variant, tiles, m, n, k):
            a, b = floats(m, k), floats(k, n, seed=2)
            blocks = cdiv(m, tiles[0]) * cdiv(n, tiles[1])
            got = variant.run((blocks,), a=a, b=b, c=np.zeros((m, n), np.float32))["c"]
            np.testing.assert_array_equal(got, in_order(tf32(a), tf32(b), np.zeros((m, n))))
            wide = a.astype(np.float64)
            np.testing.assert_allclose(got, wide @ b, rtol=2e-3, atol=2e-3 * (np.abs(wide) @ np.abs(b)).max(initial=0))

        around(self, text, run)

    def test_flash_attention(self):
        text = """
@ph.kernel
@ph.autotune(BM=[16, 5], BN=[32, 3], HEAD=[32], CAUSAL=[False, True])
def k(q: ph.tensor[ph.f32][B, M, D], keys: ph.tensor[ph.f32][B, N, D], values: ph.tensor[ph.f32][B, N, D],
      out: ph.tensor[ph.f32][B, M, D], scale: ph.f32):
    i: ph.let = ph.ctx.block.x * BM
    z: ph.let = ph.ctx.block.y
    rows: ph.let = i + ph.iota(BM)
    mine: ph.let = q[z, i:+BM, 0:+HEAD] * (scale * 1.4426950408889634)
    top: ph.tile[ph.f32][BM] = -ph.inf
    total: ph.tile[ph.f32][BM] = 0.0
    acc: ph.tile[ph.f32][BM, HEAD] = 0.0
    for j in ph.range(0, ph.minimum(N, i + BM) if CAUSAL else N, BN):
        columns: ph.let = j + ph.iota(BN)
        s: ph.let = ph.dot_t(mine, keys[z, j:+BN, 0:+HEAD])
        seen: ph.let = (columns < N)[None, :] & ((rows[:, None] >= columns[None, :]) | (not CAUSAL))
        scores: ph.let = ph.where(seen, s, -ph.inf)
        higher: ph.let = ph.maximum(top, ph.max(scores, axis=1))
        p: ph.let = ph.exp2(scores - higher[:, None])
        shrink: ph.let = ph.exp2(top - higher)
        total = total * shrink + ph.sum(p, axis=1)
        acc = acc * shrink[:, None] + ph.dot(p, values[z, j:+BN, 0:+HEAD])
        top = higher
    out[z, i:+BM, 0:+HEAD] = acc / total[:, None]
"""

        def run(variant, tiles, m, n, d):
            causal = variant.constants["CAUSAL"]
            if d == 0 or d > tiles[2] or n == 0 or (causal and m > n):
                return
            q, keys, values = floats(2, m, d), floats(2, n, d, seed=2), floats(2, n, d, seed=3)
            scale = np.float32(d**-0.5)
            got = variant.run((cdiv(m, tiles[0]), 2), q=q, keys=keys, values=values, out=np.zeros_like(q), scale=scale)["out"]
            scores = q.astype(np.float64) @ keys.astype(np.float64).transpose(0, 2, 1) * float(scale)
            if causal:
                scores = np.where(np.arange(m)[:, None] >= np.arange(n), scores, -np.inf)
            p = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
            np.testing.assert_allclose(got, p / p.sum(-1, keepdims=True) @ values, rtol=2e-5, atol=2e-6)

        around(self, text, run, ("BM", "BN", "HEAD"))


def tf32(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)


CONSTANTS = "BM=[40, 5], BN=[48, 7], BK=[16, 3]"


class Rules(unittest.TestCase):
    """Every type and form, at sides that the registers of no chip divide."""

    def multiply(self, call, a_dtype, result, a, b, acc, shape):
        """For each chip, acc + call, of tiles a and b."""
        params = "".join(f"{name}: ph.tensor[ph.{dtype}][{', '.join(map(str, array.shape))}], "
                         for name, dtype, array in (("a", a_dtype, a), ("b", a_dtype, b), ("acc", result, acc)))
        whole = ", ".join([":"] * a.ndim)
        text = f"""
@ph.kernel
def k({params}out: ph.tensor[ph.{result}][{', '.join(map(str, shape))}]):
    out[{whole}] = {call.replace("a_", f"a[{whole}]").replace("b_", f"b[{whole}]")} + acc[{whole}]
"""
        for variant in compiled.variants(COMPILER, text):
            yield variant.run((1,), a=a, b=b, acc=acc, out=np.zeros(shape, acc.dtype))["out"]

    def test_sides_of_every_kind(self):
        for m, n, k in ((1, 1, 1), (1, 33, 5), (33, 1, 300), (13, 16, 4), (25, 17, 9), (64, 100, 2), (7, 31, 600)):
            a, b, acc = floats(m, k), floats(k, n, seed=2), floats(m, n, seed=3)
            want = in_order(a, b, acc)
            for got in self.multiply("ph.dot(a_, b_)", "f32", "f32", a, b, acc, (m, n)):
                np.testing.assert_array_equal(got, want)
            turned = np.ascontiguousarray(b.T)
            for got in self.multiply("ph.dot_t(a_, b_)", "f32", "f32", a, turned, acc, (m, n)):
                np.testing.assert_array_equal(got, want)

    def test_types_and_batches(self):
        generator = np.random.default_rng(5)
        for dtype, result, leading, depth in (("f16", "f32", (3,), 37), ("f32", "f32", (2, 2), 270),
                                              ("f64", "f64", (2,), 300), ("i8", "i32", (2, 3), 37),
                                              ("u8", "i32", (), 513)):
            a = generator.integers(0, 9, (*leading, 14, depth)).astype(NUMPY[dtype])
            b = generator.integers(0, 9, (*leading, depth, 20)).astype(NUMPY[dtype])
            acc = generator.integers(0, 9, (*leading, 14, 20)).astype(NUMPY[result])
            want = a.astype(NUMPY[result]) @ b.astype(NUMPY[result]) + acc
            for got in self.multiply("ph.dot(a_, b_)", dtype, result, a, b, acc, want.shape):
                np.testing.assert_array_equal(got, want)
            turned = np.ascontiguousarray(np.swapaxes(b, -1, -2))
            for got in self.multiply("ph.dot_t(a_, b_)", dtype, result, a, turned, acc, want.shape):
                np.testing.assert_array_equal(got, want)

    def test_precisions(self):
        a, b, acc = floats(9, 40), floats(40, 20, seed=2), floats(9, 20, seed=3)
        a[0, 0], a[1, 1], a[2, 2], b[3, 3] = np.float32(1 + 2**-11), -70000, 1e-41, np.float32(3.4e38)
        a[4, 3] = 0
        for precision, rounded in (("exact", lambda v: v), ("tf32", tf32), ("f16", self.through_f16)):
            want = in_order(rounded(a), rounded(b), acc)
            call = f'ph.dot(a_, b_, precision="{precision}")'
            for got in self.multiply(call, "f32", "f32", a, b, acc, want.shape):
                np.testing.assert_array_equal(got, want)

    @staticmethod
    def through_f16(values):
        with np.errstate(over="ignore"):
            return values.astype(np.float16).astype(np.float32)

    def test_a_product_that_is_used_twice(self):
        text = """
@ph.kernel
def k(a: ph.tensor[ph.f32][6, 5], b: ph.tensor[ph.f32][5, 6], out: ph.tensor[ph.f32][6, 6], twice: ph.tensor[ph.f32][6, 6]):
    d: ph.let = ph.dot(a[:, :], b[:, :])
    out[:, :] = d + 1.0
    twice[:, :] = ph.dot(d, d) + ph.dot(a[:, :], b[:, :])
"""
        for variant in compiled.variants(COMPILER, text):
            a, b = floats(6, 5), floats(5, 6, seed=2)
            got = variant.run((1,), a=a, b=b, out=np.zeros((6, 6), np.float32), twice=np.zeros((6, 6), np.float32))
            d = in_order(a, b, np.zeros((6, 6)))
            np.testing.assert_array_equal(got["out"], d + np.float32(1))
            np.testing.assert_array_equal(got["twice"], in_order(a, b, in_order(d, d, np.zeros((6, 6)))))

    def test_a_variable_that_is_its_own_operand(self):
        text = """
@ph.kernel
def k(a: ph.tensor[ph.f32][7, 7], out: ph.tensor[ph.f32][7, 7]):
    v: ph.var = a[:, :]
    for i in ph.range(3):
        v += ph.dot(v, v) * 0.125
        v = ph.dot_t(v, v) + v * 0.5
    out[:, :] = v
"""
        for variant in compiled.variants(COMPILER, text):
            a = floats(7, 7) * np.float32(0.25)
            got = variant.run((1,), a=a, out=np.zeros_like(a))["out"]
            v = a
            for _ in range(3):
                v = v + in_order(v, v, np.zeros((7, 7))) * np.float32(0.125)
                v = in_order(v, v.T, v * np.float32(0.5))
            np.testing.assert_array_equal(got, v)


NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8, "i32": np.int32}


if __name__ == "__main__":
    unittest.main()
