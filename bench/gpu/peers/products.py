# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and attention as a Triton user writes them after Triton's tutorials, tuned by Triton's own tuner."""

import triton
import triton.language as tl

_TILES = [
    triton.Config({"BM": bm, "BN": bn, "BK": bk, "GROUP": 8}, num_stages=stages, num_warps=warps)
    for bm, bn, bk, stages, warps in ((128, 256, 64, 3, 8), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4), (128, 64, 32, 4, 4),
                                      (64, 128, 32, 4, 4), (128, 128, 64, 4, 4), (128, 128, 64, 3, 8), (256, 128, 64, 3, 8))
]
_QUERIES = [
    triton.Config({"BM": bm, "BN": bn}, num_stages=stages, num_warps=warps)
    for bm, bn, stages, warps in ((64, 64, 3, 4), (128, 32, 3, 4), (128, 64, 3, 4), (128, 64, 3, 8), (128, 128, 3, 8),
                                  (64, 32, 4, 4))
]


@triton.autotune(configs=_TILES, key=["m", "n", "k"])
@triton.jit
def matmul_kernel(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    rows, columns = tl.cdiv(m, BM), tl.cdiv(n, BN)
    program, group = tl.program_id(0), GROUP * columns
    first = program // group * GROUP
    height = min(rows - first, GROUP)
    row, column = first + program % group % height, program % group // height
    i = (row * BM + tl.arange(0, BM)) % m
    j = (column * BN + tl.arange(0, BN)) % n
    depth = tl.arange(0, BK)
    a_at, b_at = a + i[:, None] * k + depth[None, :], b + depth[:, None] * n + j[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BK)):
        left = k - step * BK
        a_tile = tl.load(a_at, mask=depth[None, :] < left, other=0.0)
        b_tile = tl.load(b_at, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(a_tile, b_tile, total)
        a_at += BK
        b_at += BK * n
    i, j = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
    tl.store(c + i[:, None] * n + j[None, :], total.to(tl.float16), mask=(i[:, None] < m) & (j[None, :] < n))


@triton.autotune(configs=_QUERIES, key=["n", "HEAD"])
@triton.jit
def attention_kernel(q, k, v, out, n, scale, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    start = tl.program_id(1).to(tl.int64) * n * HEAD
    i, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, HEAD)
    query = tl.load(q + start + i[:, None] * HEAD + d[None, :], mask=i[:, None] < n, other=0.0)
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    sums = tl.zeros((BM, HEAD), dtype=tl.float32)
    scale *= 1.44269504
    for first in range(0, n, BN):
        j = first + tl.arange(0, BN)
        keys = tl.load(k + start + j[None, :] * HEAD + d[:, None], mask=j[None, :] < n, other=0.0)
        score = tl.dot(query, keys) * scale
        score = tl.where(j[None, :] < n, score, -float("inf"))
        larger = tl.maximum(most, tl.max(score, 1))
        weight = tl.exp2(score - larger[:, None])
        kept = tl.exp2(most - larger)
        total = total * kept + tl.sum(weight, 1)
        values = tl.load(v + start + j[:, None] * HEAD + d[None, :], mask=j[:, None] < n, other=0.0)
        sums = tl.dot(weight.to(tl.float16), values, sums * kept[:, None])
        most = larger
    tl.store(out + start + i[:, None] * HEAD + d[None, :], (sums / total[:, None]).to(tl.float16), mask=i[:, None] < n)


def matmul(a, b, out):
    (m, k), n = a.shape, b.shape[1]
    matmul_kernel[lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)](a, b, out, m, n, k)


def attention(q, k, v, out, scale):
    heads, n, head = q.shape
    attention_kernel[lambda meta: (triton.cdiv(n, meta["BM"]), heads)](q, k, v, out, n, scale, HEAD=head)
