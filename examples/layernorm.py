#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layer norm and RMS norm of each row, scaled by a weight (and a bias) for each column.

python3 layernorm.py [ROWS [COLUMNS]]
"""

from __future__ import annotations

import sys

import numpy as np

import phobos.lang as ph

EPSILON = 1e-5


def layernorm_reference(x, weight, bias, out):
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + EPSILON)
    return {"out": (centred / deviation * weight + bias).astype(np.float32)}


def rmsnorm_reference(x, weight, out):
    wide = x.astype(np.float64)
    size = np.sqrt((wide * wide).mean(axis=1, keepdims=True) + EPSILON)
    return {"out": (wide / size * weight).astype(np.float32)}


@ph.kernel(key=("C",), reference=layernorm_reference)
@ph.autotune(BLOCK=(16384, 8192, 4096, 2048, 1024), THREADS=[128, 512])
@ph.launch("THREADS")
@ph.constraint("BLOCK >= C")
def layernorm(x: ph.tensor[ph.f32][R, C], weight: ph.tensor[ph.f32][C], bias: ph.tensor[ph.f32][C],
              out: ph.tensor[ph.f32][R, C]):
    row: ph.let = ph.ctx.block.x
    v: ph.let = x[row, 0:+BLOCK]
    # Behind the row's end there are zeros: they add nothing to a sum, but are no part of the row.
    mean: ph.let = ph.sum(v) / C
    centred: ph.let = ph.where(ph.iota(BLOCK) < C, v - mean, 0.0)
    scale: ph.let = 1.0 / ph.sqrt(ph.sum(centred * centred) / C + EPSILON)
    out[row, 0:+BLOCK] = centred * scale * weight[0:+BLOCK] + bias[0:+BLOCK]


@ph.kernel(key=("C",), reference=rmsnorm_reference)
@ph.autotune(BLOCK=(16384, 8192, 4096, 2048, 1024), THREADS=[128, 512])
@ph.launch("THREADS")
@ph.constraint("BLOCK >= C")
def rmsnorm(x: ph.tensor[ph.f32][R, C], weight: ph.tensor[ph.f32][C], out: ph.tensor[ph.f32][R, C]):
    row: ph.let = ph.ctx.block.x
    v: ph.let = x[row, 0:+BLOCK]
    scale: ph.let = 1.0 / ph.sqrt(ph.sum(v * v) / C + EPSILON)
    out[row, 0:+BLOCK] = v * scale * weight[0:+BLOCK]


def grid(meta):
    return (meta["R"],)


def main(rows=4096, columns=1024):
    random = np.random.default_rng(7)
    x = random.standard_normal((rows, columns), np.float32)
    weight, bias = random.standard_normal((2, columns), np.float32)
    print(layernorm.tune(grid, x, weight, bias, np.zeros_like(x)))
    print(rmsnorm.tune(grid, x, weight, np.zeros_like(x)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
