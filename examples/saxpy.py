#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""y = alpha * x + y, in place: a scalar parameter, and a tensor that is read and written.

python3 saxpy.py [N]
"""

from __future__ import annotations

import sys

import numpy as np

import phobos.lang as ph


def reference(alpha, x, y):
    return {"y": alpha * x + y}


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[512, 4096], UNROLL=[1, 2, 4])
@ph.constraint("BLOCK % UNROLL == 0")
def saxpy(alpha: ph.f32, x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N]):
    first: ph.let = ph.ctx.block.x * BLOCK
    for part in ph.range(UNROLL, unroll=UNROLL):
        at: ph.let = first + part * (BLOCK // UNROLL)
        y[at : +BLOCK // UNROLL] += alpha * x[at : +BLOCK // UNROLL]


def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


def main(n):
    x = np.linspace(0, 1, n, dtype=np.float32)
    y = np.ones(n, np.float32)
    print(saxpy.tune(grid, 0.5, x, y))
    # Nothing is specialized on an argument's value: another alpha launches the same winner.
    saxpy[grid](2.0, x, y)
    if not np.allclose(y, 2 * x + 1):
        sys.exit("the result is wrong")
    print(f"y = 2 x + 1 at {n} points, by {saxpy.result(N=n).winner}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 22)
