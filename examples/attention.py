#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flash attention, forward: softmax(q k' / sqrt(64)) v of each head, without the matrix of all scores. Causal or not.

python3 attention.py [HEADS [LENGTH]]
"""

from __future__ import annotations

import math
import sys

import numpy as np

import phobos.lang as ph

HEAD = 64
SCALE = 0.125 * 1.4426950408889634  # of the scores, for powers of two


def attention_reference(q, k, v, out, causal=False):
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(HEAD)
    if causal:
        scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return {"out": (weights / weights.sum(axis=2, keepdims=True) @ v).astype(np.float16)}


def causal_reference(q, k, v, out):
    return attention_reference(q, k, v, out, causal=True)


@ph.fn
def added(high, total, sums, scores, values):
    """The largest score, the sum of powers and the weighted sums, with a further block of keys."""
    higher: ph.let = ph.maximum(high, ph.rowmax(scores))
    # A row that has seen no key yet has nothing to scale.
    safe: ph.let = ph.where(higher == -ph.inf, 0.0, higher)
    weights: ph.let = ph.exp2(scores - safe)
    fade: ph.let = ph.exp2(high - safe)
    return higher, total * fade + ph.rowsum(weights), sums * fade + ph.dot(ph.cast(weights, ph.f16), values)


@ph.fn
def attended(query, k, v, head, keys, last, BQ, BK, STAGES):
    """The values that a block of queries sees: of the first `keys` keys those up to `last`, a number a query."""
    high: ph.tile[ph.f32][BQ, 1] = -ph.inf
    total: ph.tile[ph.f32][BQ, 1] = 0.0
    sums: ph.tile[ph.f32][BQ, HEAD] = 0.0
    for j in ph.range(0, keys, BK, stages=STAGES):
        is_seen: ph.let = (j + ph.iota(BK))[None, :] <= last
        scores: ph.let = ph.where(is_seen, ph.dot_t(query, k[head, j:+BK, :]) * SCALE, -ph.inf)
        high, total, sums = added(high, total, sums, scores, v[head, j:+BK, :])
    return sums / total


@ph.kernel(key=("S",), reference=attention_reference, rtol=1e-2, atol=1e-3)
@ph.autotune(BQ=[64, 128], BK=[32, 64], STAGES=[1, 2])
@ph.launch(128)
def attention(q: ph.tensor[ph.f16][H, S, HEAD], k: ph.tensor[ph.f16][H, S, HEAD], v: ph.tensor[ph.f16][H, S, HEAD],
              out: ph.tensor[ph.f16][H, S, HEAD]):
    head: ph.let = ph.ctx.block.y
    first: ph.let = ph.ctx.block.x * BQ
    out[head, first:+BQ, :] = attended(q[head, first:+BQ, :], k, v, head, S, S - 1, BQ, BK, STAGES)


@ph.kernel(key=("S",), reference=causal_reference, rtol=1e-2, atol=1e-3)
@ph.autotune(BQ=[64, 128], BK=[32, 64], STAGES=[1, 2])
@ph.launch(128)
def causal_attention(q: ph.tensor[ph.f16][H, S, HEAD], k: ph.tensor[ph.f16][H, S, HEAD], v: ph.tensor[ph.f16][H, S, HEAD],
                     out: ph.tensor[ph.f16][H, S, HEAD]):
    head: ph.let = ph.ctx.block.y
    first: ph.let = ph.ctx.block.x * BQ
    # Each query sees the keys up to its own.
    own: ph.let = (first + ph.iota(BQ))[:, None]
    out[head, first:+BQ, :] = attended(q[head, first:+BQ, :], k, v, head, ph.minimum(S, first + BQ), own, BQ, BK, STAGES)


def grid(meta):
    return (-(-meta["S"] // meta["BQ"]), meta["H"])


def main(heads=4, length=512):
    random = np.random.default_rng(7)
    q, k, v = random.standard_normal((3, heads, length, HEAD), np.float32).astype(np.float16)
    for kernel in (attention, causal_attention):
        print(kernel.tune(grid, q, k, v, np.zeros_like(q)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
