#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What phobos-compile costs: CPU a variant of the vector add, 256 variants of it and 64 of a GEMM at two jobs.

    python3 bench/compiler/compile_cost.py [--json FILE] [--times N] [--chip NAME]

Each run is a process of its own, race check included, artifacts written. "CPU a variant" is the
whole process' CPU time over its variants.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from private_daemon import located

# CPU ms a variant, on the host chip and on a GPU; wall s of all.
LIMITS = {"256 block sizes": (7.0, 7.0, 1.2), "64 of a GEMM": (20.0, 16.0, 0.7)}

GEMM = """from __future__ import annotations
import phobos.lang as ph


@ph.kernel(key=("M", "N", "K"))
@ph.autotune(BM=[32, 256], BN=[32, 256], BK=[32, 256])
def gemm(a: ph.tensor[ph.f32][M, K], b: ph.tensor[ph.f32][K, N], c: ph.tensor[ph.f32][M, N], alpha: ph.f32, beta: ph.f32):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    acc: ph.tile[ph.f32][BM, BN] = 0.0
    for k in ph.range(0, K, BK):
        acc += ph.dot(a[i:+BM, k:+BK], b[k:+BK, j:+BN])
    c[i:+BM, j:+BN] = alpha * acc + beta * c[i:+BM, j:+BN]
"""

ADD = """from __future__ import annotations
import phobos.lang as ph


@ph.kernel(key=("N",))
@ph.autotune(BLOCK={blocks})
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
"""


def compiled(source, chip):
    """One run over the space of a source: (wall s, CPU s)."""
    compiler = located("PHOBOS_COMPILER", "bazel-bin/compiler/main/phobos-compile")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.py")
        with open(path, "w") as file:
            file.write(source)
        command = [compiler, path, "--all-variants", "--check-races", "--jobs=2", "--chip", chip]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        subprocess.run([*command, "--out", folder], check=True, stdout=subprocess.DEVNULL)
        wall = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--json", help="also write the figures to this file")
    options.add_argument("--times", type=int, default=5)
    options.add_argument("--chip", default="native")
    chosen = options.parse_args()
    blocks = (256, 512, 1024, 2048, 4096)
    many = tuple(64 * k for k in range(256, 0, -1))
    cases = {
        "the requirements' 5": (ADD.format(blocks=list(blocks)), len(blocks)),
        "256 block sizes": (ADD.format(blocks=list(many)), len(many)),
        "64 of a GEMM": (GEMM, 64),
    }
    figures, met = {}, True
    print(f"{'variants':24}{'wall ms':>10}{'CPU ms':>10}{'CPU ms a variant':>18}")
    for name, (source, variants) in cases.items():
        runs = [compiled(source, chosen.chip) for _ in range(chosen.times)]
        wall, cpu = (statistics.median(run[part] for run in runs) for part in (0, 1))
        figures[name] = {"wall_s": wall, "cpu_s": cpu, "variants": variants}
        print(f"{name:24}{1e3 * wall:10.1f}{1e3 * cpu:10.1f}{1e3 * cpu / variants:18.2f}")
        if name in LIMITS:
            host_ms, gpu_ms, wall_s = LIMITS[name]
            cpu_ms = gpu_ms if chosen.chip.startswith("sm_") else host_ms
            print(f"  at most {cpu_ms:.0f} ms CPU a variant, {wall_s} s wall")
            met &= 1e3 * cpu / variants <= cpu_ms and wall <= wall_s
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
