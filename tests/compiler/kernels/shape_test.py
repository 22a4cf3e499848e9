# SPDX-License-Identifier: Apache-2.0
"""Kernels over tiles of rank 2 to 4, gathers and scatters, against NumPy at extents around the tiles."""

import sys
import unittest

import numpy as np

import compiled
from compiled import around_tiles, cdiv, floats

COMPILER = sys.argv.pop(1)


class Shapes(unittest.TestCase):

    def test_row_and_column_vectors_broadcast(self):
        text = """
@ph.kernel
@ph.autotune(BM=[8, 3], BN=[64, 5])
def k(x: ph.tensor[ph.f32][M, N], s: ph.tensor[ph.f32][M], b: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    out[i:+BM, j:+BN] = x[i:+BM, j:+BN] * (s[i:+BM] / 3.0)[:, None] + b[j:+BN] + ph.iota(BN)[None, :]
"""

        def run(variant, bm, bn, m, n):
            x, s, b = floats(m, n), floats(m, seed=2), floats(n, seed=3)
            grid = (cdiv(m, bm), cdiv(n, bn))
            got = variant.run(grid, x=x, s=s, b=b, out=np.zeros((m, n), np.float32))["out"]
            want = x * (s / np.float32(3))[:, None] + b + (np.arange(n) % bn).astype(np.float32)[None, :]
            np.testing.assert_array_equal(got, want)

        around_tiles(self, COMPILER, text, ("BM", "BN"), run)

    def test_transpose(self):
        for dtype, np_dtype in (("f32", np.float32), ("u8", np.uint8), ("f64", np.float64), ("i16", np.int16)):
            text = """
@ph.kernel
@ph.autotune(BM=[32, 7], BN=[48, 5])
def k(x: ph.tensor[ph.T][M, N], out: ph.tensor[ph.T][N, M]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    out[j:+BN, i:+BM] = ph.transpose(x[i:+BM, j:+BN])
""".replace("ph.T", "ph." + dtype)

            def run(variant, bm, bn, m, n):
                x = (np.arange(m * n).reshape(m, n) % 251).astype(np_dtype)
                out = np.zeros((n, m), np_dtype)
                got = variant.run((cdiv(m, bm), cdiv(n, bn)), x=x, out=out)["out"]
                np.testing.assert_array_equal(got, x.T)

            around_tiles(self, COMPILER, text, ("BM", "BN"), run)

    def test_five_point_stencil(self):
        text = """
@ph.kernel
@ph.autotune(BM=[8, 3], BN=[32, 17])
def k(x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    sides: ph.let = x[i - 1:+BM, j:+BN] + x[i + 1:+BM, j:+BN] + x[i:+BM, j - 1:+BN] + x[i:+BM, j + 1:+BN]
    out[i:+BM, j:+BN] = 0.25 * sides - x[i:+BM, j:+BN]
"""

        def run(variant, bm, bn, m, n):
            x = floats(m, n)
            p = np.pad(x, 1)
            want = np.float32(0.25) * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) - x
            got = variant.run((cdiv(m, bm), cdiv(n, bn)), x=x, out=np.zeros_like(x))["out"]
            np.testing.assert_array_equal(got, want)

        around_tiles(self, COMPILER, text, ("BM", "BN"), run)

    def test_convolution(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.f32][N], w: ph.tensor[ph.f32][K], out: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x * B
    total: ph.tile[ph.f32][B] = 0.0
    for tap in ph.range(ph.extent(w, 0)):
        total += w[tap] * x[i + tap - 2:+B]
    out[i:+B] = total
"""
        for variant in compiled.variants(COMPILER, text):
            block = variant.constants["B"]
            for n in compiled.sizes(block):
                x, w = floats(n), floats(5, seed=2)
                padded = np.pad(x, 2)
                want = np.zeros(n, np.float32)
                for tap in range(5):
                    want += w[tap] * padded[tap:tap + n]
                got = variant.run((cdiv(n, block),), x=x, w=w, out=np.zeros(n, np.float32))["out"]
                np.testing.assert_array_equal(got, want)

    def test_masks_and_fills(self):
        text = """
