# SPDX-License-Identifier: Apache-2.0
"""Kernels that change what is there, at random or not: atomics, scatters, updates in place, random numbers."""

import sys
import unittest

import numpy as np

import compiled
from compiled import cdiv, floats, run_recorded

COMPILER = sys.argv.pop(1)


def each(test, text, constant, run):
    """Calls run(variant, tile, n) for each variant at extents around its tile."""
    for variant in compiled.variants(COMPILER, text):
        tile = variant.constants[constant]
        for n in compiled.sizes(tile):
            with test.subTest(chip=variant.chip, constants=variant.constants, n=n):
                run(variant, tile, n)


def philox(seed, index):
    """The first word of Philox 4x32-10: counter (low and high half of index, 0, 0), key the halves of seed."""
    index = np.asarray(index, np.uint64)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    words = [index & low, index >> shift, index * np.uint64(0), index * np.uint64(0)]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, third = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [(third >> shift) ^ words[1] ^ np.uint64(keys[0]), third & low,
                 (first >> shift) ^ words[3] ^ np.uint64(keys[1]), first & low]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return words[0].astype(np.uint32)


class Atomics(unittest.TestCase):

    def test_histogram(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.u8][N], bins: ph.tensor[ph.i32][256]):
    i: ph.let = ph.ctx.block.x * B
    at: ph.let = ph.where(i + ph.iota(B) < N, ph.cast(x[i:+B], ph.i64), -1)
    ph.atomic_add(bins[at], 1)
"""

        def run(variant, b, n):
            x = np.random.default_rng(3).integers(0, 256, n).astype(np.uint8) & 0x73
            start = np.arange(256, dtype=np.int32)
            got = variant.run((cdiv(n, b),), x=x, bins=start)["bins"]
            np.testing.assert_array_equal(got, start + np.bincount(x, minlength=256))

        each(self, text, "B", run)

    def test_every_block_adds_to_one_element(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.f64][N], total: ph.tensor[ph.f64][1], most: ph.tensor[ph.f64][1], ticket: ph.tensor[ph.i32][N]):
    i: ph.let = ph.ctx.block.x * B
    inside: ph.let = i + ph.iota(B) < N
    ph.atomic_add(total[0], ph.sum(x[i:+B]))
    ph.atomic_max(most[0], ph.max(ph.where(inside, x[i:+B], -ph.inf)))
    ph.atomic_xor(ticket[i:+B], 5)
    ph.atomic_or(ticket[i:+B], 16)
    ph.atomic_and(ticket[i:+B], ph.iota(B) + 20)
    ph.atomic_min(ticket[i:+B], 60)
"""

        def run(variant, b, n):
            x = np.random.default_rng(3).integers(-9, 9, n).astype(np.float64)
            start = np.arange(n, dtype=np.int32)
            got = variant.run((cdiv(n, b),), x=x, total=np.ones(1), most=np.full(1, -5.0), ticket=start)
            self.assertEqual(got["total"][0], 1 + x.sum())
            self.assertEqual(got["most"][0], x.max(initial=-5))
            want = np.minimum(((start ^ 5) | 16) & (np.arange(n) % b + 20), 60)
            np.testing.assert_array_equal(got["ticket"], want)

        each(self, text, "B", run)

    def test_a_stream_is_compacted_by_tickets(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.i32][N], count: ph.tensor[ph.i32][1], out: ph.tensor[ph.i32][N], first: ph.tensor[ph.i32][1]):
    i: ph.let = ph.ctx.block.x * B
    keep: ph.let = (i + ph.iota(B) < N) & (x[i:+B] > 0)
    ranks: ph.let = ph.cumsum(keep)
    base: ph.let = ph.atomic_add(count[0], ph.sum(keep))
    at: ph.let = ph.where(keep, base + ranks - 1, -1)
    old: ph.let = ph.atomic_cas(first[0], 0, ph.ctx.block.x + 1)
    if old == 0:
        ph.atomic_add(first[0], 100)
    ph.atomic_add(out[at], x[i:+B])
