#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Matrix products: c = a @ b in f32, and a layer of f16: gelu(a @ b + bias), summed in f32.

python3 matmul.py [M [N [K]]]
"""

from __future__ import annotations

import math
import sys

import numpy as np

import phobos.lang as ph

HALF_ROOT = 0.7071067811865476


def product(a, b, c):
    return {"c": a @ b}


def layer_reference(a, b, bias, c):
    v = a.astype(np.float64) @ b.astype(np.float64) + bias
    erf = np.vectorize(math.erf, otypes=[np.float64])(v * HALF_ROOT)
    return {"c": (0.5 * v * (1 + erf)).astype(np.float16)}


@ph.kernel(key=("M", "N", "K"), reference=product, rtol=1e-3, atol=1e-3)
@ph.autotune(BM=[64, 128], BN=[64, 128], BK=[16, 32], STAGES=[2, 4])
@ph.launch(256)
def matmul(a: ph.tensor[ph.f32][M, K], b: ph.tensor[ph.f32][K, N], c: ph.tensor[ph.f32][M, N]):
    row: ph.let = ph.ctx.block.y * BM
    column: ph.let = ph.ctx.block.x * BN
    total: ph.tile[ph.f32][BM, BN] = 0.0
    for k in ph.range(0, K, BK, stages=STAGES):
        total += ph.dot(a[row:+BM, k:+BK], b[k:+BK, column:+BN])
    c[row:+BM, column:+BN] = total


@ph.kernel(key=("M", "N", "K"), reference=layer_reference, rtol=1e-2, atol=1e-2)
@ph.autotune(BM=[64, 128], BN=[64, 128], BK=[32, 64], STAGES=[2, 4])
@ph.launch(128)
def layer(a: ph.tensor[ph.f16][M, K], b: ph.tensor[ph.f16][K, N], bias: ph.tensor[ph.f16][N], c: ph.tensor[ph.f16][M, N]):
    row: ph.let = ph.ctx.block.y * BM
    column: ph.let = ph.ctx.block.x * BN
    total: ph.tile[ph.f32][BM, BN] = 0.0
    for k in ph.range(0, K, BK, stages=STAGES):
        total += ph.dot(a[row:+BM, k:+BK], b[k:+BK, column:+BN])
    v: ph.let = total + bias[column:+BN]
    c[row:+BM, column:+BN] = 0.5 * v * (1.0 + ph.erf(v * HALF_ROOT))


def grid(meta):
    return (-(-meta["N"] // meta["BN"]), -(-meta["M"] // meta["BM"]))


def main(m=512, n=512, k=512):
    random = np.random.default_rng(7)
    a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
    print(matmul.tune(grid, a, b, np.zeros((m, n), np.float32)))
    half = [(array / math.sqrt(k)).astype(np.float16) for array in (a, b)]
    bias = random.standard_normal(n, np.float32).astype(np.float16)
    print(layer.tune(grid, *half, bias, np.zeros((m, n), np.float16)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
