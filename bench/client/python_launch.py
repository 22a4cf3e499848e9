#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a launch costs in Python, beside the kernel itself, and what the import costs.

    python3 bench/client/python_launch.py [--json FILE] [--launches N]

One block of 256 elements is launched, so nearly all of the time is the way there. The kernel itself
is its compiled function, called for 64 blocks and for one: the difference over 63. Starts a daemon
of its own. Needs libphobos.so, phobosd and phobos-compile, built in the checkout or named by
PHOBOS_LIBRARY, PHOBOS_DAEMON and PHOBOS_COMPILER.
"""

from __future__ import annotations

import argparse
import array
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from private_daemon import ROOT, private_daemon

import numpy as np

import phobos.lang as ph

SIZE = 256
LIMIT_US = 10.0
IMPORT_LIMIT_MS = 40.0


@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[256])
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]


@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[256])
def saxpy(alpha: ph.f32, x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    y[base:+BLOCK] += alpha * x[base:+BLOCK]


def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


def sampled(function, calls, batch=100):
    """{p50, p99, least} in us of one call, over batches of calls."""
    for _ in range(batch):
        function()
    samples = []
    for _ in range(max(10, calls // batch)):
        began = time.perf_counter_ns()
        for _ in range(batch):
            function()
        samples.append((time.perf_counter_ns() - began) / batch / 1e3)
    samples.sort()
    at = lambda share: samples[min(len(samples) - 1, int(share * len(samples)))]
    return {"p50_us": at(0.5), "p99_us": at(0.99), "least_us": samples[0]}


def kernel_itself(calls):
    """Microseconds of one block of `add`, without anything around it."""
    plan = next(iter(add._plans.values()))
    from phobos._library import library

    path = library().take_text("phobos_plan_json", plan.handle)["artifact_path"]
    names = subprocess.run(
        ["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True
    ).stdout.split()
    entry = getattr(ctypes.CDLL(path), [name for name in names if "add" in name][0])
    entry.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_void_p]
    blocks = 64
    x, y, out = (np.ones(SIZE * blocks, np.float32) for _ in range(3))
    slots = (ctypes.c_uint64 * 4)(x.ctypes.data, y.ctypes.data, out.ctypes.data, SIZE * blocks)
    sides = (ctypes.c_int64 * 3)(blocks, 1, 1)
    one = sampled(lambda: entry(slots, sides, 0, 1, None), calls)
    all_of_them = sampled(lambda: entry(slots, sides, 0, blocks, None), calls)
    return {name: (all_of_them[name] - one[name]) / (blocks - 1) for name in one}


def import_ms(times=15):
    """Median of fresh interpreters, as they measure it themselves; without NumPy."""
    program = (
        "import time; began = time.perf_counter(); import phobos.lang, sys;"
        "assert 'numpy' not in sys.modules; print(1e3 * (time.perf_counter() - began))"
    )
    environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "client/python")}
    samples = []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, check=True
        )
        samples.append(float(done.stdout))
    return statistics.median(samples)


def launches(calls):
    x, y, out = (np.ones(SIZE, np.float32) for _ in range(3))
    buffers = [array.array("f", bytes(4 * SIZE)) for _ in range(3)]
    # Winners: a plan of first choices is looked up again, and freed, about once a second.
    saxpy.tune(grid, 2.0, x, y, reference=lambda alpha, x, y: {"y": alpha * x + y})
    add.tune(grid, x, y, out, reference=lambda x, y, out: {"out": x + y})
    saxpy[grid](2.0, x, y)
    add[grid](x, y, out)
    plan = next(iter(add._plans.values()))  # kept, so that its handle is not freed
    values = add._pack(x.ctypes.data, y.ctypes.data, out.ctypes.data)
    sides = bytes((ctypes.c_int64 * 3)(1, 1, 1))
    assert add._run(plan.handle, values, sides, None, None) == 0  # launches, and is not out of date
    figures = {
        "add[grid](x, y, out)": sampled(lambda: add[grid](x, y, out), calls),
        "add[(1,)](x, y, out)": sampled(lambda: add[(1,)](x, y, out), calls),
        "saxpy[grid](2.0, x, y)": sampled(lambda: saxpy[grid](2.0, x, y), calls),
        "add[grid](x, y, out=out)": sampled(lambda: add[grid](x, y, out=out), calls // 4),
        "add[grid](array.array ...)": sampled(lambda: add[grid](*buffers), calls // 4),
        "phobos_plan_launch by ctypes": sampled(
            lambda: add._run(plan.handle, values, sides, None, None), calls
        ),
        "the kernel itself": kernel_itself(calls),
    }
    assert add._run(plan.handle, values, sides, None, None) == 0
    return figures


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--json", help="also write the figures to this file")
    options.add_argument("--launches", type=int, default=200_000)
    chosen = options.parse_args()
    with private_daemon():
        figures = launches(chosen.launches)
    milliseconds = import_ms()
    print(f"{'one block of 256 elements':32}{'p50 us':>9}{'p99 us':>9}{'least us':>10}")
    for name, row in figures.items():
        print(f"{name:32}{row['p50_us']:9.2f}{row['p99_us']:9.2f}{row['least_us']:10.2f}")
    overhead = figures["add[grid](x, y, out)"]["p50_us"] - figures["the kernel itself"]["p50_us"]
    print(f"overhead of a launch: {overhead:.2f} us (at most {LIMIT_US:.0f})")
    print(
        f"import phobos.lang without numpy: {milliseconds:.1f} ms (at most {IMPORT_LIMIT_MS:.0f})"
    )
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(
                {"launches": figures, "overhead_us": overhead, "import_ms": milliseconds}, file
            )
    return 0 if overhead <= LIMIT_US and milliseconds <= IMPORT_LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
