# SPDX-License-Identifier: Apache-2.0
"""Reductions, and the kernels that need them, against NumPy at extents around the tiles."""

import sys
import unittest

import numpy as np

import compiled
from compiled import around_tiles, cdiv, floats

COMPILER = sys.argv.pop(1)


def columns_of_one_tile(columns):
    """Extents that one tile of so many columns holds, without nothing."""
    return [n for n in compiled.sizes(columns) if 0 < n <= columns]


class Kernels(unittest.TestCase):

    def test_softmax_of_rows_in_one_tile(self):
        text = """
@ph.kernel
@ph.autotune(R=[4, 1], C=[64, 24])
def k(x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][M, N]):
    i: ph.let = ph.ctx.block.x * R
    t: ph.let = ph.load(x[i:+R, 0:+C], fill=-ph.inf)
    e: ph.let = ph.exp(t - ph.rowmax(t))
    out[i:+R, 0:+C] = e / ph.rowsum(e)
"""

        def run(variant, r, c, m, n):
            x = floats(m, n) * 5
            e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True, initial=-np.inf))
            got = variant.run((cdiv(m, r),), x=x, out=np.zeros_like(x))["out"]
            np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)

        around_tiles(self, COMPILER, text, ("R", "C"), run, columns_of_one_tile)

    def test_softmax_of_rows_of_any_length(self):
        text = """
@ph.kernel
@ph.autotune(C=[64, 24], U=[1, 2])
def k(x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][M, N]):
    row: ph.let = ph.ctx.block.x
    top: ph.tile[ph.f32][C] = -ph.inf
    for j in ph.range(0, N, C, unroll=U):
        top = ph.maximum(top, ph.load(x[row, j:+C], fill=-ph.inf))
    high: ph.let = ph.max(top)
    total: ph.tile[ph.f32][C] = 0.0
    for j in ph.range(0, N, C, unroll=U):
        e: ph.let = ph.exp(ph.load(x[row, j:+C], fill=-ph.inf) - high)
        out[row, j:+C] = e
        total += e
    scale: ph.let = 1.0 / ph.sum(total)
    for j in ph.range(0, N, C, unroll=U):
        out[row, j:+C] *= scale
"""

        def run(variant, c, u, m, n):
            x = floats(m, n) * 5
            e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True, initial=-np.inf))
            got = variant.run((m,), x=x, out=np.zeros_like(x))["out"]
            np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)

        for variant in compiled.variants(COMPILER, text):
            c = variant.constants["C"]
            for n in compiled.sizes(c) + [5 * c + 3]:
                for m in (0, 3) if n else (0,):
                    run(variant, c, 0, m, n)

    def test_rmsnorm_and_layernorm(self):
        text = """
@ph.fn
def norm(v, n, eps):
    return v * ph.rsqrt(ph.sum(v * v, axis=1, keepdims=True) / n + eps)

@ph.kernel
@ph.autotune(R=[4, 3], C=[64, 24])
def k(x: ph.tensor[ph.f32][M, N], w: ph.tensor[ph.f32][N], b: ph.tensor[ph.f32][N], eps: ph.f32,
      rms: ph.tensor[ph.f32][M, N], layer: ph.tensor[ph.f32][M, N]):
    i: ph.let = ph.ctx.block.x * R
    t: ph.let = x[i:+R, 0:+C]
    rms[i:+R, 0:+C] = norm(t, N, eps) * w[0:+C]
    inside: ph.let = (ph.iota(C) < N)[None, :]
    centered: ph.let = ph.where(inside, t - ph.sum(t, axis=-1, keepdims=True) / N, 0.0)
    layer[i:+R, 0:+C] = norm(centered, N, eps) * w[0:+C] + b[0:+C]
"""

        def run(variant, r, c, m, n):
            x, w, b = floats(m, n), floats(n, seed=2), floats(n, seed=3)
            z = np.zeros_like(x)
            got = variant.run((cdiv(m, r),), x=x, w=w, b=b, eps=np.float32(1e-5), rms=z, layer=z)
            x, w, b = (a.astype(np.float64) for a in (x, w, b))
            want = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * w
            np.testing.assert_allclose(got["rms"], want, rtol=2e-5, atol=2e-6)
            centered = x - x.mean(1, keepdims=True)
            want = centered / np.sqrt((centered * centered).mean(1, keepdims=True) + 1e-5) * w + b
            np.testing.assert_allclose(got["layer"], want, rtol=2e-5, atol=2e-6)

        around_tiles(self, COMPILER, text, ("R", "C"), run, columns_of_one_tile)

    def test_sums_of_rows_and_of_columns(self):
        text = """
@ph.kernel
@ph.autotune(R=[8, 5], C=[48, 7])
def k(x: ph.tensor[ph.i32][M, N], y: ph.tensor[ph.f16][M, N], rows: ph.tensor[ph.i32][M],
      columns: ph.tensor[ph.i32][N], halves: ph.tensor[ph.f32][N]):
    which: ph.let = ph.ctx.block.x
    total: ph.tile[ph.i32][R] = 0
    for j in ph.range(0, N, C):
        total += ph.sum(x[which * R:+R, j:+C], axis=1)
    rows[which * R:+R] = total
    down: ph.tile[ph.i32][C] = 0
    half: ph.tile[ph.f32][C] = 0.0
    for i in ph.range(0, M, R):
        down += ph.sum(x[i:+R, which * C:+C], axis=0)
        half += ph.sum(ph.cast(y[i:+R, which * C:+C], ph.f32), axis=0)
    columns[which * C:+C] = down
    halves[which * C:+C] = half
"""

        def run(variant, r, c, m, n):
            x = np.random.default_rng(1).integers(-2**31, 2**31, (m, n)).astype(np.int32)
            y = floats(m, n).astype(np.float16)
            got = variant.run((max(cdiv(m, r), cdiv(n, c)),), x=x, y=y, rows=np.zeros(m, np.int32),
                              columns=np.zeros(n, np.int32), halves=np.zeros(n, np.float32))
            np.testing.assert_array_equal(got["rows"], x.sum(1, dtype=np.int32))
            np.testing.assert_array_equal(got["columns"], x.sum(0, dtype=np.int32))
            np.testing.assert_allclose(got["halves"], y.sum(0, dtype=np.float64), rtol=1e-5, atol=1e-5)

        around_tiles(self, COMPILER, text, ("R", "C"), run)

    def test_argmax_of_rows(self):
        text = """
@ph.kernel
@ph.autotune(R=[4, 3], C=[64, 24])
def k(x: ph.tensor[ph.f32][M, N], top: ph.tensor[ph.i32][M], low: ph.tensor[ph.i32][M], all_of_it: ph.tensor[ph.i64][1]):
    i: ph.let = ph.ctx.block.x * R
    top[i:+R] = ph.argmax(ph.load(x[i:+R, 0:+C], fill=-ph.inf), axis=1)
    low[i:+R] = ph.argmin(ph.load(x[i:+R, 0:+C], fill=ph.inf), axis=-1)
    if ph.ctx.block.x == 0:
        all_of_it[0] = ph.argmax(ph.load(x[0:+R, 0:+C], fill=-ph.inf))
"""

        def run(variant, r, c, m, n):
            x = np.random.default_rng(7).integers(-4, 4, (m, n)).astype(np.float32)
            x[m // 2:, n // 2:n // 2 + 1] = np.nan
            got = variant.run((cdiv(m, r),), x=x, top=np.zeros(m, np.int32), low=np.zeros(m, np.int32),
                              all_of_it=np.zeros(1, np.int64))
            np.testing.assert_array_equal(got["top"], x.argmax(1) if m else [])
            np.testing.assert_array_equal(got["low"], x.argmin(1) if m else [])
            if m:
                part = np.full((r, c), -np.inf, np.float32)
                part[:min(m, r), :n] = x[:r]
                self.assertEqual(got["all_of_it"][0], part.argmax())

        around_tiles(self, COMPILER, text, ("R", "C"), run, columns_of_one_tile)


    def test_cross_entropy_over_rows(self):
        text = """
@ph.kernel
@ph.autotune(C=[64, 24])
def k(x: ph.tensor[ph.f32][M, N], label: ph.tensor[ph.i32][M], out: ph.tensor[ph.f32][M]):
    row: ph.let = ph.ctx.block.x
    t: ph.let = ph.load(x[row, 0:+C], fill=-ph.inf)
    top: ph.let = ph.max(t)
    out[row] = ph.log(ph.sum(ph.exp(t - top))) + top - x[row, label[row]]
"""
        for variant in compiled.variants(COMPILER, text):
            c = variant.constants["C"]
            for m, n in ((0, 1), (5, 1), (3, 7), (7, 13), (4, c - 1), (4, c)):
                x, label = floats(m, n) * 4, (np.arange(m) * 5 % n).astype(np.int32)
                got = variant.run((m,), x=x, label=label, out=np.zeros(m, np.float32))["out"]
                wide = x.astype(np.float64)
                want = np.log(np.exp(wide).sum(1)) - wide[np.arange(m), label]
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)

    def test_prefix_sum_of_a_block(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 21])