"""

        def run(variant, b, n):
            x = np.random.default_rng(3).integers(-9, 9, n).astype(np.int32)
            got = variant.run((cdiv(n, b),), x=x, count=np.zeros(1, np.int32), out=np.zeros(n, np.int32),
                              first=np.zeros(1, np.int32))
            kept = x[x > 0]
            self.assertEqual(got["count"][0], len(kept))
            np.testing.assert_array_equal(np.sort(got["out"][:len(kept)]), np.sort(kept))
            # The block that came first, on the host's one thread block 0, and 100 once.
            self.assertIn(got["first"][0], range(101, 101 + cdiv(n, b)) if n else [0])

        each(self, text, "B", run)


class Scatters(unittest.TestCase):

    TEXT = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.f32][N], to: ph.tensor[ph.i32][N], out: ph.tensor[ph.f32][M]):
    i: ph.let = ph.ctx.block.x * B
    at: ph.let = ph.where(i + ph.iota(B) < N, to[i:+B], -1)
    out[at] = x[i:+B]
"""

    def test_unique_places(self):
        def run(variant, b, n):
            x, to = floats(n), np.random.default_rng(3).permutation(2 * n)[:n].astype(np.int32) - 2
            got = variant.run((cdiv(n, b),), x=x, to=to, out=np.full(2 * n, 7, np.float32))["out"]
            want = np.full(2 * n, 7, np.float32)
            want[to[to >= 0]] = x[to >= 0]
            np.testing.assert_array_equal(got, want)

        each(self, self.TEXT, "B", run)

    def test_clashing_places_hold_one_of_the_values(self):
        def run(variant, b, n):
            x, to = np.arange(1, n + 1, dtype=np.float32), (np.arange(n) % 5).astype(np.int32)
            self.assertEqual(variant.verdict, "RACE_VERDICT_UNPROVEN")
            got = variant.run((cdiv(n, b),), x=x, to=to, out=np.zeros(5, np.float32))["out"]
            for place in range(5):
                self.assertIn(got[place], x[to == place] if (to == place).any() else [0])

        each(self, self.TEXT, "B", run)

    def test_a_recording_tells_clashing_places_from_unique_ones(self):
        def run(variant, b, n):
            x, out = np.arange(1, n + 1, dtype=np.float32), np.zeros(2 * n + 5, np.float32)
            unique = np.random.default_rng(3).permutation(2 * n)[:n].astype(np.int32) - 2
            got, is_race = run_recorded(variant, (cdiv(n, b),), x=x, to=unique, out=out)
            want = out.copy()
            want[unique[unique >= 0]] = x[unique >= 0]
            np.testing.assert_array_equal(got["out"], want)
            self.assertFalse(is_race)
            _, is_race = run_recorded(variant, (cdiv(n, b),), x=x, to=np.arange(n, dtype=np.int32) % 5, out=out)
            self.assertEqual(is_race, n > 5)

        each(self, self.TEXT, "B", run)

    def test_clashing_atomics_are_no_race(self):
        def run(variant, b, n):
            x, to = np.arange(1, n + 1, dtype=np.float32), (np.arange(n) % 5).astype(np.int32)
            self.assertEqual(variant.verdict, "RACE_VERDICT_RACE_FREE")
            got = variant.run((cdiv(n, b),), x=x, to=to, out=np.zeros(5, np.float32))["out"]
            np.testing.assert_array_equal(got, [x[to == place].max(initial=0) for place in range(5)])

        each(self, self.TEXT.replace("out[at] = x[i:+B]", "ph.atomic_max(out[at], x[i:+B])"), "B", run)


