#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the winners are on the card, beside Triton's and torch's: all in one process, in turn, the L2 written before each.

winner.py [--n N] [--rounds N]

Each round queues every candidate once behind a sleeping kernel, so that the card never waits for the host, and begins
with another one. The time is that of a pair of CUDA events around the launch.
"""

from __future__ import annotations

import argparse
import statistics
import sys

import stage

NEAR = 1.01


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--n", type=int, default=1 << 24)
    options.add_argument("--rounds", type=int, default=400)
    chosen = options.parse_args()
    figures = stage.Figures()
    with stage.daemon():
        compare(figures, chosen.n, chosen.rounds)
    return figures.status()


def compare(figures, n, rounds):
    import torch

    import phobos_kernels
    import triton_kernels

    x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    out, other = torch.zeros_like(x), torch.zeros_like(x)
    grid, gelu = phobos_kernels.grid, torch.nn.functional.gelu
    # y changes from launch to launch, by almost nothing: the time does not depend on it.
    tiny = 1e-6
    cases = {
        "add": {"phobos": lambda: phobos_kernels.add[grid](x, y, out), "Triton": lambda: triton_kernels.add(x, y, out),
                "torch": lambda: torch.add(x, y, out=out)},
        "saxpy": {"phobos": lambda: phobos_kernels.saxpy[grid](tiny, x, y), "Triton": lambda: triton_kernels.saxpy(tiny, x, y),
                  "torch": lambda: y.add_(x, alpha=tiny)},
        "gelu": {"phobos": lambda: phobos_kernels.gelu[grid](x, out), "Triton": lambda: triton_kernels.gelu(x, other),
                 "torch": lambda: gelu(x)},
    }
    for name, ways in cases.items():
        for launch in ways.values():
            launch()  # tunes
        torch.cuda.synchronize()
    figures.check("gelu: ours and Triton's differ by less than 1e-6", bool((out - other).abs().max() < 1e-6))
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    flush = torch.empty(2 * l2 // 4, dtype=torch.int32, device="cuda")
    for name, ways in cases.items():
        times = timed(torch, ways, flush, rounds)
        rivals = ("Triton", "torch") if name == "add" else ("Triton",)
        winners = getattr(phobos_kernels, name).result(N=n).winner["BLOCK"], triton_kernels.winner(name)
        report(figures, name, times, rivals, winners)


def timed(torch, ways, flush, rounds):
    """{way: [us a launch]}."""
    times, names = {way: [] for way in ways}, list(ways)
    for number in range(rounds + 10):
        order = names[number % len(names):] + names[:number % len(names)]
        torch.cuda._sleep(3_000_000)  # cycles; longer than the host needs to queue a round
        pairs = {}
        for way in order:
            flush.fill_(number)
            pairs[way] = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            pairs[way][0].record()
            ways[way]()
            pairs[way][1].record()
        torch.cuda.synchronize()
        if number >= 10:
            for way, (begin, end) in pairs.items():
                times[way].append(1e3 * begin.elapsed_time(end))
    return times


def report(figures, name, times, rivals, winners):
    """The card takes two speeds some 2 % apart by turns, so that a median of one side's times lies now on the one and now
    on the other: the sides are compared within each round."""
    middle = {way: statistics.median(values) for way, values in times.items()}
    best = {way: min(values) for way, values in times.items()}
    shown = ", ".join(f"{way} {middle[way]:.2f}" for way in times)
    blocks = f"BLOCK {winners[0]}, Triton's {winners[1].split(',')[0].split()[-1]}"
    over = max(statistics.median(ours / theirs for ours, theirs in zip(times["phobos"], times[rival])) for rival in rivals)
    better = f"the better of {' and '.join(rivals)}" if len(rivals) > 1 else rivals[0]
    figures.add(f"{name}: winner's time over {better}", over, "times", at_most=NEAR,
                note=f"round by round; medians {shown} us; {blocks}", detail={"us": times, "winners": winners})
    rival = min(rivals, key=best.get)
    figures.add(f"{name}: winner's least over {rival}'s", best["phobos"] / best[rival], "times",
                note=", ".join(f"{way} {us:.2f}" for way, us in best.items()) + " us")


if __name__ == "__main__":
    sys.exit(main())
