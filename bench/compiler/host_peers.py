#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tuned kernels on the host chip beside what people use there: a GEMM beside NumPy's BLAS, a softmax beside C.

    python3 bench/compiler/host_peers.py [--json FILE] [--rounds N] [--size N] [gemm] [softmax]

All sides take two threads and turns in one process; figures are of each side's fastest and median round. Of the GEMM, whose
rounds are long enough for that, also of the round that took the least CPU time, a thread: other work on the machine changes
that least. The peak is that of a loop of independent fmas on one thread, by its CPU time: what no GEMM on this chip can pass.
The softmax takes ten times as many rounds, and a copy of as many bytes takes turns with it, for it is bound by memory: where
others use the machine's memory too, the copy is slower and the softmax with it, the C less so. Starts a daemon of its own.
Needs libphobos.so, phobosd and phobos-compile, built in the checkout or named by PHOBOS_LIBRARY, PHOBOS_DAEMON and
PHOBOS_COMPILER, and gcc.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

THREADS = 2
# Threads that wait for their next work must not take the other side's processor.
os.environ.update(OPENBLAS_NUM_THREADS=str(THREADS), OMP_NUM_THREADS=str(THREADS), OMP_WAIT_POLICY="passive")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from private_daemon import ROOT, private_daemon

import numpy as np

import phobos.lang as ph

GEMM_LIMIT, SOFTMAX_LIMIT = 1.3, 1.25


def product(a, b, c):
    return {"c": a @ b}


def softmax_of_rows(x, out):
    e = np.exp(x - x.max(1, keepdims=True))
    return {"out": e / e.sum(1, keepdims=True)}


@ph.kernel(key=("M", "N", "K"), reference=product, rtol=1e-3, atol=1e-2)
@ph.autotune(BM=[256, 512], BN=[256, 512], BK=[256, 512])
def gemm(a: ph.tensor[ph.f32][M, K], b: ph.tensor[ph.f32][K, N], c: ph.tensor[ph.f32][M, N]):
    i: ph.let = ph.ctx.block.x * BM
    j: ph.let = ph.ctx.block.y * BN
    acc: ph.tile[ph.f32][BM, BN] = 0.0
    for k in ph.range(0, K, BK):
        acc += ph.dot(a[i:+BM, k:+BK], b[k:+BK, j:+BN])
    c[i:+BM, j:+BN] = acc


@ph.kernel(key=("N",), reference=softmax_of_rows)
@ph.autotune(R=[1, 2, 4], C=[1024, 4096])
@ph.constraint("C >= N")
def softmax(x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][M, N]):
    i: ph.let = ph.ctx.block.x * R
    t: ph.let = ph.load(x[i:+R, 0:+C], fill=-ph.inf)
    e: ph.let = ph.exp(t - ph.rowmax(t))
    out[i:+R, 0:+C] = e * (1.0 / ph.rowsum(e))


def library(name, *flags):
    """A C file of this folder, compiled here for this machine and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name + ".so")
        source = os.path.join(ROOT, "bench/compiler", name + ".c")
        command = ["gcc", "-O3", "-march=native", *flags, "-shared", "-fPIC", "-o", path, source, "-lm"]
        subprocess.run(command, check=True)
        return ctypes.CDLL(path)


def in_turn(rounds, sides):
    """Seconds, and CPU seconds a thread, of each side's rounds, after one that is not counted."""
    times = {name: ([], []) for name in sides}
    for turn in range(-1, rounds):
        for name, run in sides.items():
            began, cpu_began = time.perf_counter(), time.process_time()
            run()
            if turn >= 0:
                times[name][0].append(time.perf_counter() - began)
                times[name][1].append((time.process_time() - cpu_began) / THREADS)
    return times