@ph.kernel
@ph.autotune(BM=[4, 3], BN=[16, 9])
def k(x: ph.tensor[ph.i32][M, N], rows: ph.tensor[ph.bool][M], out: ph.tensor[ph.i32][M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    odd: ph.let = ph.iota(BN) % 2 == 1
    v: ph.let = ph.load(x[i - 1:+BM, j + 2:+BN], fill=-5, mask=rows[i:+BM][:, None])
    ph.store(out[i:+BM, j:+BN], ph.where(odd, v, 2 * v), mask=(v != 7) & odd[None, :] | (v > 0))
"""

        def run(variant, bm, bn, m, n):
            x = np.random.default_rng(5).integers(-9, 9, (m, n)).astype(np.int32)
            rows = np.arange(m) % 3 != 1
            p = np.pad(x, ((1, 0), (0, 2)), constant_values=-5)[:m, 2:]
            v = np.where(rows[:, None], p, -5)
            odd = np.arange(n) % bn % 2 == 1
            want = np.where((v != 7) & odd | (v > 0), np.where(odd, v, 2 * v), 77)
            got = variant.run((cdiv(m, bm), cdiv(n, bn)), x=x, rows=rows, out=np.full((m, n), 77, np.int32))["out"]
            np.testing.assert_array_equal(got, want)

        around_tiles(self, COMPILER, text, ("BM", "BN"), run)

    def test_tile_variables_over_a_loop(self):
        text = """
@ph.kernel
@ph.autotune(BM=[8, 5], BN=[32, 6])
def k(x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][M, BN_OUT]):
    i: ph.let = ph.ctx.block.x * BM
    total: ph.tile[ph.f32][BM, BN] = 0.0
    seen: ph.tile[ph.i32][BM, 1] = 0
    for j in ph.range(0, N, BN):
        total += x[i:+BM, j:+BN]
        seen += 1
    out[i:+BM, 0:+BN] = total * seen
"""

        def run(variant, bm, bn, m, n):
            x = floats(m, n)
            want = np.zeros((m, bn), np.float32)
            turns = cdiv(n, bn)
            for j in range(0, n, bn):
                part = x[:, j:j + bn]
                want[:, :part.shape[1]] += part
            got = variant.run((cdiv(m, bm),), x=x, out=np.full((m, bn), 9, np.float32))["out"]
            np.testing.assert_array_equal(got, want * np.float32(turns))

        around_tiles(self, COMPILER, text, ("BM", "BN"), run)

    def test_four_sides_in_another_order(self):
        text = """
@ph.kernel
@ph.autotune(B=[4, 3])
def k(x: ph.tensor[ph.f32][N, 3, 5, 9], out: ph.tensor[ph.f32][9, N, 5, 3], same: ph.tensor[ph.f32][3, N, 5, 9]):
    i: ph.let = ph.ctx.block.x * B
    t: ph.let = x[i:+B, :, :, :]
    out[:, i:+B, :, :] = ph.transpose(t, (3, 0, 2, 1)) * 2.0
    same[:, i:+B, :, :] = ph.transpose(t, (1, 0, 2, 3))
"""
        for variant in compiled.variants(COMPILER, text):
            block = variant.constants["B"]
            for n in compiled.sizes(block):
                x = floats(n, 3, 5, 9)
                out, same = np.zeros((9, n, 5, 3), np.float32), np.zeros((3, n, 5, 9), np.float32)
                got = variant.run((cdiv(n, block),), x=x, out=out, same=same)
                np.testing.assert_array_equal(got["out"], 2 * x.transpose(3, 0, 2, 1))
                np.testing.assert_array_equal(got["same"], x.transpose(1, 0, 2, 3))

    def test_reshape(self):
        text = """
@ph.kernel
@ph.autotune(B=[8, 5])
def k(x: ph.tensor[ph.f32][N, 6], out: ph.tensor[ph.f32][N, 2, 3], turned: ph.tensor[ph.f32][6, N]):
    i: ph.let = ph.ctx.block.x * B
    t: ph.let = x[i:+B, :]
    out[i:+B, :, :] = ph.reshape(t + 1.0, B, 2, -1)
    flat: ph.let = ph.reshape(ph.transpose(t), (6 * B,))
    turned[:, i:+B] = ph.reshape(flat, 6, B)
"""
        for variant in compiled.variants(COMPILER, text):
            block = variant.constants["B"]
            for n in compiled.sizes(block):
                x = floats(n, 6)
                out, turned = np.zeros((n, 2, 3), np.float32), np.zeros((6, n), np.float32)
                got = variant.run((cdiv(n, block),), x=x, out=out, turned=turned)
                np.testing.assert_array_equal(got["out"], (x + 1).reshape(n, 2, 3))
                np.testing.assert_array_equal(got["turned"], x.T)

    def test_elements_beside_slices(self):
        text = """
@ph.kernel
@ph.autotune(B=[16, 5])
def k(x: ph.tensor[ph.f64][M, N, 4], out: ph.tensor[ph.f64][M, N]):
    row: ph.let = ph.ctx.block.x
    j: ph.let = ph.ctx.block.y * B
    out[row, j:+B] = x[row, j:+B, 1] + x[M - 1 - row, j:+B, 3]
"""
        for variant in compiled.variants(COMPILER, text):
            block = variant.constants["B"]
            for n in compiled.sizes(block):
                x = floats(3, n, 4).astype(np.float64)
                got = variant.run((3, cdiv(n, block)), x=x, out=np.zeros((3, n)))["out"]
                np.testing.assert_array_equal(got, x[:, :, 1] + x[::-1, :, 3])

    def test_rows_of_an_embedding(self):
        text = """
@ph.kernel
@ph.autotune(B=[8, 3], D=[16, 7])
def k(table: ph.tensor[ph.f32][V, N], rows: ph.tensor[ph.i32][M], out: ph.tensor[ph.f32][M, N]):
    i: ph.let = ph.ctx.block.x * B
    j: ph.let = ph.ctx.block.y * D
    out[i:+B, j:+D] = table[rows[i:+B], j:+D]
"""

        def run(variant, bm, bn, m, n):
            table = floats(11, n)
            rows = np.random.default_rng(3).integers(-3, 14, m).astype(np.int32)
            inside = (rows >= 0) & (rows < 11)
            want = np.where(inside[:, None], table[np.clip(rows, 0, 10)], 0)
            got = variant.run((cdiv(m, bm), cdiv(n, bn)), table=table, rows=rows, out=np.zeros((m, n), np.float32))
            np.testing.assert_array_equal(got["out"], want)

        around_tiles(self, COMPILER, text, ("B", "D"), run)

    def test_pairs_of_index_tiles(self):
        text = """
@ph.kernel
@ph.autotune(B=[8, 5])
def k(x: ph.tensor[ph.f32][7, 9], r: ph.tensor[ph.u8][N], c: ph.tensor[ph.i64][N], out: ph.tensor[ph.f32][N],
      whole: ph.tensor[ph.f32][N, 9], back: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x * B
    rows: ph.let = r[i:+B]
    out[i:+B] = x[rows, c[i:+B]]
    whole[i:+B, :] = x[rows[:, None], ph.iota(9)[None, :]]
    back[i + (B - 1 - ph.iota(B))] = x[rows, 2]
"""
        for variant in compiled.variants(COMPILER, text):
            block = variant.constants["B"]
            for n in compiled.sizes(block):
                x = floats(7, 9)
                r, c = (np.arange(n) * 5 % 7).astype(np.uint8), (np.arange(n) * 4 % 9).astype(np.int64)
                zeros = np.zeros(n, np.float32)
                got = variant.run((cdiv(n, block),), x=x, r=r, c=c, out=zeros, whole=np.zeros((n, 9), np.float32), back=zeros)
                np.testing.assert_array_equal(got["out"], x[r, c])
                np.testing.assert_array_equal(got["whole"], x[r])
                padded = np.concatenate([x[r, 2], np.full(-n % block, x[0, 2])])
                want = padded.reshape(-1, block)[:, ::-1].reshape(-1)[:n] if n else zeros
                np.testing.assert_array_equal(got["back"], want)


class Nvidia(unittest.TestCase):

    def test_moves_are_lowered(self):
        kernel = """
@ph.kernel
def k(x: ph.tensor[ph.f32][4, 8], out: ph.tensor[ph.f32][8, 4]):
    out[:, :] = %s
"""
        for part in ("ph.transpose(x[:, :])", "ph.reshape(x[:, :], 8, 4)", "ph.argmax(x[:, :])"):
            self.assertEqual("", compiled.refusal(COMPILER, kernel % part, "sm_80"))

    def test_broadcasts_are_lowered(self):
        kernel = """
@ph.kernel
def k(x: ph.tensor[ph.f32][4], out: ph.tensor[ph.f32][4, 8]):
    out[:, :] = x[:][:, None] + ph.iota(8)
"""
        self.assertEqual("", compiled.refusal(COMPILER, kernel, "sm_80"))


if __name__ == "__main__":
    unittest.main()
