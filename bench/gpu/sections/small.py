#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels of 1 and 2 microseconds rank right in every tune, whichever comes first; and what an empty kernel takes.

small.py [--tunes N]

A kernel's length is what it takes between events beyond what an empty kernel takes there. How many steps make 1 and 2 us is
found by a tune of many lengths before.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import tempfile

import stage

import numpy as np

LENGTHS_NS = (1000, 2000)
TRIED = (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1)  # steps

EMPTY = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry empty(.param .u64 x)
{
  ret;
}
\0"""


HEAD = """
from __future__ import annotations
import numpy as np
import phobos.lang as ph

def counted(out, one, zero):
    return {"out": np.arange(out.size, dtype=np.float32)}
"""
# Each step is a multiplication and an addition that wait for the step before. Reads nothing: a read from memory alone takes
# about a microsecond.
KERNEL = """
@ph.kernel(key=("N",), reference=counted)
@ph.autotune(STEPS=[%s])
def %s(out: ph.tensor[ph.f32][N], one: ph.f32, zero: ph.f32):
    v: ph.var = ph.cast(ph.iota(256), ph.f32)
    for i in ph.range(STEPS):
        v = v * one + zero
    out[0:+256] = v
"""


def kernels(**choices):
    """A module with a kernel of each name, whose STEPS have these choices."""
    name = "small_" + "_".join(choices)
    path = os.path.join(tempfile.mkdtemp(prefix="phobos-small-"), name + ".py")
    with open(path, "w") as file:
        file.write(HEAD + "".join(KERNEL % (", ".join(map(str, steps)), kernel) for kernel, steps in choices.items()))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def grid(meta):
    return (-(-meta["N"] // 256),)


def tune(kernel, arrays):
    return kernel.tune(grid, *arrays, 1.0, 0.0, force=True)


def steps_of(arrays):
    """How many steps make each of LENGTHS_NS."""
    result = tune(kernels(tried=TRIED).tried, arrays)
    found = solved({v.settings["STEPS"]: v.best - result.record["timer_floor_ns"] for v in result.variants})
    return (64, 512) if stage.quick() else found  # the stand-in's steps are of another kind


def solved(taken):
    """The steps for LENGTHS_NS where `taken` has the ns of some, on the lines between them; 1 where even that is longer."""
    steps = sorted(taken)
    lengths = np.maximum.accumulate([taken[count] for count in steps])
    first, second = (round(float(np.interp(length, lengths, steps))) for length in LENGTHS_NS)
    return first, max(second, first + 1)


def ranks(figures, driver, tunes):
    arrays = [stage.CardArray(driver, np.zeros(256, np.float32))]
    quick, slow = steps_of(arrays)
    slowest = slow + (slow - quick)  # three choices are a list in either order
    module = kernels(quick_first=(quick, slow, slowest), slow_first=(slowest, slow, quick))
    for kernel in (module.quick_first, module.slow_first):
        results = [tune(kernel, arrays) for _ in range(tunes)]
        right = sum(result.winner["STEPS"] == quick for result in results)
        floor = results[0].record.get("timer_floor_ns")
        times = {v.settings["STEPS"]: statistics.median(r.variants[v.index].best for r in results)
                 for v in results[0].variants}
        figures.check(f"{kernel.__name__}: the Result says what an empty kernel takes between events", floor is not None,
                      note=f"{floor} ns")
        figures.add(f"{kernel.__name__}: tunes of {tunes} that rank right", right, "",
                    at_least=None if stage.quick() else tunes,
                    note=f"{times[quick] - floor:.0f} and {times[slow] - floor:.0f} ns beyond an empty kernel's {floor}",
                    detail={"steps": [quick, slow], "ns": times})


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
