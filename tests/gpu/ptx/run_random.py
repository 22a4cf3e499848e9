#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the random kernels that random_bundle (tests/compiler/codegen/nvptx) wrote, and compares with the interpreter.

run_random.py [FILE] [PROCESSES]        FILE: packed by xz; random.xz beside this file without one

A NaN is equal to each other NaN; results of built-ins of limited accuracy may be as far off as the language says. Exit code 1
if anything differs.
"""

import ctypes
import json
import lzma
import os
import subprocess
import sys

import numpy as np

import cuda
from run_bundle import GUARD, TYPES, is_nan


def records(path):
    """(head, PTX, (before, after) by tensor) of each kernel."""
    with lzma.open(path) as file:
        while line := file.readline():
            head = json.loads(line)
            ptx = file.read(head["ptx_bytes"])
            tensors = []
            for parameter in head["parameters"]:
                if "elements" in parameter:
                    kind = np.dtype(TYPES[parameter["dtype"]][0])
                    tensors.append([np.frombuffer(file.read(parameter["elements"] * kind.itemsize), kind) for _ in range(2)])
            yield head, ptx, tensors


def start_of(parameter, number, itemsize):
    """Where tensor `number` starts behind a multiple of GUARD: every other one at no more than its promise or its type asks."""
    least = max(parameter["aligned_bytes"], itemsize)
    return GUARD + (least if number % 2 else 0)


def run(driver, head, ptx, befores):
    """The tensors after the launch."""
    function = driver.load(ptx + b"\0", head["entry"])
    slots, places, before = [], [], iter(befores)
    for number, parameter in enumerate(head["parameters"]):
        if "bits" in parameter:
            slots.append(parameter["bits"])
            continue
        value = next(before)
        start = start_of(parameter, number, value.itemsize)
        whole = np.full(start + value.nbytes + GUARD, 0xa5, np.uint8)
        whole[start:start + value.nbytes] = value.view(np.uint8)
        address = driver.allocate(whole.nbytes)
        driver.upload(address, whole)
        slots.append(address + start)
        places.append((address, start, whole, value))
    slots += head["extents"]
    if np.prod(head["grid"]):
        words = (ctypes.c_uint64 * len(slots))(*slots)
        driver.launch(function, tuple(head["grid"]), head["threads"], words, head["dynamic_shared_memory_bytes"])
        driver.synchronize()
    results = []
    for address, start, whole, value in places:
        driver.download(whole, address)
        driver.free(address)
        inside = slice(start, start + value.nbytes)
        results.append(whole[inside].copy().view(value.dtype))
        whole[inside] = 0xa5
        if (whole != 0xa5).any():
            raise RuntimeError("wrote beside a tensor")
    return results


def ordered(bits):
    """Of floats' bits, integers in the floats' order, neighbours 1 apart."""
    width = 8 * bits.itemsize
    magnitude = (bits & bits.dtype.type((1 << (width - 1)) - 1)).astype(object)
    return np.where(bits >> bits.dtype.type(width - 1), -magnitude, magnitude)


def differences(head, results, wanted):
    tensors = [parameter for parameter in head["parameters"] if "elements" in parameter]
    for parameter, got, want in zip(tensors, results, wanted):
        differ = got != want
        if TYPES[parameter["dtype"]][1]:
            differ &= ~(is_nan(parameter["dtype"], got) & is_nan(parameter["dtype"], want))
            if parameter["ulps"] and differ.any():
                differ[differ] = abs(ordered(got[differ]) - ordered(want[differ])) > parameter["ulps"] + 1
        if differ.any():
            at = int(np.argmax(differ))
            yield (f"seed {head['seed']}: {parameter['name']} ({parameter['dtype']}): {int(differ.sum())} of {len(got)} differ, "
                   f"first [{at}] GPU {int(got[at]):#x}, interpreter {int(want[at]):#x}")


def work(path, index, processes):
    """Every kernel of so many; prints what differs, then how many ran and differ. An error of the card is the last word."""
    driver = cuda.Driver()
    kernels, wrong, broken = 0, 0, False
    for number, (head, ptx, tensors) in enumerate(records(path)):
        if number % processes != index:
            continue
        kernels += 1
        try:
            results = run(driver, head, ptx, [before for before, _ in tensors])
            found = list(differences(head, results, [after for _, after in tensors]))
        except RuntimeError as error:
            found, broken = [f"seed {head['seed']}: {error}"], True  # and all that the card is asked for after it
        wrong += len(found)
        print("\n".join(found) + "\n" if found else "", end="", flush=True)
        if broken:
            break
    print(f"{kernels} {wrong}", flush=True)


def main(arguments):
    folder = os.path.dirname(os.path.abspath(__file__))
    path = arguments[0] if arguments else os.path.join(folder, "random.xz")
    processes = int(arguments[1]) if len(arguments) > 1 else min(12, os.cpu_count() or 1)
    commands = [[sys.executable, os.path.abspath(__file__), path, str(processes), str(i)] for i in range(processes)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for command in commands]
    kernels, wrong = 0, 0
    for worker in workers:
        *found, last = worker.communicate()[0].splitlines() or [""]
        print("\n".join(found[:10]) + "\n" if found else "", end="")
        counts = last.split() if worker.returncode == 0 else []
        if len(counts) != 2:
            print(f"a process ended with {worker.returncode}: {last}")
            counts = (0, 1)
        kernels, wrong = kernels + int(counts[0]), wrong + int(counts[1])
    print(f"{kernels} random kernels, {wrong} outputs differ")
    return 1 if wrong or not kernels else 0


if __name__ == "__main__":
    if len(sys.argv) == 4:
        work(sys.argv[1], int(sys.argv[3]), int(sys.argv[2]))
    else:
        sys.exit(main(sys.argv[1:]))
