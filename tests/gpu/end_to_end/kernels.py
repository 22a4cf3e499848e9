# SPDX-License-Identifier: Apache-2.0
"""The kernels that are tuned on the stand-in card."""

from __future__ import annotations

import phobos.lang as ph


@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[256, 512, 1024, 2048])
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]


@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[256, 512])
def accumulate(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    x[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
