#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a folder of make_bundle.py on the GPU and on this machine's CPU, on the same arguments, and compares every bit.

run_bundle.py [--time] [NAME ...]        NAME: a kernel of the bundle; all without one

NaNs are equal to each other whatever their bits. With --time, also times the add against a hand-written kernel with
128-bit loads. Exit code 1 if anything differs.
"""

import ctypes
import json
import os
import statistics
import sys

import numpy as np

import cuda

FOLDER = os.path.dirname(os.path.abspath(__file__))
SIZES = (0, 1, 7, 1021, 4096, 70001)
GUARD = 256  # bytes around a tensor that nobody may touch

# Element type -> NumPy's type of its bits, bits of a float's fraction (0: no float).
TYPES = {
    "F16": (np.uint16, 10), "BF16": (np.uint16, 7), "F32": (np.uint32, 23), "F64": (np.uint64, 52), "I8": (np.uint8, 0),
    "I16": (np.uint16, 0), "I32": (np.uint32, 0), "I64": (np.uint64, 0), "U8": (np.uint8, 0), "U16": (np.uint16, 0),
    "U32": (np.uint32, 0), "U64": (np.uint64, 0), "BOOL": (np.uint8, 0)
}

HAND_ADD = b"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry hand_add(.param .u64 x, .param .u64 y, .param .u64 out, .param .u64 n)
.maxntid 256, 1, 1
{
  .reg .b64 %a<8>; .reg .b32 %r<4>; .reg .f32 %f<12>;
  ld.param.u64 %a0, [x]; ld.param.u64 %a1, [y]; ld.param.u64 %a2, [out];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.lo.s32 %r2, %r0, 256, %r1;
  mul.wide.u32 %a3, %r2, 16;
  add.s64 %a4, %a0, %a3; add.s64 %a5, %a1, %a3; add.s64 %a6, %a2, %a3;
  ld.global.nc.v4.f32 {%f0, %f1, %f2, %f3}, [%a4];
  ld.global.nc.v4.f32 {%f4, %f5, %f6, %f7}, [%a5];
  add.rn.f32 %f0, %f0, %f4; add.rn.f32 %f1, %f1, %f5; add.rn.f32 %f2, %f2, %f6; add.rn.f32 %f3, %f3, %f7;
  st.global.v4.f32 [%a6], {%f0, %f1, %f2, %f3};
  ret;
}
\0"""


def manifest_of(kind, name):
    with open(os.path.join(FOLDER, kind, name, "manifest.json"), encoding="utf-8") as file:
        return json.load(file)


def artifact_path(kind, name, variant):
    return os.path.join(FOLDER, kind, name, variant["artifact"]["file"])


def random_bits(random, dtype, count):
    """Plain numbers mostly, edge values among them."""
    bits, fraction = TYPES[dtype]
    if dtype == "BOOL":
        return random.integers(0, 2, count).astype(bits)
    width = 8 * np.dtype(bits).itemsize
    if not fraction:
        small = random.integers(-20, 21, count).astype(np.int64).astype(bits)
        return np.where(random.random(count) < 0.5, small, random.integers(0, 1 << width, count, dtype=np.uint64).astype(bits))
    numbers = (random.standard_normal(count) * 2.0**random.integers(-6, 7, count)).astype(np.float32)
    if dtype == "F64":
        plain = numbers.astype(np.float64).view(bits)
    elif dtype == "F32":
        plain = numbers.view(bits)
    elif dtype == "F16":
        plain = numbers.astype(np.float16).view(bits)
    else:
        plain = (numbers.view(np.uint32) >> 16).astype(bits)
    infinity = ((1 << (width - 1 - fraction)) - 1) << fraction
    sign = 1 << (width - 1)
    edges = [0, 1, infinity - 1, infinity, infinity + 1, 1 << fraction, (1 << fraction) - 1]
    edges = np.array(edges + [e | sign for e in edges], dtype=np.uint64).astype(bits)
    any_bits = random.integers(0, 1 << width, count, dtype=np.uint64, endpoint=False) if width < 64 else \
        random.integers(0, 2**64, count, dtype=np.uint64, endpoint=False)
    which = random.random(count)
    return np.where(which < 0.7, plain, np.where(which < 0.9, any_bits.astype(bits), random.choice(edges, count)))


def is_nan(dtype, bits):
    kind, fraction = TYPES[dtype]
    width = 8 * np.dtype(kind).itemsize
    infinity = kind(((1 << (width - 1 - fraction)) - 1) << fraction)
    return (bits & kind((1 << (width - 1)) - 1)) > infinity


