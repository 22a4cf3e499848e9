#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the choice between near-equal variants costs: many forced tunes of the same kernel.

    python3 bench/tune/regret.py [--tunes N] [--json FILE]

Two kernels. "twins": both variants are the same code; which one wins is a coin's matter, so the winners may differ from
tune to tune. "add": the vector add's five variants. A variant's own time is the median, over all tunes, of its fastest
sample; the regret of a tune is its winner's own time over the smallest one. Under --tie-break=first-within-noise the twins'
winner should be the first in every tune. Ends with 1 where the median regret is over 1 % or the largest over 5 %.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from private_daemon import private_daemon

import numpy as np

import phobos.lang as ph

SIZE = 1 << 16
MEDIAN_LIMIT, LARGEST_LIMIT = 0.01, 0.05


def reference(x, y, out):
    return {"out": x + y}


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[1024], TWIN=[1, 0])
def twins(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]


def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


def measured(kernel, tunes):
    """{"winners": {index: times}, "regrets": [one a tune], "contended": tunes that others disturbed}."""
    x, y = np.random.default_rng(SIZE).random((2, SIZE), np.float32)
    results = [kernel.tune(grid, x, y, np.zeros_like(x), force=True) for _ in range(tunes)]
    fastest = collections.defaultdict(list)
    for result in results:
        for variant in result.variants:
            fastest[variant.index].append(variant.best)
    own = {index: statistics.median(times) for index, times in fastest.items()}
    return {
        "winners": dict(collections.Counter(result.winner_index for result in results)),
        "regrets": [own[result.winner_index] / min(own.values()) - 1 for result in results],
        "contended": len([result for result in results if result.contended]),
    }


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--tunes", type=int, default=30)
    options.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    chosen = options.parse_args()
    figures = {}
    for policy in ("fastest", "first-within-noise"):
        with private_daemon(f"--tie-break={policy}"):
            for kernel in (twins, add) if policy == "fastest" else (twins,):
                figures[f"{kernel.__name__}, {policy}"] = measured(kernel, chosen.tunes)
    met = True
    print(f"{chosen.tunes} forced tunes of each{'median regret':>22}{'largest':>10}{'contended':>11}  winners")
    for case, row in figures.items():
        median, largest = statistics.median(row["regrets"]), max(row["regrets"])
        met = met and median <= MEDIAN_LIMIT and largest <= LARGEST_LIMIT
        print(f"{case:<30}{100 * median:13.2f} %{100 * largest:8.2f} %{row['contended']:11}  {row['winners']}")
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
