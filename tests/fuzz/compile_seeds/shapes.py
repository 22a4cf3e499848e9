# SPDX-License-Identifier: Apache-2.0
import phobos.lang as ph


@ph.kernel
def turn(x: ph.tensor[ph.f32][M, N], y: ph.tensor[ph.f32][N, M]):
    i: ph.let = ph.ctx.block.x * 16
    j: ph.let = ph.ctx.block.y * 8
    y[j:+8, i:+16] = ph.transpose(x[i:+16, j:+8])


@ph.kernel
def fold(x: ph.tensor[ph.i64][N], y: ph.tensor[ph.i64][4, 8], z: ph.tensor[ph.bool][2]):
    t: ph.let = ph.reshape(x[0:+32], (4, 8))
    y[0:+4, 0:+8] = ph.cumsum(t, axis=1) + ph.sum(t, axis=0)[None, :]
    z[0] = ph.any(t > 3)
    z[1] = ph.all(ph.transpose(t, (1, 0)) == ph.reshape(t, (8, 4)))


@ph.kernel
def rows(table: ph.tensor[ph.bf16][V, D], index: ph.tensor[ph.i32][N], out: ph.tensor[ph.bf16][N, D]):
    i: ph.let = ph.ctx.block.x * 8
    ids: ph.let = index[i:+8]
    out[i:+8, 0:+32] = ph.load(table[ids, 0:+32], fill=1.0, mask=(ids > 0)[:, None])
    out[ids, 3] = 0.5
