# SPDX-License-Identifier: Apache-2.0
"""Kernels that do the same to each element, in every float type, against NumPy at extents around the tiles."""

import itertools
import math
import sys
import unittest

import numpy as np

import compiled
from compiled import bf16, cdiv, floats, from_bf16

COMPILER = sys.argv.pop(1)

# By type: to its array from f32, back to f32, and how far off a result that is rounded once may be.
TYPES = {"f32": (lambda x: x, lambda x: x, 2e-6), "f16": (lambda x: x.astype(np.float16), lambda x: x.astype(np.float32), 2e-3),
         "bf16": (bf16, from_bf16, 2e-2)}


def each(test, text, run):
    for variant in compiled.variants(COMPILER, text):
        for n in compiled.sizes(variant.constants["B"]):
            with test.subTest(chip=variant.chip, constants=variant.constants, n=n):
                run(variant, variant.constants["B"], n)


class Kernels(unittest.TestCase):

    def test_vector_add(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x * B
    out[i:+B] = x[i:+B] + y[i:+B]
"""

        def run(variant, b, n):
            x, y = floats(n), floats(n, seed=2)
            got = variant.run((cdiv(n, b),), x=x, y=y, out=np.zeros_like(x))["out"]
            np.testing.assert_array_equal(got, x + y)

        each(self, text, run)

    def test_saxpy_with_scalars(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(a: ph.f32, x: ph.tensor[ph.f32][N], b: ph.i32, y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x * B
    if b > 0:
        out[i:+B] = a * x[i:+B] + y[i:+B]
    else:
        out[i:+B] = b
"""

        def run(variant, b, n):
            x, y, a = floats(n), floats(n, seed=2), np.float32(1.7)
            for sign in (3, -2):
                got = variant.run((cdiv(n, b),), a=a, x=x, b=np.int32(sign), y=y, out=np.zeros_like(x))["out"]
                np.testing.assert_array_equal(got, a * x + y if sign > 0 else np.full(n, sign, np.float32))

        each(self, text, run)

    def test_gelu_and_relu(self):
        for dtype, (to, back, rtol) in TYPES.items():
            text = """
@ph.fn
def gelu(v):
    wide: ph.let = ph.cast(v, ph.f32)
    return 0.5 * wide * (1.0 + ph.erf(wide * 0.70710678))

@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.T][N], smooth: ph.tensor[ph.T][N], cut: ph.tensor[ph.T][N]):
    i: ph.let = ph.ctx.block.x * B
    smooth[i:+B] = gelu(x[i:+B])
    cut[i:+B] = ph.maximum(x[i:+B], 0.0)
""".replace("ph.T", "ph." + dtype)

            def run(variant, b, n):
                x = to(floats(n) * 3)
                got = variant.run((cdiv(n, b),), x=x, smooth=np.zeros_like(x), cut=np.zeros_like(x))
                wide = back(x).astype(np.float64)
                want = [0.5 * v * math.erfc(-v * 0.70710678) for v in wide]
                np.testing.assert_allclose(back(got["smooth"]), want, rtol=rtol, atol=1e-6 if dtype == "f32" else rtol * 1e-2)
                np.testing.assert_array_equal(back(got["cut"]), np.maximum(wide, 0))

            each(self, text, run)


class Loops(unittest.TestCase):

    def test_ranges_longer_than_any_i64(self):
        lowest, largest = -2**63, 2**63 - 1
        cases = [(lowest, largest, 2**62), (largest, lowest, -largest), (largest, lowest, lowest), (lowest, largest, 1),
                 (largest, lowest, -1), (lowest, largest, largest), (5, 5, 1), (5, 4, 1), (0, 9, 0), (-3, 8, 4)]
        body = """
    turns: ph.var = 0
    for i in ph.range(lo, hi%s):
        if turns == 9:
            break
        out[turns] = i
        turns += 1
    count[0] = turns
"""
        signature = """
@ph.kernel
def k(lo: ph.i64, hi: ph.i64, step: ph.i64, out: ph.tensor[ph.i64][N], count: ph.tensor[ph.i32][1]):
"""

        def check(variant, lo, hi, step):
            got = variant.run((1,), lo=np.int64(lo), hi=np.int64(hi), step=np.int64(step), out=np.zeros(9, np.int64),
                              count=np.zeros(1, np.int32))
            want = list(itertools.islice(range(lo, hi, step), 9)) if step else []
            self.assertEqual(got["count"][0], len(want), (lo, hi, step))
            np.testing.assert_array_equal(got["out"][:len(want)], want)

        for variant in compiled.variants(COMPILER, signature + body % ", step"):
            for lo, hi, step in cases:
                check(variant, lo, hi, step)
        for lo, hi, step in cases[:6]:
            written = f", {step}" if step != lowest else ", -9223372036854775807 - 1"
            for variant in compiled.variants(COMPILER, signature + body % (written + ", unroll=4")):
                check(variant, lo, hi, step)


if __name__ == "__main__":
    unittest.main()
