# SPDX-License-Identifier: Apache-2.0
import phobos.lang as ph


@ph.kernel
def histogram(x: ph.tensor[ph.u8][N], bins: ph.tensor[ph.i32][256], total: ph.tensor[ph.f32][1]):
    i: ph.let = ph.ctx.block.x * 64
    ph.atomic_add(bins[x[i:+64]], 1)
    old: ph.let = ph.atomic_cas(total[0], 0.0, 1.0)
    if old == 0.0:
        ph.atomic_max(total[0], ph.cast(bins[3], ph.f32))


@ph.kernel
def persistent(x: ph.tensor[ph.f16][N], q: ph.tensor[ph.i32][1], out: ph.tensor[ph.i64][N]):
    for t in ph.range(ph.ctx.block.x, ph.cdiv(N, 32), ph.ctx.grid.x):
        ph.atomic_xor(out[t * 32:+32], ph.random_u32(7, t * 32 + ph.iota(32)))
    tile: ph.var = ph.atomic_add(q[0], 1)
    while tile < 4:
        pair: ph.let = ph.interleave(x[tile:+8], ph.join(x[0:+4], x[4:+4]))
        out[0:+16] = ph.cast(pair, ph.i64) + ph.atomic_and(out[0:+16], 255)
        tile = ph.atomic_add(q[0], 1)
