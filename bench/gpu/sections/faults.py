#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults planted in a kernel's PTX: each costs its variant, the tune ends, and the daemon is then as fast as before.

faults.py [--n N]

guilty_compiler.py, between the daemon and the compiler, plants them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

import stage

import numpy as np

import phobos_kernels
import phobos.lang as ph

# FAULT -> (what is planted, what the variant may come to).
FAULTS = {
    1: ("illegal address", ("crashed",)),
    2: ("misaligned address", ("crashed",)),
    3: ("infinite loop", ("timed_out",)),
    4: ("one byte behind a tensor written", ("out_of_bounds",)),
    5: ("too much shared memory", ("unsupported", "compile_error")),
    6: ("too many registers times threads", ("unsupported",)),
    7: ("more local memory than any card has", ("unsupported", "out_of_memory", "compile_error")),
    8: ("no memory left on the card", ("out_of_memory",)),
}
AS_FAST = 1.15
LEFT = 8 << 30  # bytes that this process leaves to the worker, where fault 8 would take 33 GiB


@ph.kernel(key=("N",), reference=phobos_kernels.added)
@ph.autotune(BLOCK=[1024], FAULT=[0, 1, 2, 3, 4, 5, 6, 7, 8])
def guilty(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]


def arrays_of(driver, n):
    x, y = np.random.default_rng(n).random((2, n), np.float32)
    return [stage.CardArray(driver, array) for array in (x, y, np.zeros_like(x))]


def seconds(driver, n, times):
    """Of a tune of an honest kernel, whose variants are compiled; the median of some sizes."""
    took = []
    for i in range(times):
        arrays = arrays_of(driver, n - 8 * i)
        start = time.perf_counter()
        phobos_kernels.add[phobos_kernels.grid](*arrays)
        driver.synchronize()
        took.append(time.perf_counter() - start)
        for array in arrays:
            array.free()
    return statistics.median(took)


def check_guilty(figures, driver, n):
    arrays = arrays_of(driver, n)
    held = 0 if stage.quick() else driver.allocate(driver.free_bytes() - LEFT)
    start = time.perf_counter()
    guilty[phobos_kernels.grid](*arrays)
    driver.synchronize()
    took = time.perf_counter() - start
    if held:
        driver.free(held)
    x, y, out = (array.host() for array in arrays)
    figures.check(f"a tune with {len(FAULTS)} faults ends, and its winner's sum is right", bool((out == x + y).all()),
                  note=f"{took:.1f} s")
    variants = {variant.settings["FAULT"]: variant for variant in guilty.result(N=n).variants}
    figures.check("the honest variant won", guilty.result(N=n).winner["FAULT"] == 0)
    for fault, (name, statuses) in FAULTS.items():
        variant = variants[fault]
        figures.check(f"planted: {name}", variant.status in statuses, note=f"{variant.status}: {variant.reason}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--n", type=int, default=5000 if stage.quick() else 1 << 22)
    chosen = options.parse_args()
    figures, driver, times = stage.Figures(), stage.cuda.Driver(), 3
    os.environ["PHOBOS_HONEST_COMPILER"] = os.environ["PHOBOS_COMPILER"]
    os.environ["PHOBOS_COMPILER"] = os.path.join(stage.HERE, "guilty_compiler.py")
    with stage.daemon():
        seconds(driver, chosen.n + 8, 1)  # compiles, brings the worker up
        before = seconds(driver, chosen.n, times)
        check_guilty(figures, driver, chosen.n)
        first = seconds(driver, chosen.n - 8 * times, 1)
        after = seconds(driver, chosen.n - 8 * times - 8, times)
    figures.add("tunes after the faults over tunes before", after / before, "times",
                at_most=None if stage.quick() else AS_FAST,
                note=f"{before:.3f} s before, {first:.3f} s the first after, {after:.3f} s then")
    return figures.status()


if __name__ == "__main__":
    sys.exit(main())
