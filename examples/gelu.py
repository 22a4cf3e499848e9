#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A fused gelu, out = gelu(x) * gate, in f32, f16 and bf16: a function shared by three kernels.

python3 gelu.py [N]
"""

from __future__ import annotations

import math
import sys

import numpy as np

import phobos.lang as ph

HALF_ROOT = 0.7071067811865476


@ph.fn
def gelu(v):
    return 0.5 * v * (1.0 + ph.erf(v * HALF_ROOT))


def reference(x, gate, out):
    """In f64, then rounded to the type of `out`. For bf16 NumPy has f32 arrays."""
    wide = x.astype(np.float64)
    erf = np.vectorize(math.erf, otypes=[np.float64])(wide * HALF_ROOT)
    return {"out": (0.5 * wide * (1 + erf) * gate).astype(out.dtype)}


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def gelu_f32(x: ph.tensor[ph.f32][N], gate: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    at: ph.let = ph.ctx.block.x * BLOCK
    out[at:+BLOCK] = gelu(x[at:+BLOCK]) * gate[at:+BLOCK]


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def gelu_f16(x: ph.tensor[ph.f16][N], gate: ph.tensor[ph.f16][N], out: ph.tensor[ph.f16][N]):
    at: ph.let = ph.ctx.block.x * BLOCK
    # Computed in f32 and rounded once, by the store.
    out[at:+BLOCK] = gelu(ph.cast(x[at:+BLOCK], ph.f32)) * gate[at:+BLOCK]


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def gelu_bf16(x: ph.tensor[ph.bf16][N], gate: ph.tensor[ph.bf16][N], out: ph.tensor[ph.bf16][N]):
    at: ph.let = ph.ctx.block.x * BLOCK
    out[at:+BLOCK] = gelu(ph.cast(x[at:+BLOCK], ph.f32)) * gate[at:+BLOCK]


def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


def main(n):
    x = np.linspace(-4, 4, n, dtype=np.float32)
    gate = np.full(n, 0.5, np.float32)
    print(gelu_f32.tune(grid, x, gate, np.zeros_like(x)))
    half = [array.astype(np.float16) for array in (x, gate)]
    print(gelu_f16.tune(grid, *half, np.zeros(n, np.float16)))
    # A bf16 parameter takes the bits as uint16, or an array of ml_dtypes.bfloat16.
    bits = [ph.to_bf16(array) for array in (x, gate)]
    print(gelu_bf16.tune(grid, *bits, np.zeros(n, np.uint16)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 20)
