# SPDX-License-Identifier: Apache-2.0
import phobos.lang as ph


@ph.kernel
@ph.autotune(BM=[8, 3], BK=[4, 20], P=["exact", "tf32", "f16"])
def products(a: ph.tensor[ph.f32][M, K], b: ph.tensor[ph.f32][K, 20], h: ph.tensor[ph.f16][2, M, 8], out: ph.tensor[ph.f32][M, 20]):
    i: ph.let = ph.ctx.block.x * BM
    acc: ph.tile[ph.f32][BM, 20] = 0.0
    for k in ph.range(0, K, BK):
        acc += ph.dot(a[i:+BM, k:+BK] * 0.5, b[k:+BK, :], precision=P)
    scores: ph.let = ph.dot_t(h[:, i:+BM, :], h[:, i:+BM, :])
    acc = acc * 2.0 + ph.dot(ph.sum(scores, axis=0), ph.dot(ph.cast(acc, ph.bf16), ph.full(ph.bf16, 1.0, 20, 20)))
    out[i:+BM, :] = acc
