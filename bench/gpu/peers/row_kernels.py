# SPDX-License-Identifier: Apache-2.0
"""Ours of the same kernels. A kernel that promises its columns to be a multiple of 16 bytes has wide loads of them.

softmax has @ph.fast_math, as Triton's exp and division are approximations too.
"""

from __future__ import annotations

import numpy as np

import phobos.lang as ph


def rows(meta):
    return (meta["M"],)


def groups(meta):
    return (-(-meta["M"] // meta["ROWS"]),)


def tiles(meta):
    return (-(-meta["M"] // meta["A"]), -(-meta["N"] // meta["B"]))


def softmax_of(x, out):
    v = x.astype(np.float32)
    e = np.exp(v - v.max(1, keepdims=True))
    return {"out": (e / e.sum(1, keepdims=True)).astype(out.dtype)}


def layernorm_of(x, weight, bias, out, eps):
    moved = x - x.mean(1, keepdims=True)
    return {"out": moved / np.sqrt((moved * moved).mean(1, keepdims=True) + eps) * weight + bias}


def rmsnorm_of(x, weight, out, eps):
    return {"out": x / np.sqrt((x * x).mean(1, keepdims=True) + eps) * weight}


def rowsum_of(x, out):
    return {"out": x.sum(1)}


def transpose_of(x, out):
    return {"out": np.ascontiguousarray(x.T)}


@ph.kernel(key=("M", "N"), reference=softmax_of)
@ph.fast_math
@ph.autotune(COLUMNS=[1024, 8192], THREADS=[128, 1024])
@ph.launch("THREADS")
@ph.constraint("COLUMNS >= N", "COLUMNS < 2 * N")
@ph.aligned(N=4)
def softmax(x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][M, N]):
    row: ph.let = ph.ctx.block.x
    v: ph.let = ph.load(x[row, 0:+COLUMNS], fill=-ph.inf)
    e: ph.let = ph.exp(v - ph.max(v))
    out[row, 0:+COLUMNS] = e * (1.0 / ph.sum(e))


@ph.kernel(key=("M", "N"), reference=softmax_of)
@ph.fast_math
@ph.autotune(COLUMNS=[1024, 8192], THREADS=[128, 1024])
@ph.launch("THREADS")
@ph.constraint("COLUMNS >= N", "COLUMNS < 2 * N")
def softmax_of_any(x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][M, N]):
    row: ph.let = ph.ctx.block.x
    v: ph.let = ph.load(x[row, 0:+COLUMNS], fill=-ph.inf)
    e: ph.let = ph.exp(v - ph.max(v))
    out[row, 0:+COLUMNS] = e * (1.0 / ph.sum(e))


@ph.kernel(key=("M", "N"), reference=softmax_of)
@ph.fast_math
@ph.autotune(COLUMNS=[1024, 8192], THREADS=[128, 1024])
@ph.launch("THREADS")
@ph.constraint("COLUMNS >= N", "COLUMNS < 2 * N")
@ph.aligned(N=8)
def softmax_of_halves(x: ph.tensor[ph.f16][M, N], out: ph.tensor[ph.f16][M, N]):
    row: ph.let = ph.ctx.block.x
    v: ph.let = ph.cast(ph.load(x[row, 0:+COLUMNS], fill=-ph.inf), ph.f32)
    e: ph.let = ph.exp(v - ph.max(v))
    out[row, 0:+COLUMNS] = e * (1.0 / ph.sum(e))


@ph.kernel(key=("M", "N"), reference=layernorm_of, rtol=1e-4, atol=1e-5)
@ph.autotune(COLUMNS=[1024, 8192], THREADS=[128, 1024])
@ph.launch("THREADS")
@ph.constraint("COLUMNS >= N", "COLUMNS < 2 * N")
@ph.aligned(N=4)
def layernorm(x: ph.tensor[ph.f32][M, N], weight: ph.tensor[ph.f32][N], bias: ph.tensor[ph.f32][N],
              out: ph.tensor[ph.f32][M, N], eps: ph.f32):
    row: ph.let = ph.ctx.block.x
    v: ph.let = x[row, 0:+COLUMNS]
    mean: ph.let = ph.sum(v) / N
    moved: ph.let = ph.where(ph.iota(COLUMNS) < N, v - mean, 0.0)
    scale: ph.let = ph.rsqrt(ph.sum(moved * moved) / N + eps)
    out[row, 0:+COLUMNS] = moved * scale * weight[0:+COLUMNS] + bias[0:+COLUMNS]


@ph.kernel(key=("M", "N"), reference=rmsnorm_of, rtol=1e-4, atol=1e-5)
@ph.autotune(COLUMNS=[1024, 8192], THREADS=[128, 1024])
@ph.launch("THREADS")
@ph.constraint("COLUMNS >= N", "COLUMNS < 2 * N")
@ph.aligned(N=4)
def rmsnorm(x: ph.tensor[ph.f32][M, N], weight: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][M, N], eps: ph.f32):
    row: ph.let = ph.ctx.block.x
    v: ph.let = x[row, 0:+COLUMNS]
    scale: ph.let = ph.rsqrt(ph.sum(v * v) / N + eps)
    out[row, 0:+COLUMNS] = v * scale * weight[0:+COLUMNS]


@ph.kernel(key=("M", "N"), reference=rowsum_of, rtol=1e-4, atol=1e-3)
@ph.autotune(ROWS=[1, 8], COLUMNS=[1024, 8192], THREADS=[128, 1024])
@ph.launch("THREADS")
@ph.constraint("COLUMNS >= N", "COLUMNS < 2 * N")
@ph.aligned(N=4)
def rowsum(x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][M]):
    i: ph.let = ph.ctx.block.x * ROWS
    out[i:+ROWS] = ph.sum(x[i:+ROWS, 0:+COLUMNS], axis=1)


@ph.kernel(key=("M", "N"), reference=transpose_of)
@ph.autotune(A=[32, 64], B=[32, 128], THREADS=[128, 512])
@ph.launch("THREADS")
@ph.aligned(M=4, N=4)
def transpose(x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][N, M]):
    i: ph.let = ph.ctx.block.x * A
    j: ph.let = ph.ctx.block.y * B
    out[j:+B, i:+A] = ph.transpose(x[i:+A, j:+B])
