#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Vector add. The first run tunes and shows what the tuner found; another launches the winner.

python3 vector_add.py [N]
"""

from __future__ import annotations

import sys
import time

import numpy as np

import phobos.lang as ph


def reference(x, y, out):
    return {"out": x + y}


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]


def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


def fastest(function, times=5):
    """Seconds of the fastest of some calls."""
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - began)
    return best


def shown(seconds):
    """ "8.25 ms", or "3.1 us" where milliseconds would be mostly zeros."""
    return f"{1e3 * seconds:.2f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.1f} us"


def main(n):
    numbers = np.random.default_rng(7)
    x = numbers.random(n, np.float32)
    y = numbers.random(n, np.float32)
    out = np.zeros_like(x)
    tunes = []
    ph.on_tune(tunes.append)

    began = time.perf_counter()
    add[grid](x, y, out)  # tunes, then launches the winner
    seconds = time.perf_counter() - began

    if not np.array_equal(out, x + y):
        sys.exit("the sum is wrong")
    if tunes:
        print(tunes[0])
    elif (found := add.result(N=n)) is not None:
        print(
            f"launched without tuning: {found.winner}, the stored winner of generation"
            f" {found.generation}; the first launch took {shown(seconds)}"
        )
    else:
        print(
            f"launched the first choices: no Result is stored at N={n}, and PHOBOS_TUNE=off keeps"
            " launches from tuning; leave it out, or call add.tune"
        )
    ours = fastest(lambda: add[grid](x, y, out))
    numpy = fastest(lambda: np.add(x, y, out=out))
    rate = 12 * n / ours / 1e9
    print(f"a launch: {shown(ours)}, {rate:.1f} GB/s; numpy.add: {shown(numpy)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 24)
