# SPDX-License-Identifier: Apache-2.0
"""Kernels whose races depend on the values of their arguments, and tunes of them. As a program: runs the cases that are
named, and says what became of each variant."""

from __future__ import annotations

import ctypes
import json
import os
import sys

import numpy as np
import phobos.lang as ph

LENGTH = 1000


@ph.kernel(key=("N",))
@ph.autotune(B=[64, 24])
def scatter(x: ph.tensor[ph.f32][N], to: ph.tensor[ph.i32][N], out: ph.tensor[ph.f32][M]):
    i: ph.let = ph.ctx.block.x * B
    at: ph.let = ph.load(to[i:+B], fill=-1)
    out[at] = x[i:+B]


@ph.kernel(key=("N",))
@ph.autotune(B=[64])
def scatter_in_one_way(x: ph.tensor[ph.f32][N], to: ph.tensor[ph.i32][N], out: ph.tensor[ph.f32][M]):
    i: ph.let = ph.ctx.block.x * B
    out[ph.load(to[i:+B], fill=-1)] = x[i:+B]


@ph.kernel(key=("N",))
@ph.autotune(B=[64, 24])
def follow(to: ph.tensor[ph.i32][N], out: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x * B
    out[i:+B] = out[ph.load(to[i:+B], fill=-1)] + 1.0


@ph.kernel(key=("N",))
@ph.autotune(B=[64, 24])
def count_and_mark(to: ph.tensor[ph.i32][N], count: ph.tensor[ph.i32][M], seen: ph.tensor[ph.i32][N]):
    i: ph.let = ph.ctx.block.x * B
    at: ph.let = ph.load(to[i:+B], fill=-1)
    ph.atomic_add(count[ph.where(at < 0, -1, at % 7)], 1)
    seen[at] = 1


@ph.kernel(key=("N",))
@ph.autotune(B=[64, 24])
def count_and_clear(to: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N]):
    i: ph.let = ph.ctx.block.x * B
    ph.atomic_add(out[ph.load(to[i:+B], fill=-1)], 1)
    out[i:+B] = 0


def permutation(length=LENGTH):
    return np.random.default_rng(3).permutation(length).astype(np.int32)


def scattered(x, to, out):
    out[to] = x
    return {"out": out}


def followed(to, out):
    return {"out": out[to] + np.float32(1)}


def counted_and_marked(to, count, seen):
    np.add.at(count, to % 7, 1)
    seen[to] = 1
    return {"count": count, "seen": seen}


def cleared(to, out):
    return {"out": np.zeros_like(out)}


def scatter_arguments(to):
    return [np.arange(1, len(to) + 1, dtype=np.float32), to, np.zeros(len(to), np.float32)]


def clashing(first, second):
    """Elements `first` and `second` go to one place."""
    to = permutation()
    to[first] = to[second]
    return to


own = np.arange(LENGTH, dtype=np.int32)
swapped = own.copy()
swapped[[3, 999]] = 999, 3

CASES = {
    "unique": (scatter, scattered, scatter_arguments(permutation())),
    "unique_in_one_way": (scatter_in_one_way, scattered, scatter_arguments(permutation())),
    "large": (scatter_in_one_way, scattered, scatter_arguments(permutation(1 << 20))),
    "empty": (scatter, scattered, scatter_arguments(np.zeros(0, np.int32))),
    "across_blocks": (scatter, scattered, scatter_arguments(clashing(999, 3))),
    "in_a_block": (scatter, scattered, scatter_arguments(clashing(7, 3))),
    "reads_its_own": (follow, followed, [own, np.zeros(LENGTH, np.float32)]),
    "reads_anothers": (follow, followed, [swapped, np.zeros(LENGTH, np.float32)]),
    "atomics": (count_and_mark, counted_and_marked, [permutation(), np.zeros(7, np.int32), np.zeros(LENGTH, np.int32)]),
    "atomic_and_store": (count_and_clear, cleared, [swapped, np.zeros(LENGTH, np.int32)]),
}


class OnCard:
    """An array of the stand-in card."""

    def __init__(self, values):
        cuda = ctypes.CDLL(os.environ["PHOBOS_CUDA_LIBRARY"])
        cuda.cuMemAlloc_v2.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        cuda.cuMemcpyAsync.argtypes = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p)
        self.cuda, self.like, base = cuda, values, ctypes.c_uint64()
        assert cuda.cuMemAlloc_v2(ctypes.byref(base), values.nbytes) == 0
        self.address = base.value
        self.copy(self.address, values.ctypes.data)

    def copy(self, to, source):
        assert self.cuda.cuMemcpyAsync(to, source, self.like.nbytes, None) == 0
        assert self.cuda.cuStreamSynchronize(None) == 0

    def get(self):
        values = np.empty_like(self.like)
        self.copy(values.ctypes.data, self.address)
        return values

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.like.shape, "typestr": self.like.dtype.str, "data": (self.address, False),
                "strides": None, "stream": 1, "version": 3}


def grid(meta):
    return (max(1, -(-meta["N"] // meta["B"])),)


def run(name, is_on_card):
    """{settings: [status, reason, whether recorded]}; a winner is launched, and is right."""
    kernel, reference, arguments = CASES[name]
    want = reference(*(a.copy() for a in arguments))
    arrays = [OnCard(a) if is_on_card else a.copy() for a in arguments]
    try:
        variants = kernel.tune(grid, *arrays, reference=reference, force=True).variants
    except ph.TuneError as error:
        variants = error.variants
    else:
        kernel[grid](*arrays)
        for array, parameter in zip(arrays, kernel.__wrapped__.__code__.co_varnames):
            got = array.get() if is_on_card else array
            assert parameter not in want or np.array_equal(got, want[parameter]), parameter
    return {v.label(): [v.status, v.reason, v.race_recorded] for v in variants}


if __name__ == "__main__":
    on_card = "PHOBOS_CUDA_LIBRARY" in os.environ
    if on_card:
        driver = ctypes.CDLL(os.environ["PHOBOS_CUDA_LIBRARY"])
        context = ctypes.c_void_p()
        assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert driver.cuCtxPushCurrent_v2(context) == 0
    print(json.dumps({name: run(name, on_card) for name in sys.argv[1:]}))
