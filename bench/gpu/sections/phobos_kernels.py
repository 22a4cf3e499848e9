# SPDX-License-Identifier: Apache-2.0
"""The kernels that are compared with Triton's, their references and grid."""

from __future__ import annotations

import phobos.lang as ph


def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


def added(x, y, out):
    return {"out": x + y}


@ph.kernel(key=("N",), reference=added)
@ph.autotune(BLOCK=[256, 4096])
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]


def scaled(alpha, x, y):
    return {"y": alpha * x + y}


@ph.kernel(key=("N",), reference=scaled)
@ph.autotune(BLOCK=[256, 4096])
def saxpy(alpha: ph.f32, x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    y[base:+BLOCK] = alpha * x[base:+BLOCK] + y[base:+BLOCK]


def gelu_of(x, out):
    import concurrent.futures
    import math

    import numpy as np

    # NumPy has no erf; a table of it between -6 and 6 is right to 1e-9 by its own slope and curve.
    places = np.linspace(-6.0, 6.0, 1 << 16)
    table = np.array([math.erf(place) for place in places])
    answer = np.empty_like(x)

    def fill(part):
        at = np.clip(x[part].astype(np.float64) * 0.70710678, -6.0, 6.0)
        nearest = np.rint((at + 6.0) * ((len(places) - 1) / 12.0)).astype(np.int64)
        step, place = at - places[nearest], places[nearest]
        slope = 2.0 / math.sqrt(math.pi) * np.exp(-place * place)
        erf = table[nearest] + slope * step * (1.0 - place * step)
        answer[part] = 0.5 * x[part] * (1.0 + erf)

    size = 1 << 18
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(fill, [slice(at, at + size) for at in range(0, len(x), size)]))
    return {"out": answer}


@ph.kernel(key=("N",), reference=gelu_of)
@ph.autotune(BLOCK=[256, 4096])
def gelu(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    v: ph.let = x[base:+BLOCK]
    out[base:+BLOCK] = 0.5 * v * (1.0 + ph.erf(v * 0.70710678))


# Brings the worker up without compiling anything of the kernels above.
@ph.kernel(key=("N",), reference=lambda x, out: {"out": x * 3})
@ph.autotune(BLOCK=[256])
def tripled(x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] * 3


@ph.kernel(key=("N",), reference=lambda x, out: {"out": -x})
@ph.autotune(BLOCK=[256])
def negated(x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = -x[base:+BLOCK]
