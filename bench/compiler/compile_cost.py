#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What phobos-compile costs: CPU a variant of the vector add, and 256 variants at two jobs.

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

CPU_LIMIT_MS, WALL_LIMIT_S = 7.0, 1.2

SOURCE = """from __future__ import annotations
import phobos.lang as ph


@ph.kernel(key=("N",))
@ph.autotune(BLOCK={blocks})
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
"""


def compiled(blocks, chip):
    """One run over these block sizes: (wall s, CPU s)."""
    compiler = located("PHOBOS_COMPILER", "bazel-bin/compiler/main/phobos-compile")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "add.py")
        with open(path, "w") as file:
            file.write(SOURCE.format(blocks=list(blocks)))
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
    cases = {
        "the requirements' 5": (256, 512, 1024, 2048, 4096),
        "256 block sizes": tuple(64 * k for k in range(256, 0, -1)),
    }
    figures = {}
    print(f"{'variants':24}{'wall ms':>10}{'CPU ms':>10}{'CPU ms a variant':>18}")
    for name, blocks in cases.items():
        runs = [compiled(blocks, chosen.chip) for _ in range(chosen.times)]
        wall, cpu = (statistics.median(run[part] for run in runs) for part in (0, 1))
        figures[name] = {"wall_s": wall, "cpu_s": cpu, "variants": len(blocks)}
        print(f"{name:24}{1e3 * wall:10.1f}{1e3 * cpu:10.1f}{1e3 * cpu / len(blocks):18.2f}")
    many = figures["256 block sizes"]
    each = 1e3 * many["cpu_s"] / many["variants"]
    print(f"CPU a variant: {each:.2f} ms (at most {CPU_LIMIT_MS:.0f})")
    print(f"256 variants: {many['wall_s']:.2f} s (at most {WALL_LIMIT_S})")
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 0 if each <= CPU_LIMIT_MS and many["wall_s"] <= WALL_LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
