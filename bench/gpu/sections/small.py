#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels of 1 and 2 microseconds rank right in every tune, whichever comes first; and what an empty kernel takes.

small.py [--tunes N]
"""

from __future__ import annotations

import argparse
import statistics
import sys

import stage

import numpy as np

import phobos.lang as ph

EMPTY = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry empty(.param .u64 x)
{
  ret;
}
\0"""


def unchanged(x, out, one, zero):
    return {"out": x}


def grid(meta):
    return (-(-meta["N"] // 256),)


# Each step is a multiplication and an addition that wait for the step before: some 4 ns.
@ph.kernel(key=("N",), reference=unchanged)
@ph.autotune(STEPS=[256, 512])
def quick_first(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N], one: ph.f32, zero: ph.f32):
    base: ph.let = ph.ctx.block.x * 256
    v: ph.var = x[base:+256]
    for i in ph.range(STEPS):
        v = v * one + zero
    out[base:+256] = v


@ph.kernel(key=("N",), reference=unchanged)
@ph.autotune(STEPS=[512, 256])
def slow_first(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N], one: ph.f32, zero: ph.f32):
    base: ph.let = ph.ctx.block.x * 256
    v: ph.var = x[base:+256]
    for i in ph.range(STEPS):
        v = v * one + zero
    out[base:+256] = v


def ranks(figures, driver, tunes):
    x = np.random.default_rng(1).random(256, np.float32)
    arrays = [stage.CardArray(driver, array) for array in (x, np.zeros_like(x))]
    for kernel in (quick_first, slow_first):
        results = [kernel.tune(grid, *arrays, 1.0, 0.0, force=True) for _ in range(tunes)]
        right = sum(result.winner["STEPS"] == 256 for result in results)
        times = {v.settings["STEPS"]: statistics.median(r.variants[v.index].best for r in results)
                 for v in results[0].variants}
        figures.add(f"{kernel.__name__}: tunes of {tunes} that rank right", right, "",
                    at_least=None if stage.quick() else tunes,
                    note=f"{times[256]:.0f} ns and {times[512]:.0f} ns between events")
        floor = results[0].record.get("timer_floor_ns")
        figures.check("the Result says what an empty kernel takes between events", floor is not None, note=f"{floor} ns")


def floor(figures, driver, rounds=300):
    """Between events around an empty kernel, after a write of twice the L2."""
    function, flush = driver.load(EMPTY, "empty"), driver.allocate(2 * driver.l2_bytes)
    begin, end, slots, times = driver.event(), driver.event(), (stage.cuda.ctypes.c_uint64 * 1)(0), []
    for number in range(rounds):
        driver.fill(flush, 2 * driver.l2_bytes, number)
        driver.record(begin)
        driver.launch(function, (1, 1, 1), 32, slots)
        driver.record(end)
        times.append(driver.microseconds(begin, end))
    figures.add("event pair around an empty kernel, after a flush", statistics.median(times), "us",
                note=f"least {min(times):.2f} us; by Python, the queue not always full")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--tunes", type=int, default=2 if stage.quick() else 20)
    chosen = options.parse_args()
    figures, driver = stage.Figures(), stage.cuda.Driver()
    floor(figures, driver)
    with stage.daemon():
        ranks(figures, driver, chosen.tunes)
    return figures.status()


if __name__ == "__main__":
    sys.exit(main())
