# SPDX-License-Identifier: Apache-2.0
"""Ours of the same products. Sides are promised to be multiples of 16 bytes, as they are in what is compared."""

from __future__ import annotations

import numpy as np

import phobos.lang as ph


def tiles(meta):
    return (-(-meta["M"] // meta["BM"]), -(-meta["N"] // meta["BN"]))


def queries(meta):
    return (-(-meta["N"] // meta["BM"]), meta["Z"])


def product_of(a, b, c):
    return {"c": (a.astype(np.float32) @ b.astype(np.float32)).astype(c.dtype)}


def attention_of(q, k, v, out, scale):
    s = q.astype(np.float32) @ k.astype(np.float32).transpose(0, 2, 1) * scale
    e = np.exp(s - s.max(2, keepdims=True))
    return {"out": (e / e.sum(2, keepdims=True) @ v.astype(np.float32)).astype(out.dtype)}


@ph.kernel(key=("M", "N", "K"), reference=product_of, rtol=1e-2, atol=1e-1)
@ph.autotune(BM=[128, 64], BN=[64, 128, 256], BK=[32, 64], STAGES=[4, 3], THREADS=[128, 256])
@ph.launch("THREADS")
@ph.constraint("BM * BN <= 128 * THREADS")
@ph.aligned(a=16, b=16, c=16, M=8, N=8, K=8)
def gemm(a: ph.tensor[ph.f16][M, K], b: ph.tensor[ph.f16][K, N], c: ph.tensor[ph.f16][M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    acc: ph.tile[ph.f32][BM, BN] = 0.0
    for k in ph.range(0, K, BK, stages=STAGES):
        acc += ph.dot(a[i:+BM, k:+BK], b[k:+BK, j:+BN])
    c[i:+BM, j:+BN] = acc


@ph.kernel(key=("M", "N", "K"), reference=product_of, rtol=1e-4, atol=1e-2)
@ph.autotune(BM=[128, 64], BN=[128, 64], BK=[32, 16], STAGES=[2, 3], THREADS=[128, 256])
@ph.launch("THREADS")
@ph.constraint("BM * BN <= 128 * THREADS", "BM * BN >= 32 * THREADS")
@ph.aligned(a=16, b=16, c=16, M=4, N=4, K=4)
def gemm_of_f32(a: ph.tensor[ph.f32][M, K], b: ph.tensor[ph.f32][K, N], c: ph.tensor[ph.f32][M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    acc: ph.tile[ph.f32][BM, BN] = 0.0
    for k in ph.range(0, K, BK, stages=STAGES):
        acc += ph.dot(a[i:+BM, k:+BK], b[k:+BK, j:+BN])
    c[i:+BM, j:+BN] = acc


@ph.fn
def weights(scores, most, times):
    """Of a tile of scores: its weights, by what weights so far shrink, and the largest scores of the rows."""
    larger: ph.let = ph.maximum(most, ph.rowmax(scores))
    return ph.exp2(ph.fma(scores, times, larger * -times)), ph.exp2((most - larger) * times), larger


@ph.fn
def attended(query, k, v, z, scale, N, HEAD, BM, BN, STAGES):
    """What a tile of queries sees of head z."""
    acc: ph.tile[ph.f32][BM, HEAD] = 0.0
    most: ph.tile[ph.f32][BM, 1] = -ph.inf
    total: ph.tile[ph.f32][BM, 1] = 0.0
    for j in ph.range(0, N, BN, stages=STAGES):
        scores: ph.tile[ph.f32][BM, BN] = ph.dot_t(query, k[z, j:+BN, :])
        if j + BN > N:
            scores = ph.where(ph.iota(BN)[None, :] < N - j, scores, -ph.inf)
        p, kept, larger = weights(scores, most, scale * 1.44269504)
        total = total * kept + ph.rowsum(p)
        acc = acc * kept + ph.dot(ph.cast(p, ph.f16), v[z, j:+BN, :])
        most = larger
    return acc / total


@ph.kernel(key=("Z", "N"), reference=attention_of, rtol=1e-2, atol=1e-2)
@ph.autotune(BM=[128, 64], BN=[64, 128, 32], STAGES=[3, 2], THREADS=[128, 256])
@ph.launch("THREADS")
@ph.constraint("BM <= THREADS", "BM >= THREADS // 2", "BM * (BN + 64) <= 128 * THREADS")
@ph.fast_math
@ph.aligned(q=16, k=16, v=16, out=16)
def attention_of_64(q: ph.tensor[ph.f16][Z, N, 64], k: ph.tensor[ph.f16][Z, N, 64], v: ph.tensor[ph.f16][Z, N, 64],
                    out: ph.tensor[ph.f16][Z, N, 64], scale: ph.f32):
    i: ph.let = ph.ctx.block.x * BM
    z: ph.let = ph.ctx.block.y
    out[z, i:+BM, :] = attended(q[z, i:+BM, :], k, v, z, scale, N, 64, BM, BN, STAGES)


@ph.kernel(key=("Z", "N"), reference=attention_of, rtol=1e-2, atol=1e-2)
@ph.autotune(BM=[128, 64], BN=[64, 128, 32], STAGES=[3, 2], THREADS=[128, 256])
@ph.launch("THREADS")
@ph.constraint("BM <= THREADS", "BM >= THREADS // 2", "BM * (BN + 128) <= 160 * THREADS")
@ph.fast_math
@ph.aligned(q=16, k=16, v=16, out=16)
def attention_of_128(q: ph.tensor[ph.f16][Z, N, 128], k: ph.tensor[ph.f16][Z, N, 128], v: ph.tensor[ph.f16][Z, N, 128],
                     out: ph.tensor[ph.f16][Z, N, 128], scale: ph.f32):
    i: ph.let = ph.ctx.block.x * BM
    z: ph.let = ph.ctx.block.y
    out[z, i:+BM, :] = attended(q[z, i:+BM, :], k, v, z, scale, N, 128, BM, BN, STAGES)