class Kernel:
    """One variant, on both sides."""

    def __init__(self, driver, name, description, host, gpu):
        self.driver = driver
        self.parameters = description["parameters"]
        self.settings = {s["name"]: int(s["int_value"]) for s in gpu.get("settings", []) if "int_value" in s}
        self.label = name + "".join(f" {n}={v}" for n, v in self.settings.items())
        library = ctypes.CDLL(artifact_path("host", name, host))
        self.entry = getattr(library, host["artifact"]["entry"])
        self.scratch = np.zeros(int(host["artifact"].get("scratch_bytes", 0)) + 64, dtype=np.uint8)
        self.threads = int(gpu["artifact"]["threads"])
        self.shared_bytes = int(gpu["artifact"].get("dynamic_shared_memory_bytes", 0))
        with open(artifact_path("gpu", name, gpu), "rb") as file:
            self.function = driver.load(file.read() + b"\0", gpu["artifact"]["entry"])

    def arguments(self, random, size):
        values = []
        for parameter in self.parameters:
            dtype = parameter["dtype"][len("DTYPE_"):]
            if parameter.get("is_tensor"):
                values.append((dtype, random_bits(random, dtype, size)))
            else:
                values.append((dtype, {"F32": np.float32(0.375).view(np.uint32), "I32": np.uint32(7)}[dtype]))
        return values

    def on_host(self, arguments, size, blocks):
        arrays = [np.array(value, copy=True) for _, value in arguments]
        slots = [a.ctypes.data if a.ndim else int(a) for a in arrays] + [size]
        grid = (ctypes.c_int64 * 3)(blocks, 1, 1)
        scratch = self.scratch.ctypes.data + -self.scratch.ctypes.data % 64
        self.entry((ctypes.c_uint64 * len(slots))(*slots), grid, ctypes.c_int64(0), ctypes.c_int64(blocks),
                   ctypes.c_void_p(scratch))
        return arrays

    def on_gpu(self, arguments, size, blocks, shift):
        """Tensors start `shift` elements behind a multiple of 256 bytes."""
        slots, places = [], []
        for _, value in arguments:
            if not value.ndim:
                slots.append(int(value))
                places.append(None)
                continue
            before = GUARD + shift * value.itemsize
            whole = np.full(before + value.nbytes + GUARD, 0xa5, dtype=np.uint8)
            whole[before:before + value.nbytes] = value.view(np.uint8)
            address = self.driver.allocate(whole.nbytes)
            self.driver.upload(address, whole)
            slots.append(address + before)
            places.append((address, before, whole))
        slots.append(size)
        words = (ctypes.c_uint64 * len(slots))(*slots)
        self.driver.launch(self.function, (blocks, 1, 1), self.threads, words, self.shared_bytes)
        self.driver.synchronize()
        arrays = []
        for (_, value), place in zip(arguments, places):
            if place is None:
                arrays.append(value)
                continue
            address, before, whole = place
            self.driver.download(whole, address)
            self.driver.free(address)
            inside = slice(before, before + value.nbytes)
            arrays.append(whole[inside].copy().view(value.dtype))
            whole[inside] = 0xa5
            if (whole != 0xa5).any():
                raise RuntimeError("wrote beside a tensor")
        return arrays

    def differences(self, random, tile, size, shift):
        blocks = -(-size // (self.settings[tile] if isinstance(tile, str) else tile)) + 1
        arguments = self.arguments(random, size)
        wanted = self.on_host(arguments, size, blocks)
        got = self.on_gpu(arguments, size, blocks, shift)
        found = []
        for parameter, (dtype, _), g, w in zip(self.parameters, arguments, got, wanted):
            if not parameter.get("is_written"):
                continue
            differ = g != w
            if TYPES[dtype][1]:
                differ &= ~(is_nan(dtype, g) & is_nan(dtype, w))
            if differ.any():
                at = int(np.argmax(differ))
                found.append(f"{self.label}, {size} elements, shift {shift}: {parameter['name']}: {int(differ.sum())} "
                             f"differ, first [{at}] GPU {int(g[at]):#x}, host {int(w[at]):#x}")
        return found


def variants_of(driver, name):
    host, gpu = manifest_of("host", name), manifest_of("gpu", name)
    for h, g in zip(host["variants"], gpu["variants"]):
        if g["status"] == "VARIANT_STATUS_COMPILED":
            yield Kernel(driver, name, gpu["description"], h, g)


def compare(driver, names, tiles):
    random = np.random.default_rng(1)
    failures, runs, kernels = [], 0, 0
    for name in names:
        for kernel in variants_of(driver, name):
            kernels += 1
            promises = any(p.get("aligned_bytes") for p in kernel.parameters)
            for size in SIZES + ((1 << 24,) if name == "add" else ()):
                for shift in (0,) if promises else (0, 1):
                    runs += 1
                    failures += kernel.differences(random, tiles[name], size, shift)
    for failure in failures[:60]:
        print(failure)
    print(f"{kernels} kernels, {runs} launches, {len(failures)} outputs differ")
    return not failures


def time_add(driver, rounds=40):
    """Microseconds of each variant of the add and of the hand-written one, in turn, the L2 written before each."""
    size = 1 << 24
    tensors = [driver.allocate(4 * size) for _ in range(3)]
    flush = driver.allocate(2 * driver.l2_bytes)
    slots = (ctypes.c_uint64 * 4)(*tensors, size)
    candidates = {"hand, 128-bit loads": (driver.load(HAND_ADD, "hand_add"), size // 1024, 256, slots)}
    for kernel in variants_of(driver, "add"):
        candidates[kernel.label] = (kernel.function, size // kernel.settings["BLOCK"], kernel.threads, slots)
    # The last one once more, on tensors that no 128-bit load can take.
    moved = (ctypes.c_uint64 * 4)(*[address + 4 for address in tensors], size - 1)
    candidates[f"{kernel.label}, shifted"] = (*candidates[kernel.label][:3], moved)
    begin, end = driver.event(), driver.event()
    times = {label: [] for label in candidates}
    for i in range(rounds + 5):
        for label, (function, blocks, threads, slots) in candidates.items():
            driver.fill(flush, 2 * driver.l2_bytes, i)
            driver.record(begin)
            driver.launch(function, (blocks, 1, 1), threads, slots)
            driver.record(end)
            elapsed = driver.microseconds(begin, end)
            if i >= 5:
                times[label].append(elapsed)
    for label, values in times.items():
        print(f"{label:24} median {statistics.median(values):6.2f} us, best {min(values):6.2f} us")


def main(arguments):
    driver = cuda.Driver()
    print(driver.name)
    with open(os.path.join(FOLDER, "tiles.json"), encoding="utf-8") as file:
        tiles = json.load(file)
    names = [a for a in arguments if not a.startswith("--")] or list(tiles)
    same = compare(driver, names, tiles)
    if "--time" in arguments:
        time_add(driver)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
