#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a cold tune costs on top of its warm-up and rounds, and where that time goes.

    python3 bench/tune/cold_tune.py [--json FILE] [--times N] [--settle]

Tunes the vector add (5 variants, the requirements' 300 ms and 20 rounds). "cold": nothing compiled,
no worker, no memory. "warm pool": another kernel's tune at that size came before, so memory and
worker are there; the kernel itself is compiled for the first time. Each row is the median of N
daemons; "rest" is the whole call without warm-up and rounds. Also says what the idle daemon keeps
resident, before its first tune; with --settle also 40 s after a tune at the small size, when it has
given memory back (a minute more).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from private_daemon import private_daemon

import numpy as np

import phobos.lang as ph

SMALL, LARGE = 1 << 20, 1 << 24
LIMITS_MS = {SMALL: 150.0, LARGE: 400.0}
IDLE_LIMIT_MIB = 16.0
SETTLED_SECONDS = 40.0  # the daemon gives memory back after 30
PHASES = ("queue", "upload", "compile", "reference", "check", "warm_up", "timing")


def reference(x, y, out):
    return {"out": x + y}


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def sum(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    first: ph.let = ph.ctx.block.x * BLOCK
    out[first:+BLOCK] = y[first:+BLOCK] + x[first:+BLOCK]


def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


def tuned(kernel, size):
    """One tune: {phase: ms, ..., "total": ms, "rest": ms}."""
    draw = np.random.default_rng(size)
    x, y = (draw.random(size, np.float32) for _ in range(2))
    split = kernel.tune(grid, x, y, np.zeros_like(x)).split
    row = {phase: split.get(phase, 0) / 1e6 for phase in PHASES}
    row["total"] = split["total"] / 1e6
    row["rest"] = row["total"] - row["warm_up"] - row["timing"]
    return row


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def settled_mib():
    with private_daemon() as daemon:
        tuned(add, SMALL)
        time.sleep(SETTLED_SECONDS)
        return resident_mib(daemon.pid)


def one_daemon():
    with private_daemon() as daemon:
        idle = resident_mib(daemon.pid)
        rows = {
            (SMALL, "cold"): tuned(add, SMALL),
            (LARGE, "cold pool"): tuned(add, LARGE),
            (LARGE, "warm pool"): tuned(sum, LARGE),
        }
    return idle, rows


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--json", help="also write the figures to this file")
    options.add_argument("--times", type=int, default=3)
    options.add_argument("--settle", action="store_true")
    chosen = options.parse_args()
    idles, tables = zip(*(one_daemon() for _ in range(chosen.times)))
    figures = {
        case: {part: statistics.median(table[case][part] for table in tables) for part in row}
        for case, row in tables[0].items()
    }
    parts = (*PHASES, "total", "rest")
    print(f"{'ms':24}" + "".join(f"{part:>10}" for part in parts) + f"{'at most':>10}")
    met = True
    for (size, case), row in figures.items():
        limit = LIMITS_MS[size] if case != "cold pool" else None
        met = met and (limit is None or row["rest"] <= limit)
        name = f"n = 2^{size.bit_length() - 1}, {case}"
        shown = f"{limit:10.0f}" if limit else f"{'-':>10}"
        print(f"{name:24}" + "".join(f"{row[part]:10.1f}" for part in parts) + shown)
    idle = statistics.median(idles)
    print(f"idle daemon: {idle:.1f} MiB resident (at most {IDLE_LIMIT_MIB:.0f})")
    settled = settled_mib() if chosen.settle else None
    if settled is not None:
        print(f"{SETTLED_SECONDS:.0f} s after a tune: {settled:.1f} MiB resident")
    if chosen.json:
        record = {f"{size} {case}": row for (size, case), row in figures.items()}
        with open(chosen.json, "w") as file:
            json.dump(
                {"tunes_ms": record, "idle_mib": idle, "settled_mib": settled}, file, indent=1
            )
    return 0 if met and max(idle, settled or 0) <= IDLE_LIMIT_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
