#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Matrix products and attention beside Triton's and torch's, each side tuned.

gemm.py [--side N] [--rounds N]

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

HALVES_OF_TRITON = 0.55
FLOATS_OF_TORCH = 0.8
ATTENTION_OF_TRITON = 0.5
HEADS = 64


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--side", type=int, default=4096)
    options.add_argument("--rounds", type=int, default=30)
    chosen = options.parse_args()
    figures = stage.Figures()
    with stage.daemon():
        compare(figures, chosen.side, chosen.rounds)
    return figures.status()


def cases(torch, ours, triton, side):
    """Name -> ({way: launch}, operations, the two outputs, how far they may differ, the rival, at least, winner)."""
    torch.backends.cuda.matmul.allow_tf32 = False

    def random(*shape, kind=torch.float16):
        return torch.randn(*shape, device="cuda", dtype=kind)

    found, work = {}, 2 * side ** 3
    a, b = random(side, side), random(side, side)
    c, other = torch.zeros_like(a), torch.zeros_like(a)
    found[f"f16 product of {side}"] = (
        {"phobos": lambda: ours.gemm[ours.tiles](a, b, c), "Triton": lambda: triton.matmul(a, b, other),
         "torch": lambda: torch.matmul(a, b)}, work, (c, other), 0.5, "Triton", HALVES_OF_TRITON,
        lambda: ours.gemm.result(M=side, N=side, K=side).winner)
    x, y = random(side, side, kind=torch.float32), random(side, side, kind=torch.float32)
    z, theirs = torch.zeros_like(x), torch.zeros_like(x)
    found[f"f32 product of {side}"] = (
        {"phobos": lambda: ours.gemm_of_f32[ours.tiles](x, y, z), "torch": lambda: torch.matmul(x, y, out=theirs)}, work,
        (z, theirs), 0.01, "torch", FLOATS_OF_TORCH, lambda: ours.gemm_of_f32.result(M=side, N=side, K=side).winner)
    for head, kernel in ((64, ours.attention_of_64), (128, ours.attention_of_128)):
        found[f"attention, head {head}"] = attention(torch, kernel, ours.queries, triton, side, head)
    return found


def attention(torch, kernel, queries, triton, side, head):
    q, k, v = (torch.randn(HEADS, side, head, device="cuda", dtype=torch.float16) for _ in range(3))
    out, rival = torch.zeros_like(q), torch.zeros_like(q)
    scale = head ** -0.5
    return ({"phobos": lambda: kernel[queries](q, k, v, out, scale), "Triton": lambda: triton.attention(q, k, v, rival, scale)},
            4 * HEADS * side * side * head, (out, rival), 0.01, "Triton", ATTENTION_OF_TRITON,
            lambda: kernel.result(Z=HEADS, N=side).winner)


def compare(figures, side, rounds):
    import torch

    import product_kernels
    import products

    flush = torch.empty(torch.cuda.get_device_properties(0).L2_cache_size // 2, dtype=torch.int32, device="cuda")
    for name, (ways, work, outputs, close, rival, least, won) in cases(torch, product_kernels, products, side).items():
        for launch in ways.values():
            launch()  # tunes
        torch.cuda.synchronize()
        apart = float((outputs[0].double() - outputs[1].double()).abs().max())
        figures.check(f"{name}: ours and {rival}'s differ by at most {close}", apart <= close, note=f"{apart:.2g}")
        times = winner.timed(torch, ways, flush, rounds)
        # Compared within each round, as in winner.py.
        share = statistics.median(theirs / mine for mine, theirs in zip(times["phobos"], times[rival]))
        rates = {way: work / statistics.median(values) / 1e6 for way, values in times.items()}
        shown = ", ".join(f"{way} {rate:.1f}" for way, rate in rates.items())
        said = ", ".join(f"{key} {value}" for key, value in won().items())
        figures.add(f"{name}: of {rival}'s rate", share, "times", at_least=least, note=f"TFLOP/s: {shown}; {said}",
                    detail={"us": times})


if __name__ == "__main__":
    sys.exit(main())
