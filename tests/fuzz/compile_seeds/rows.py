# SPDX-License-Identifier: Apache-2.0
import phobos.lang as ph


@ph.kernel
def softmax(x: ph.tensor[ph.f16][R, C], y: ph.tensor[ph.f16][R, C]):
    row: ph.let = ph.ctx.block.x
    v: ph.let = ph.cast(ph.load(x[row, 0:+64], fill=-ph.inf), ph.f32)
    e: ph.let = ph.exp(v - ph.max(v))
    y[row, 0:+64] = e / ph.sum(e)


@ph.kernel
def rms(x: ph.tensor[ph.f32][R, C], w: ph.tensor[ph.f32][C], y: ph.tensor[ph.f32][R, C]):
    r: ph.let = ph.ctx.block.x * 4
    v: ph.let = x[r:+4, 0:+32]
    s: ph.let = ph.rsqrt(ph.mean(v * v, axis=1, keepdims=True) + 1e-6)
    y[r:+4, 0:+32] = v * s * w[0:+32]


@ph.kernel
def pick(x: ph.tensor[ph.f32][R, C], out: ph.tensor[ph.i32][R]):
    out[ph.ctx.block.x] = ph.argmax(x[ph.ctx.block.x, 0:+48])
