# SPDX-License-Identifier: Apache-2.0
"""The kernels of the acceptance tests. `add` is the requirements' own example, word for word."""

from __future__ import annotations

import os

import phobos.lang as ph


def reference(x, y, out):
    return {"out": x + y}


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]


def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 1024, 4096])
def three(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    out[ph.ctx.block.x * BLOCK : +BLOCK] = (
        x[ph.ctx.block.x * BLOCK : +BLOCK] + y[ph.ctx.block.x * BLOCK : +BLOCK]
    )


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[4096, 256])
def decreasing(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    out[ph.ctx.block.x * BLOCK : +BLOCK] = (
        x[ph.ctx.block.x * BLOCK : +BLOCK] + y[ph.ctx.block.x * BLOCK : +BLOCK]
    )


# Without a reference on the decorator. Its first choice is wrong on purpose, so that what a launch
# takes shows in the numbers.
@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[1024], WRONG_BY=[1.0, 0.0])
def plain(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK] + WRONG_BY


# The same with one.
@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[1024], WRONG_BY=[1.0, 0.0])
def checked(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK] + WRONG_BY


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[1024], WRONG_BY=[1.0, 2.0])
def hopeless(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK] + WRONG_BY


# Every block writes the first elements.
@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[256, 512])
def racing(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    out[0:+BLOCK] = x[ph.ctx.block.x * BLOCK : +BLOCK]


# Where a block writes is no linear function of its number, so nothing is proved about it.
@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[256, 512])
def squares(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK]


@ph.kernel(key=("N",), reference=lambda x: {"x": x + x})
@ph.autotune(BLOCK=[256, 512])
def double(x: ph.tensor[ph.f32][N]):
    x[ph.ctx.block.x * BLOCK : +BLOCK] += x[ph.ctx.block.x * BLOCK : +BLOCK]


def arrays(n):
    import numpy as np

    x = np.arange(n, dtype=np.float32) / 7
    return x, np.cos(x), np.zeros(n, np.float32)


def never(*arguments):
    """A reference that must not be called."""
    raise AssertionError("the reference was called")


def count(path):
    """A reference that counts its calls in a file, across processes."""

    def counting(x, y, out):
        with open(path, "a") as file:
            file.write(f"{os.getpid()}\n")
        return reference(x, y, out)

    return counting
