# SPDX-License-Identifier: Apache-2.0
"""Rows."""
from __future__ import annotations
import phobos.lang as ph

CHUNK = 4; SCALE = 0.5 * CHUNK

@ph.fn
def shifted(v, low):
    """v without its smallest value."""
    return ph.exp(v - low) if CHUNK > 2 else v

def reference(x, out):
    return {"out": f"{x!r:>{10}}"}

@ph.kernel(key=("N", 'M'), reference=lambda x, out: {"out": x}, rtol=1e-3)
@ph.autotune(BLOCK=[32, 256], UNROLL=(1, 2, 4), P=["f16", 'tf32'], limit=100)
@ph.launch("BLOCK", min_blocks=2)
@ph.index_bits(64)
@ph.aligned(x=16, N=CHUNK)
@ph.constraint("BLOCK % UNROLL == 0", "N <= 4096 and M > 0 or not BLOCK ** 2 > 2 * N", "P == 'f16'")
def softmax(x: ph.tensor[ph.f32][M, N], out: "ph.tensor[ph.bf16][M, N]",
            alpha: ph.f32,  # a scalar
            steps: ph.i64) -> None:
    ph.assume(ph.ctx.grid.x >= ph.cdiv(M, 4)); ph.assume(steps > 0)
    row: ph.let = ph.ctx.block.x
    total: ph.tile[ph.f32][BLOCK] = 0.0
    for i in ph.range(0, N, BLOCK, unroll=UNROLL, stages=2):
        if i + BLOCK <= N and not (row == 0x1F):
            total += ph.load(x[row, i:+BLOCK], fill=-ph.inf, mask=ph.iota(BLOCK) < 1_0)
        elif steps == 3: continue
        else:
            while steps < 4: break
    a, b = ph.max(total), ph.finfo(ph.f32).max
    out[row, 0:+BLOCK] = shifted(total * alpha ** 2, a)[:, None] \
        + (-a if b > 1e-3 else ~steps << 2)
    out[row, 0] //= 2; return

softmax[(1,)](1, 2)
