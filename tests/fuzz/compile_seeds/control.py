# SPDX-License-Identifier: Apache-2.0
import phobos.lang as ph


@ph.fn
def halves(t):
    return t * 0.5, t // 2.0


@ph.kernel
@ph.launch(64)
def steps(x: ph.tensor[ph.f64][N], n: ph.i32, alpha: ph.f32):
    ph.assume(n > 0)
    acc: ph.tile[ph.f64][16] = 0.0
    k: ph.var = 0
    for i in ph.range(0, N, 16, unroll=2, stages=2):
        if i == 32:
            continue
        a, b = halves(x[i:+16])
        acc += a - b % 3.0
        while k < n:
            k += 1
            if k * k > 99:
                break
    if n > 1000:
        return
    x[0:+16] = ph.where(acc > alpha, acc, ph.sqrt(ph.abs(acc)))
    x[N - 1] += 1.0 if n % 2 == 0 else -1.0
