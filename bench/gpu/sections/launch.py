#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a launch costs the host: Python beside Triton, C++ beside cuLaunchKernel, each in one process and in turn.

launch.py [--n N] [--batches N]

A batch of launches is timed, fewer than a stream holds; the card empties its queue between batches.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time

import stage

BATCH = 200
OF_TRITON, ABOVE_DRIVER_US = 0.5, 0.5


def from_python(figures, n, batches):
    import torch

    import phobos_kernels
    import triton_kernels

    x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    out = torch.zeros_like(x)
    launcher, stream = phobos_kernels.add[phobos_kernels.grid], torch.cuda.current_stream()
    ways = {
        "phobos": lambda: launcher(x, y, out),
        "phobos, stream given": lambda: launcher(x, y, out, stream=stream),
        "Triton, autotuned": lambda: triton_kernels.add(x, y, out),
        "torch.add": lambda: torch.add(x, y, out=out),
    }
    times = {way: [] for way in ways}
    for launch in ways.values():
        launch()
    for _ in range(batches):
        for way, launch in ways.items():
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(BATCH):
                launch()
            times[way].append(1e6 * (time.perf_counter() - began) / BATCH)
    middle = {way: statistics.median(values) for way, values in times.items()}
    note = ", ".join(f"{way} {us:.2f}" for way, us in middle.items()) + " us"
    figures.add("launch from Python over Triton's", middle["phobos"] / middle["Triton, autotuned"], "times", at_most=OF_TRITON,
                note=note, detail={"us": times})


def from_cpp(figures, n):
    source = os.path.join(stage.HERE, "phobos_kernels.py")
    done = subprocess.run([stage.located("launch_on_card"), source, str(n)], capture_output=True, text=True, timeout=100)
    lines = [line.split() for line in done.stdout.splitlines()]
    if done.returncode or not lines:
        figures.check("C++ on device pointers", False, note=(done.stdout + done.stderr)[-500:])
        return
    figures.check("C++ on device pointers: tunes, and the sum is right", ["wrong", "0"] in lines)
    for _, name, middle, above in (line for line in lines if line[0] == "us"):
        if name != "cuLaunchKernel":
            figures.add(f"launch from C++, {name} above cuLaunchKernel", float(above), "us", at_most=ABOVE_DRIVER_US,
                        note=f"{float(middle):.3f} us; batch by batch")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--n", type=int, default=4096)
    options.add_argument("--batches", type=int, default=100)
    chosen = options.parse_args()
    figures = stage.Figures()
    with stage.daemon():
        from_cpp(figures, chosen.n)
        if importlib.util.find_spec("torch") and importlib.util.find_spec("triton"):
            from_python(figures, chosen.n, chosen.batches)
        else:
            figures.skipped("launch from Python", "torch or Triton is not installed")
    return figures.status()


if __name__ == "__main__":
    sys.exit(main())
