#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the choice among near-equal variants costs: forced tunes, held against a long measurement of all variants.

regret.py [--tunes N] [--rounds N] [--n N] [--quiet-only]

A variant's own time is its fastest sample, by which the tuner decides too, of two long tunes (--rounds rounds each, no
other process on the card), one before and one after the short ones. The regret of a tune is its winner's own time over
the smallest own time, less one; the limit is on that. Beside it stands the same by the median of the long tunes' samples.
Then the same tunes once more while another process loads the card.
"""

from __future__ import annotations

import argparse
import collections
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
        self.tuned = None  # the last Result

    def tune(self):
        self.tuned = self.kernel.tune(phobos_kernels.grid, *self.arrays, force=True)
        return self.tuned


STATISTICS = ("best", "median")


def own_times(cases, rounds):
    """{kernel: {statistic: {index: ns}}}"""
    with stage.daemon(rounds=rounds, warm_up=None if stage.quick() else "1s"):
        timed = {case.name: [v for v in case.tune().variants if v.is_timed] for case in cases}
    return {name: {which: {v.index: getattr(v, which) for v in variants} for which in STATISTICS}
            for name, variants in timed.items()}


def smaller(first, second):
    """Of two answers of own_times."""
    return {name: {which: {index: min(ns, second[name][which][index]) for index, ns in times.items()}
                   for which, times in statistics.items()} for name, statistics in first.items()}


def tunes(cases, count):
    """{kernel: [Result]}"""
    with stage.daemon():
        return {case.name: [case.tune() for _ in range(count)] for case in cases}


def regrets_of(results, times):
    best = min(times.values())
    return [times[result.winner_index] / best - 1 for result in results]


def report_own(figures, own, cases):
    for case in cases:
        settings = {variant.index: variant.label() for variant in case.tuned.variants}
        fastest, middle = (own[case.name][which] for which in STATISTICS)
        figures.add(f"{case.name}: fastest sample of the best variant, long and quiet", min(fastest.values()) / 1e3, "us",
                    note=", ".join(f"{settings[i]} {ns / 1e3:.2f}" for i, ns in fastest.items()),
                    detail={"settings": settings, **own[case.name]})
        figures.add(f"{case.name}: median of the best variant, long and quiet", min(middle.values()) / 1e3, "us",
                    note=", ".join(f"{settings[i]} {ns / 1e3:.2f}" for i, ns in middle.items()))


def report(figures, label, results, own):
    for name, found in results.items():
        regrets = {which: regrets_of(found, own[name][which]) for which in STATISTICS}
        small = {which: sum(regret <= LIMIT for regret in regrets[which]) for which in STATISTICS}
        most = {which: 100 * max(regrets[which]) for which in STATISTICS}
        winners = collections.Counter(", ".join(map(str, result.winner.values())) for result in found)
        figures.add(f"{name}: tunes of {len(found)} with regret <= 1 % by the fastest sample, {label}", small["best"], "",
                    at_least=None if stage.quick() else len(found),
                    note=f"largest {most['best']:.2f} %; won: " + ", ".join(f"{k} x {v}" for k, v in winners.most_common()),
                    detail={"regrets": regrets["best"], "winners": [result.winner_index for result in found]})
        figures.add(f"{name}: the same by the median, {label}", small["median"], "",
                    note=f"largest {most['median']:.2f} %; contended {sum(result.contended for result in found)}",
                    detail={"regrets": regrets["median"]})


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
    own = smaller(before, own_times(cases, chosen.rounds))
    report_own(figures, own, cases)
    report(figures, "quiet", quiet, own)
    report(figures, "another process loads the card", loaded, own)
    return figures.status()


if __name__ == "__main__":
    sys.exit(main())
