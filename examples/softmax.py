#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Softmax of each row: one tile a row where a row fits one, else in two passes over pieces of it.

python3 softmax.py [ROWS [COLUMNS]]
"""

from __future__ import annotations

import sys

import numpy as np

import phobos.lang as ph


def reference(x, out):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"out": e / e.sum(axis=1, keepdims=True)}


@ph.kernel(key=("C",), reference=reference)
@ph.autotune(BLOCK=(16384, 8192, 4096, 2048, 1024), THREADS=[128, 512])
@ph.launch("THREADS")
@ph.constraint("BLOCK >= C")
def softmax(x: ph.tensor[ph.f32][R, C], out: ph.tensor[ph.f32][R, C]):
    row: ph.let = ph.ctx.block.x
    # What lies behind the row's end changes neither the largest element nor the sum.
    v: ph.let = ph.load(x[row, 0:+BLOCK], fill=-ph.inf)
    e: ph.let = ph.exp(v - ph.max(v))
    out[row, 0:+BLOCK] = e / ph.sum(e)


@ph.kernel(key=("C",), reference=reference)
@ph.autotune(BLOCK=[256, 4096], THREADS=[64, 512])
@ph.launch("THREADS")
def softmax_looped(x: ph.tensor[ph.f32][R, C], out: ph.tensor[ph.f32][R, C]):
    row: ph.let = ph.ctx.block.x
    high: ph.f32 = -ph.inf
    total: ph.f32 = 0.0
    for c in ph.range(0, C, BLOCK):
        v: ph.let = ph.load(x[row, c:+BLOCK], fill=-ph.inf)
        higher: ph.let = ph.maximum(high, ph.max(v))
        # The sum so far was taken of e ** (x - high).
        total = total * ph.exp(high - higher) + ph.sum(ph.exp(v - higher))
        high = higher
    for c in ph.range(0, C, BLOCK):
        out[row, c:+BLOCK] = ph.exp(x[row, c:+BLOCK] - high) / total


def grid(meta):
    return (meta["R"],)


def main(rows=4096, columns=1823):
    x = np.random.default_rng(7).standard_normal((rows, columns), np.float32)
    for kernel in (softmax, softmax_looped):
        print(kernel.tune(grid, x, np.zeros_like(x)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