class Updates(unittest.TestCase):

    def test_in_place(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x * B
    x[i:+B] += y[i:+B]
    x[i:+B] *= 2.0
"""

        def run(variant, b, n):
            x, y = floats(n), floats(n, seed=2)
            np.testing.assert_array_equal(variant.run((cdiv(n, b),), x=x, y=y)["x"], (x + y) * 2)

        each(self, text, "B", run)

    def test_a_persistent_kernel(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N], done: ph.tensor[ph.i32][1]):
    for tile in ph.range(ph.ctx.block.x, ph.cdiv(N, B), ph.ctx.grid.x):
        ph.atomic_add(done[0], 1)
        out[tile * B:+B] = ph.exp2(x[tile * B:+B])
    for tile in ph.range(ph.ctx.block.x - 3, -N // B - 4, -ph.ctx.grid.x):
        ph.atomic_add(done[0], 1000)
"""

        def run(variant, b, n):
            self.assertEqual(variant.verdict, "RACE_VERDICT_RACE_FREE")
            x = np.arange(n, dtype=np.float32) % 9 - 4
            got = variant.run((3,), x=x, out=np.zeros_like(x), done=np.zeros(1, np.int32))
            np.testing.assert_array_equal(got["out"], np.exp2(x))
            falling = sum(len(range(block - 3, -n // b - 4, -3)) for block in range(3))
            self.assertEqual(got["done"][0], cdiv(n, b) + 1000 * falling)

        each(self, text, "B", run)

    def test_blocks_that_draw_their_work(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.i64][N], q: ph.tensor[ph.i32][1], out: ph.tensor[ph.i64][N]):
    tile: ph.var = ph.atomic_add(q[0], ph.cast(ph.ctx.block.x * 0 + 1, ph.i32))
    while tile < ph.cdiv(N, B):
        at: ph.let = tile * B + ph.iota(B)
        ph.atomic_add(out[ph.where(at < N, at, -1)], 3 * x[tile * B:+B])
        tile = ph.atomic_add(q[0], 1)
"""

        def run(variant, b, n):
            x = np.arange(n, dtype=np.int64) << 31
            got = variant.run((4,), x=x, q=np.zeros(1, np.int32), out=x)
            np.testing.assert_array_equal(got["out"], 4 * x)
            self.assertEqual(got["q"][0], cdiv(n, b) + 4)

        each(self, text, "B", run)

    def test_wide_integers_and_bytes(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.i64][N], m: ph.tensor[ph.u8][N], out: ph.tensor[ph.i64][N], bytes: ph.tensor[ph.u8][N]):
    i: ph.let = ph.ctx.block.x * B
    wide: ph.let = x[i:+B] * 3 + m[i:+B]
    out[i:+B] = wide // 7 - (wide % 7 << 40)
    bytes[i:+B] = (m[i:+B] ^ 0x55) + ph.cast(wide >> 3, ph.u8)
"""

        def run(variant, b, n):
            x = np.random.default_rng(5).integers(-2**60, 2**60, n)
            m = np.random.default_rng(6).integers(0, 256, n).astype(np.uint8)
            got = variant.run((cdiv(n, b),), x=x, m=m, out=np.zeros_like(x), bytes=np.zeros_like(m))
            wide = x * 3 + m
            np.testing.assert_array_equal(got["out"], wide // 7 - (wide % 7 << 40))
            np.testing.assert_array_equal(got["bytes"], (m ^ 0x55) + (wide >> 3).astype(np.uint8))

        each(self, text, "B", run)

    def test_doubles(self):
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.f64][N], a: ph.f64, out: ph.tensor[ph.f64][N]):
    i: ph.let = ph.ctx.block.x * B
    t: ph.let = x[i:+B]
    out[i:+B] = ph.sqrt(t * t + a) / 3.0 + t % 0.1
"""

        def run(variant, b, n):
            x = floats(n).astype(np.float64) + 1e-12
            got = variant.run((cdiv(n, b),), x=x, a=np.float64(1 / 3), out=np.zeros(n))["out"]
            np.testing.assert_array_equal(got, np.sqrt(x * x + 1 / 3) / 3 + x % 0.1)

        each(self, text, "B", run)


class Tiles(unittest.TestCase):

    def test_join_and_interleave(self):
        for dtype, np_dtype in (("f32", np.float32), ("u8", np.uint8), ("f64", np.float64), ("bool", np.bool_)):
            text = """
@ph.kernel
@ph.autotune(B=[16, 7])
def k(x: ph.tensor[ph.T][N, 5], y: ph.tensor[ph.T][N, 5], flat: ph.tensor[ph.T][N], both: ph.tensor[ph.T][N, 8],
      pairs: ph.tensor[ph.T][N, 10], line: ph.tensor[ph.T][M], ends: ph.tensor[ph.T][M]):
    i: ph.let = ph.ctx.block.x * B
    both[i:+B, :] = ph.join(x[i:+B, :], y[i:+B, 1:4])
    pairs[i:+B, :] = ph.interleave(x[i:+B, :], y[i:+B, :])
    line[2 * i:+2 * B] = ph.interleave(flat[i:+B], flat[i + 1:+B])
    ends[2 * i:+2 * B] = ph.join(flat[i:+B], flat[i + 1:+B])
""".replace("ph.T", "ph." + dtype)

            def run(variant, b, n):
                values = np.random.default_rng(5).integers(0, 250, (11, n)).astype(np_dtype)
                x, y, flat = values[:5].T.copy(), values[5:10].T.copy(), values[10]
                zero = np.zeros(2 * n, np_dtype)
                got = variant.run((cdiv(n, b),), x=x, y=y, flat=flat, both=np.zeros((n, 8), np_dtype),
                                  pairs=np.zeros((n, 10), np_dtype), line=zero, ends=zero)
                np.testing.assert_array_equal(got["both"], np.concatenate([x, y[:, 1:4]], 1))
                np.testing.assert_array_equal(got["pairs"], np.stack([x, y], 2).reshape(n, 10))
                after = np.append(flat[1:], np.zeros(1, np_dtype))[:n]
                np.testing.assert_array_equal(got["line"], np.stack([flat, after], 1).reshape(-1))
                padded = np.append(flat, np.zeros(b + 1, np_dtype))
                ends = [np.append(padded[i:i + b], padded[i + 1:i + 1 + b]) for i in range(0, n, b)]
                np.testing.assert_array_equal(got["ends"], np.concatenate(ends + [zero[:0]])[:2 * n])

            each(self, text, "B", run)

    def test_dropout_by_counters(self):
        self.assertEqual(int(philox(0, 0)), 0x6627e8d5)  # the published one
        text = """
@ph.kernel
@ph.autotune(B=[64, 24])
def k(x: ph.tensor[ph.f32][N], seed: ph.u64, p: ph.f32, out: ph.tensor[ph.f32][N], bits: ph.tensor[ph.u32][N]):
    i: ph.let = ph.ctx.block.x * B
    r: ph.let = ph.random_u32(seed, i + ph.iota(B))
    bits[i:+B] = r
    chance: ph.let = ph.cast(r >> 8, ph.f32) * (1.0 / 16777216.0)
    out[i:+B] = ph.where(chance >= p, x[i:+B] / (1.0 - p), 0.0)
"""

        def run(variant, b, n):
            x, seed, p = floats(n), 0x9E3779B97F4A7C15, np.float32(0.25)
            got = variant.run((cdiv(n, b),), x=x, seed=np.uint64(seed), p=p, out=np.zeros_like(x),
                              bits=np.zeros(n, np.uint32))
            bits = philox(seed, np.arange(n))
            np.testing.assert_array_equal(got["bits"], bits)
            chance = (bits >> np.uint32(8)).astype(np.float32) * np.float32(1 / 16777216)
            np.testing.assert_array_equal(got["out"], np.where(chance >= p, x / (1 - p), 0).astype(np.float32))

        each(self, text, "B", run)


class Nvidia(unittest.TestCase):

    def test_all_of_it_is_lowered(self):
        text = """
@ph.kernel
def k(x: ph.tensor[ph.T][N], out: ph.tensor[ph.T][N], bits: ph.tensor[ph.u32][N]):
    i: ph.let = ph.ctx.block.x * 64
    old: ph.let = ph.atomic_add(out[i:+64], x[i:+64])
    ph.atomic_max(out[bits[i:+64]], old)
    ph.atomic_cas(out[0], 1, x[0])
    pair: ph.let = ph.interleave(x[i:+32], ph.join(x[i:+16], x[0:+16]))
    bits[i:+64] = ph.random_u32(7, ph.cast(pair, ph.i32))
"""
        for dtype in ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"):
            for chip in ("sm_75", "sm_90"):
                self.assertEqual("", compiled.refusal(COMPILER, text.replace("ph.T", "ph." + dtype), chip), dtype)


if __name__ == "__main__":
    unittest.main()
