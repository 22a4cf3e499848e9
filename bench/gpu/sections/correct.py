#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The add of every element type at awkward sizes, and of more than 2^31 elements, against NumPy, bit by bit.

correct.py [--most N] [--no-huge]        N: the largest of the ordinary sizes

Arrays are plain memory of the card with __cuda_array_interface__; what torch, CuPy, JAX and C++ hand over is looked at by
the sections "clients", "tune" and "launch".
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import os
import sys
import tempfile
import time

import stage

import numpy as np

import phobos.lang as ph

TYPES = {"f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16,
         "i32": np.int32, "i64": np.int64}
SIZES = (0, 1, 7, 100003, 1 << 24)
HUGE = (1 << 31) + 7
SLICE = 1 << 24

KERNELS = """
from __future__ import annotations
import numpy
import phobos.lang as ph

IN_SLICES = None  # correct.py sets it

def added(x, y, out):
    return {"out": IN_SLICES(numpy.add, x, y)}
"""
KERNELS += "".join(f"""
@ph.kernel(key=("N",), reference=added)
@ph.autotune(BLOCK=[256, 4096])
def add_{name}(x: ph.tensor[ph.{name}][N], y: ph.tensor[ph.{name}][N], out: ph.tensor[ph.{name}][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
""" for name in TYPES)
KERNELS += "".join(f"""
@ph.kernel(key=("N",), reference=added)
@ph.autotune(BLOCK=[1024, 4096], BITS=[32, 64])
@ph.index_bits("BITS")
def huge_{name}(x: ph.tensor[ph.{name}][N], y: ph.tensor[ph.{name}][N], out: ph.tensor[ph.{name}][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
""" for name in ("f16", "i8"))


def slices(count):
    return [slice(at, min(at + SLICE, count)) for at in range(0, count, SLICE)]


def on_threads(function, items):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(function, items))


def in_slices(function, *arrays):
    """function(*arrays), on all cores. The type is the first array's."""
    answer = np.empty_like(arrays[0])

    def fill(part):
        answer[part] = function(*(array[part] for array in arrays))

    on_threads(fill, slices(len(answer)))
    return answer


def module():
    folder = tempfile.mkdtemp(prefix="phobos-correct-")
    path = os.path.join(folder, "correct_kernels.py")
    with open(path, "w") as file:
        file.write(KERNELS)
    spec = importlib.util.spec_from_file_location("correct_kernels", path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["correct_kernels"] = loaded
    spec.loader.exec_module(loaded)
    loaded.IN_SLICES = in_slices
    return loaded


def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


def numbers(name, count, seed):
    """A block of random numbers, again and again: of a prime length, so that no two blocks of a launch get the same."""
    random, length = np.random.default_rng(seed), min(count, 1000003)
    if name == "bf16":
        block = ph.to_bf16(random.standard_normal(length).astype(np.float32))
    elif name[0] == "f":
        block = random.standard_normal(length).astype(TYPES[name])
    else:
        bounds = np.iinfo(TYPES[name])
        block = random.integers(bounds.min, bounds.max, length, dtype=TYPES[name], endpoint=True)
    answer = np.empty(count, TYPES[name])
    on_threads(lambda at: answer.__setitem__(slice(at, at + length), block[:count - at]), range(0, count, max(length, 1)))
    return answer


def sum_of(name):
    if name == "bf16":
        return lambda x, y: ph.to_bf16(ph.from_bf16(x) + ph.from_bf16(y))
    return np.add


def difference(name, x, y, got):
    """How many elements are not the sum."""
    bits = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[got.itemsize]
    wrong = lambda part: np.count_nonzero(sum_of(name)(x[part], y[part]).view(bits) != got[part].view(bits))
    return sum(on_threads(wrong, slices(len(got))))


def launched(driver, kernel, name, count):
    """(wrong elements, seconds of the call)"""
    x, y = numbers(name, count, 1), numbers(name, count, 2)
    arrays = [stage.CardArray(driver, array, name) for array in (x, y, np.zeros_like(x))]
    start = time.perf_counter()
    kernel[grid](*arrays)
    driver.synchronize()
    took = time.perf_counter() - start
    wrong = difference(name, x, y, arrays[2].host())
    for array in arrays:
        array.free()
    return wrong, took


def ordinary(figures, driver, kernels, sizes):
    for name in TYPES if not stage.quick() else ("bf16", "f16", "i64"):
        kernel, notes, wrong = getattr(kernels, "add_" + name), [], 0
        for count in sizes:
            differ, took = launched(driver, kernel, name, count)
            wrong += differ
            statuses = {v.status for v in kernel.result(N=count).variants} if count else set()
            notes.append(f"{count}: {took:.2f}" + ("" if statuses <= {"timed"} else f" {statuses}"))
        figures.check(f"{name}: the sum is NumPy's at {len(sizes)} sizes", wrong == 0, note="s: " + ", ".join(notes))


def huge(figures, driver, kernels, count):
    for name in ("i8", "f16"):
        kernel = getattr(kernels, "huge_" + name)
        wrong, took = launched(driver, kernel, name, count)
        figures.check(f"{name}: the sum of 2^31 + 7 elements is NumPy's", wrong == 0, note=f"call {took:.1f} s")
        variants = kernel.result(N=count).variants
        left_out = [v for v in variants if v.settings["BITS"] == 32]
        figures.check(f"{name}: the 32-bit variants are left out", all(not v.is_timed and v.reason for v in left_out),
                      note=left_out[0].reason)
        figures.check(f"{name}: the 64-bit variants are timed", all(v.is_timed for v in variants if v.settings["BITS"] == 64))


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--most", type=int, default=7 if stage.quick() else 1 << 24)
    options.add_argument("--no-huge", action="store_true", default=stage.quick())
    chosen = options.parse_args()
    figures, driver, kernels = stage.Figures(), stage.cuda.Driver(), module()
    with stage.daemon():
        ordinary(figures, driver, kernels, [size for size in SIZES if size <= chosen.most])
    if not chosen.no_huge:
        # A machine whose memory grows with its use says that it has less than it gives.
        with stage.daemon("--copy-bytes=64G", "--segment-bytes=64G"):
            huge(figures, driver, kernels, HUGE)
    return figures.status()


if __name__ == "__main__":
    sys.exit(main())