def report(title, unit, work, times, limit, figures, has_cpu):
    """Prints each side's rate; gives the first one's over the second one's, fastest round by fastest round."""
    print(f"{title}, {THREADS} threads: {unit}, fastest and median round" + (", and by CPU time" if has_cpu else ""))
    rows = {}
    for name, (wall, cpu) in times.items():
        seconds = [min(wall), statistics.median(wall)] + ([min(cpu)] if has_cpu else [])
        rows[name] = [work / each / 1e9 for each in seconds]
        print(f"  {name:20}" + "".join(f"{rate:10.1f}" for rate in rows[name]))
    ratios = [ours / theirs for ours, theirs in zip(*list(rows.values())[:2])]
    print("  " + " ".join(f"{ratio:.2f} x" for ratio in ratios) + f" (the first at least {limit})")
    figures[title] = {"unit": unit, "rates": rows, "ratios": ratios}
    return ratios[0]


def blas():
    """What NumPy multiplies matrices with: the library's file, and its version and kernels where it tells them."""
    with open("/proc/self/maps") as file:
        names = sorted({line.split()[-1] for line in file if re.search(r"(blas|mkl)", line)})
    for name in names:
        try:
            about = ctypes.CDLL(name).openblas_get_config
        except (OSError, AttributeError):
            continue
        about.restype = ctypes.c_char_p
        return f"{name}: {about().decode()}"
    return ", ".join(names) or "none of its own"


def gemm_section(size, rounds, figures):
    generator = np.random.default_rng(1)
    a, b = (generator.standard_normal((size, size), np.float32) for _ in range(2))
    c, theirs = np.zeros_like(a), np.zeros_like(a)
    grid = lambda meta: (-(-meta["M"] // meta["BM"]), -(-meta["N"] // meta["BN"]))
    tuned = gemm.tune(grid, a, b, c)
    print(tuned)
    sides = {"phobos": lambda: gemm[grid](a, b, c), "NumPy": lambda: np.matmul(a, b, out=theirs)}
    times = in_turn(rounds, sides)
    np.testing.assert_allclose(c, theirs, rtol=1e-3, atol=1e-3 * size**0.5)
    print("NumPy's BLAS:", blas())
    work = 2 * size**3
    ratio = report(f"f32 GEMM {size}", "GFLOP/s", work, times, GEMM_LIMIT, figures, has_cpu=True)
    peak = library("peak").peak_gflops
    peak.restype = ctypes.c_double
    most = THREADS * peak()
    shares = {name: work / min(cpu) / 1e9 / most for name, (_, cpu) in times.items()}
    text = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    print(f"  the chip's peak: {most:.0f} GFLOP/s; of it by CPU time {text}")
    figures[f"f32 GEMM {size}"].update(peak=most, of_peak=shares, blas=blas())
    return ratio >= GEMM_LIMIT


def softmax_section(rounds, figures):
    hand = library("hand_softmax", "-ffast-math", "-fopenmp").hand_softmax
    copy = library("hand_copy", "-fopenmp").hand_copy
    for function in (hand, copy):
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
        function.restype = None
    met = True
    for rows, columns in ((4096, 1024), (4096, 4096), (8192, 1003)):
        x = np.random.default_rng(2).standard_normal((rows, columns), np.float32)
        out, theirs, copied = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
        grid = lambda meta: (-(-rows // meta["R"]),)
        softmax.tune(grid, x, out)
        sides = {
            "phobos": lambda: softmax[grid](x, out),
            "C -ffast-math": lambda: hand(x.ctypes.data, theirs.ctypes.data, rows, columns),
            "a copy": lambda: copy(x.ctypes.data, copied.ctypes.data, rows, columns),
        }
        times = in_turn(rounds, sides)
        np.testing.assert_allclose(out, theirs, rtol=1e-4, atol=1e-7)
        title = f"softmax {rows} x {columns}"
        met &= report(title, "GB/s", 2 * x.nbytes, times, SOFTMAX_LIMIT, figures, has_cpu=False) >= SOFTMAX_LIMIT
    return met


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("sections", nargs="*", default=["gemm", "softmax"])
    options.add_argument("--json", help="also write the figures to this file")
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--size", type=int, default=2048)
    chosen = options.parse_args()
    figures, met = {}, True
    with private_daemon():
        if "gemm" in chosen.sections:
            met &= gemm_section(chosen.size, chosen.rounds, figures)
        if "softmax" in chosen.sections:
            met &= softmax_section(10 * chosen.rounds, figures)
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
