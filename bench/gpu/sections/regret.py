#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the choice among near-equal variants costs: forced tunes, held against a long measurement of all variants.

regret.py [--tunes N] [--rounds N] [--n N] [--quiet-only]

A variant's own time is its median in a long tune (--rounds rounds, no other process on the card), taken before and after
the short ones; the regret of a tune is its winner's own time over the smallest own time, less one. Then the same tunes
once more while another process loads the card.
"""

from __future__ import annotations

import argparse
import collections
import statistics
import sys

import stage

import numpy as np

import phobos_kernels

LIMIT = 0.01


class Case:
    """A kernel with its arguments on the card."""

    def __init__(self, driver, kernel, n):
        x, y = np.random.default_rng(n).random((2, n), np.float32)
        self.kernel, self.name = kernel, kernel.__name__
        arrays = (x, y, np.zeros_like(x)) if self.name == "add" else (x, np.zeros_like(x))
        self.arrays = [stage.CardArray(driver, array) for array in arrays]

    def tune(self):
        return self.kernel.tune(phobos_kernels.grid, *self.arrays, force=True)


def own_times(cases, rounds):
    """{kernel: {index: median of so many samples, ns}}"""
    with stage.daemon(rounds=rounds, warm_up=None if stage.quick() else "1s"):
        return {case.name: {v.index: v.median for v in case.tune().variants if v.is_timed} for case in cases}


def tunes(cases, count):
    """{kernel: [Result]}"""
    with stage.daemon():
        return {case.name: [case.tune() for _ in range(count)] for case in cases}


def report(figures, label, results, own):
    for name, found in results.items():
        best = min(own[name].values())
        regrets = [own[name][result.winner_index] / best - 1 for result in found]
        winners = collections.Counter(str(result.winner) for result in found)
        figures.add(f"{name}: tunes of {len(found)} with at most 1 % regret, {label}",
                    sum(regret <= LIMIT for regret in regrets), "", at_least=None if stage.quick() else len(found),
                    note=f"largest {100 * max(regrets):.2f} %, median {100 * statistics.median(regrets):.2f} %; "
                    f"contended {sum(result.contended for result in found)}; {dict(winners)}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--tunes", type=int, default=2 if stage.quick() else 20)
    options.add_argument("--rounds", type=int, default=20 if stage.quick() else 2000)
    options.add_argument("--n", type=int, default=5000 if stage.quick() else 1 << 24)
    options.add_argument("--quiet-only", action="store_true")
    chosen = options.parse_args()
    figures, driver = stage.Figures(), stage.cuda.Driver()
    cases = [Case(driver, phobos_kernels.add, chosen.n), Case(driver, phobos_kernels.gelu, chosen.n)]
    before = own_times(cases, chosen.rounds)
    quiet = tunes(cases, chosen.tunes)
    loaded = {}
    if not chosen.quiet_only:
        loader = stage.begin("loader.py")
        loader.stdout.readline()
        try:
            loaded = tunes(cases, chosen.tunes)
        finally:
            loader.kill()
            loader.wait()
    after = own_times(cases, chosen.rounds)
    own = {name: {index: min(ns, after[name][index]) for index, ns in times.items()} for name, times in before.items()}
    for name, times in own.items():
        figures.add(f"{name}: own times, long and quiet", min(times.values()) / 1e3, "us",
                    note=", ".join(f"{index}: {ns / 1e3:.2f} us" for index, ns in times.items()))
    report(figures, "quiet", quiet, own)
    report(figures, "another process loads the card", loaded, own)
    return figures.status()


if __name__ == "__main__":
    sys.exit(main())