def k(x: ph.tensor[ph.f32][N], n: ph.tensor[ph.i32][N], out: ph.tensor[ph.f32][N], counts: ph.tensor[ph.i32][N]):
    i: ph.let = ph.ctx.block.x * B
    out[i:+B] = ph.cumsum(x[i:+B])
    counts[i:+B] = ph.cumsum(n[i:+B], axis=-1)
"""
        for variant in compiled.variants(COMPILER, text):
            block = variant.constants["B"]
            for n in compiled.sizes(block):
                x, counts = floats(n), np.arange(n, dtype=np.int32) * 100000007
                got = variant.run((cdiv(n, block),), x=x, n=counts, out=np.zeros_like(x), counts=np.zeros_like(counts))
                for first in range(0, n, block):
                    part = slice(first, first + block)
                    compiled.assert_scanned(got["out"][part], np.cumsum(x[part]))
                    np.testing.assert_array_equal(got["counts"][part], np.cumsum(counts[part], dtype=np.int32))


class Rules(unittest.TestCase):
    """Each reduction of each type, along each axis and all of them, by section 6 of the language."""

    SHAPE = (3, 5, 37)

    def reduce(self, dtype, array, *calls):
        """For each chip, the results of calls, given as (text, dtype, shape) with t for the array."""
        dims = ", ".join(str(side) for side in array.shape)
        whole = ", ".join(":" for _ in array.shape)
        outs, body = "", f"    t: ph.let = x[{whole}]\n"
        for i, (call, out_dtype, shape) in enumerate(calls):
            outs += f", out{i}: ph.tensor[ph.{out_dtype}][{', '.join(str(side) for side in shape) or 1}]"
            body += f"    out{i}[{', '.join(':' for _ in shape) or 0}] = {call}\n"
        text = f"@ph.kernel\ndef k(x: ph.tensor[ph.{dtype}][{dims}]{outs}):\n{body}"
        arrays = {f"out{i}": np.zeros(shape or (1,), NUMPY[out]) for i, (_, out, shape) in enumerate(calls)}
        for variant in compiled.variants(COMPILER, text):
            got = variant.run((1,), x=array, **arrays)
            yield [got[f"out{i}"].reshape(shape) for i, (_, _, shape) in enumerate(calls)]

    def test_types_and_axes(self):
        generator = np.random.default_rng(11)
        for dtype, result in (("i8", "i32"), ("u16", "i32"), ("bool", "i32"), ("i64", "i64"), ("f32", "f32"), ("f64", "f64")):
            if dtype[0] == "f":
                x = (generator.integers(-8, 8, self.SHAPE) / 4).astype(NUMPY[dtype])  # sums are exact
            else:
                x = generator.integers(0, 2 if dtype == "bool" else 120, self.SHAPE).astype(NUMPY[dtype])
            for axis in (None, 0, 1, -1):
                shape = x.sum(axis).shape
                kept = x.max(axis, keepdims=True)
                asked = "" if axis is None else f", axis={axis}"
                calls = [(f"ph.sum(t{asked})", result, shape), (f"ph.max(t{asked}, keepdims=True)", dtype, kept.shape),
                         (f"ph.min(t{asked})", dtype, shape), (f"ph.any(t{asked})", "bool", shape),
                         (f"ph.all(t{asked})", "bool", shape), (f"ph.argmin(t{asked})", "i32", shape),
                         (f"ph.argmax(t{asked})", "i32", shape),
                         (f"ph.mean(t{asked})", "f64" if dtype == "f64" else "f32", shape)]
                want = [x.sum(axis, dtype=NUMPY[result]), kept, x.min(axis), x.any(axis), x.all(axis), x.argmin(axis),
                        x.argmax(axis)]
                for *exact, mean in self.reduce(dtype, x, *calls):
                    for got, wanted, (call, _, _) in zip(exact, want, calls):
                        np.testing.assert_array_equal(got, wanted, f"{call} of {dtype}")
                    np.testing.assert_allclose(mean, x.mean(axis, dtype=np.float64), rtol=1e-6, atol=1e-7)

    def test_several_axes(self):
        x = np.random.default_rng(17).integers(-9, 9, self.SHAPE).astype(np.int32)
        for axis in ((0, 2), (-1, 1), (1,), (2, 0, 1), ()):
            kept = x.sum(axis, keepdims=True)
            calls = [(f"ph.sum(t, axis={axis})", "i32", x.sum(axis).shape),
                     (f"ph.max(t, axis={axis}, keepdims=True)", "i32", kept.shape),
                     (f"ph.mean(t, axis={axis})", "f32", x.sum(axis).shape)]
            for total, most, mean in self.reduce("i32", x, *calls):
                np.testing.assert_array_equal(total, x.sum(axis))
                np.testing.assert_array_equal(most, x.max(axis, keepdims=True))
                np.testing.assert_allclose(mean, x.mean(axis), rtol=1e-6)

    def test_half_floats_accumulate_in_f32_and_round_once(self):
        x = np.full((4, 3000), 0.1, np.float16)
        for got, in self.reduce("f16", x, ("ph.sum(t, axis=1)", "f16", (4,))):
            np.testing.assert_array_equal(got, x.sum(1, dtype=np.float32).astype(np.float16))
        for got, in self.reduce("f16", x, ("ph.mean(t)", "f16", ())):
            np.testing.assert_array_equal(got, np.float16(0.1))

    def test_scans(self):
        x = np.random.default_rng(5).integers(0, 250, self.SHAPE)
        for dtype, result in (("u8", "i32"), ("f32", "f32"), ("f64", "f64"), ("i64", "i64")):
            typed = x.astype(NUMPY[dtype]) / (3 if dtype[0] == "f" else 1)
            typed = typed.astype(NUMPY[dtype])
            for axis in (None, 0, 1, -1):
                want = np.cumsum(typed, axis, dtype=NUMPY[result])
                asked = "" if axis is None else f", axis={axis}"
                for got, in self.reduce(dtype, typed, (f"ph.cumsum(t{asked})", result, want.shape)):
                    compiled.assert_scanned(got, want)

    def test_products_wrap_and_small_ones_are_i32(self):
        x = np.random.default_rng(3).integers(-9, 9, (7, 11)).astype(np.int8)
        for got, in self.reduce("i8", x, ("ph.prod(t, axis=0)", "i32", (11,))):
            np.testing.assert_array_equal(got, x.prod(0, dtype=np.int32))

    def test_nans_and_zeros(self):
        x = floats(4, 21)
        x[1, 20] = x[2, 0] = np.nan
        x[3] = -0.0
        for got, in self.reduce("f32", x, ("ph.max(t, axis=1)", "f32", (4,))):
            np.testing.assert_array_equal(got, x.max(1))
        for got, in self.reduce("f32", x, ("ph.min(t, axis=0)", "f32", (21,))):
            np.testing.assert_array_equal(got, x.min(0))
        for got, in self.reduce("f32", x[3:], ("ph.sum(t)", "f32", ())):
            self.assertTrue(np.signbit(got))


NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32,
         "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}


class Nvidia(unittest.TestCase):

    def test_reductions_and_scans_are_lowered(self):
        kernel = """
@ph.kernel
def k(x: ph.tensor[ph.f32][4, 8], out: ph.tensor[ph.f32][4]):
    out[:] = 1.0 + %s
"""
        for part in ("ph.sum(x[:, :], axis=1)", "ph.max(x[:, :])", "ph.cumsum(x[:, 0])", "ph.mean(x[:, :], axis=1)"):
            self.assertEqual("", compiled.refusal(COMPILER, kernel % part, "sm_90"))


if __name__ == "__main__":
    unittest.main()
