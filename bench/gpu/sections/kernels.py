#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Softmax, layernorm, rmsnorm, transpose and row sums beside Triton's, each side tuned, and beside a copy of as many bytes.

kernels.py [--rounds N] [NAME ...]

Each round queues every candidate once behind a sleeping kernel, the L2 written before each, and begins with another one
(winner.py).
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys

import stage
import winner

sys.path.insert(0, os.path.join(os.path.dirname(stage.HERE), "peers"))

NEAR = 1.02
OF_COPY = 0.85


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=60)
    options.add_argument("names", nargs="*", metavar="NAME")
    chosen = options.parse_args()
    figures = stage.Figures()
    with stage.daemon():
        compare(figures, chosen.rounds, chosen.names)
    return figures.status()


def cases(torch, ours, triton):
    """Name -> ({way: launch}, bytes that are moved, the two outputs, how far they may differ, ours)."""
    found = {}

    def add(name, kernel, grid, inputs, out, more, rivals, close):
        other, arrays = torch.zeros_like(out), [a for a in inputs if not isinstance(a, float)]
        ways = {"phobos": lambda: kernel[grid](*inputs, out, *more)}
        for way, rival in rivals.items():
            ways[way] = lambda rival=rival: rival(*inputs, other, *more)
        moved = sum(a.numel() * a.element_size() for a in arrays) + out.numel() * out.element_size()
        found[name] = ways, moved, (out, other), close, kernel

    generator = torch.Generator(device="cuda").manual_seed(1)
    wide = torch.randn(4096, 4096, device="cuda", generator=generator)
    odd = torch.randn(4096, 1823, device="cuda", generator=generator)
    weight, bias = torch.randn(4096, device="cuda", generator=generator), torch.randn(4096, device="cuda", generator=generator)
    sums = torch.zeros(4096, device="cuda")
    soft = {"Triton": triton.softmax, "Triton, a program a row": triton.softmax_of_a_row}
    add("softmax f32 4096 x 4096", ours.softmax, ours.rows, [wide], torch.zeros_like(wide), [], soft, 1e-6)
    add("softmax f32 4096 x 1823", ours.softmax_of_any, ours.rows, [odd], torch.zeros_like(odd), [], soft, 1e-6)
    half = wide.half()
    add("softmax f16 4096 x 4096", ours.softmax_of_halves, ours.rows, [half], torch.zeros_like(half), [], soft, 1e-3)
    add("layernorm f32 4096 x 4096", ours.layernorm, ours.rows, [wide, weight, bias], torch.zeros_like(wide), [1e-5],
        {"Triton": triton.layernorm}, 1e-4)
    add("rmsnorm f32 4096 x 4096", ours.rmsnorm, ours.rows, [wide, weight], torch.zeros_like(wide), [1e-5],
        {"Triton": triton.rmsnorm}, 1e-4)
    add("row sum f32 4096 x 4096", ours.rowsum, ours.groups, [wide], sums, [], {"Triton": triton.rowsum}, 1e-2)
    add("transpose f32 4096 x 4096", ours.transpose, ours.tiles, [wide], torch.zeros_like(wide), [],
        {"Triton": triton.transpose}, 0.0)
    return found


def compare(figures, rounds, names):
    import torch

    import row_kernels
    import rows_and_tiles

    flush = torch.empty(torch.cuda.get_device_properties(0).L2_cache_size // 2, dtype=torch.int32, device="cuda")
    source, target = (torch.zeros(1 << 24, device="cuda") for _ in range(2))
    for name, (ways, moved, outputs, close, kernel) in cases(torch, row_kernels, rows_and_tiles).items():
        if names and not any(part in name for part in names):
            continue
        for launch in ways.values():
            launch()  # tunes
        torch.cuda.synchronize()
        apart = float((outputs[0].double() - outputs[1].double()).abs().max())
        figures.check(f"{name}: ours and Triton's differ by at most {close}", apart <= close, note=f"{apart:.2g}")
        half = moved // 2 // source.element_size()
        ways["copy"] = lambda: target[:half].copy_(source[:half])
        report(figures, name, winner.timed(torch, ways, flush, rounds), moved, kernel)


def report(figures, name, times, moved, kernel):
    """Compared within each round, as in winner.py; the copy moves as many bytes."""
    middle = {way: statistics.median(values) for way, values in times.items()}
    over = {
        way: statistics.median(ours / theirs for ours, theirs in zip(times["phobos"], values))
        for way, values in times.items()
    }
    shown = ", ".join(f"{way} {us:.2f}" for way, us in middle.items())
    best = kernel.result(M=4096, N=1823 if "1823" in name else 4096).winner
    said = ", ".join(f"{key} {value}" for key, value in best.items())
    figures.add(f"{name}: time over the better of Triton's", max(over[way] for way in over if "Triton" in way), "times",
                at_most=NEAR, note=f"medians {shown} us; {said}", detail={"us": times})
    figures.add(f"{name}: of a copy's bandwidth", 1 / over["copy"], "times", at_least=OF_COPY,
                note=f"{moved / middle['phobos'] / 1e3:.0f} GB/s")


if __name__ == "__main__":
    sys.exit(main())
