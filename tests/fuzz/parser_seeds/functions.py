# SPDX-License-Identifier: Apache-2.0
import phobos.lang as ph

SCALE = 2
OTHER = SCALE + 1

@ph.fn
def inner(v):
    return v * SCALE

@ph.fn
def outer(v, w):
    return inner(v) + w

@ph.kernel(key=("N", "M"))
@ph.autotune(A=[1, 4], B=[8, 16, 32], P=["x", "y"])
@ph.launch("B", min_blocks=2)
@ph.index_bits(64)
@ph.aligned(x=16, N=4)
@ph.constraint("A < B", "A <= N")
def kernel(x: ph.tensor[ph.f32][N, M], out: ph.tensor[ph.f32][N, 8], s: ph.i32):
    ph.assume(N % 4 == 0)
    base: ph.let = ph.ctx.block.x * A
    for i in ph.range(0, M, 2, unroll=2):
        if i < s and not s == 3:
            out[base:+A, 0] = outer(x[base:+A, i], 1.5)
        else:
            out[base, 1:3] += 0.5
