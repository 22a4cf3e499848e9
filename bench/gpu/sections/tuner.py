# SPDX-License-Identifier: Apache-2.0
"""A process that tunes the add, with phobos or with Triton, as tune.py starts it.

    tuner.py phobos|triton|torchless MODE [N ...]

Prepares torch, its context and arrays of each N, prints READY, waits for a line, then calls at each N in turn and prints
a line of JSON. "torchless" is phobos with arrays of stage.py, for a trial without torch. MODE: "once" times the calls;
"worker" tunes another, small kernel twice, so that the daemon's worker is up.
"""

from __future__ import annotations

import json
import sys
import time


def torch_arrays(n):
    import torch

    x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    return x, y, torch.zeros_like(x)


def plain_arrays(n):
    import stage

    if not hasattr(plain_arrays, "driver"):
        plain_arrays.driver = stage.cuda.Driver()
    draw = stage.np.random.default_rng(n)
    x, y = draw.random(n, "float32"), draw.random(n, "float32")
    return [stage.CardArray(plain_arrays.driver, array) for array in (x, y, x * 0)]


def synchronize(arrays):
    if hasattr(arrays[0], "host"):
        plain_arrays.driver.synchronize()
    else:
        import torch

        torch.cuda.synchronize()


def is_right(arrays):
    if hasattr(arrays[0], "host"):
        x, y, out = (array.host() for array in arrays)
        return bool((out == x + y).all())
    import torch

    return bool(torch.equal(arrays[2], arrays[0] + arrays[1]))


def facts_of(kernel, n):
    result = kernel.result(N=n)
    return {"winner": str(result.winner), "generation": result.generation, "ns": result.time,
            "contended": result.contended, "split": {name: ns / 1e9 for name, ns in result.split.items()},
            "statuses": [variant.status for variant in result.variants]}


def phobos_calls(sets, imported):
    import phobos_kernels

    tuned = []
    phobos_kernels.ph.on_tune(tuned.append)
    for n, arrays in sets:
        yield n, arrays, lambda: phobos_kernels.add[phobos_kernels.grid](*arrays), lambda: {
            **facts_of(phobos_kernels.add, n), "tuned_here": len(tuned), "import_s": imported}


def triton_calls(sets, imported):
    import triton_kernels

    for n, arrays in sets:
        yield n, arrays, lambda: triton_kernels.add(*arrays), lambda: {
            "winner": triton_kernels.winner("add"), "import_s": imported}


def once(who, sizes):
    arrays_of = plain_arrays if who == "torchless" else torch_arrays
    sets = [(n, arrays_of(n)) for n in sizes]
    synchronize(sets[0][1])
    start = time.perf_counter()
    if who == "triton":
        import triton_kernels
    else:
        import phobos_kernels
    imported = time.perf_counter() - start
    print("READY", flush=True)
    sys.stdin.readline()
    rows = []
    for n, arrays, call, facts in (triton_calls if who == "triton" else phobos_calls)(sets, imported):
        began = time.perf_counter()
        call()
        queued = time.perf_counter()
        synchronize(arrays)
        ended = time.perf_counter()
        rows.append({"n": n, "began": began, "launched": queued, "ended": ended, "call_s": ended - began, **facts(),
                     "right": is_right(arrays)})
    print(json.dumps({"rows": rows}), flush=True)


def worker(sizes):
    """The second tune is of another kernel, so that both compile: what the first took longer is the worker's start."""
    import phobos_kernels
    import stage

    driver = stage.cuda.Driver()
    print("READY", flush=True)
    sys.stdin.readline()
    data = stage.np.arange(sizes[0], dtype="int32")
    took = []
    x, out = stage.CardArray(driver, data), stage.CardArray(driver, data * 0)
    for kernel in (phobos_kernels.tripled, phobos_kernels.negated):
        start = time.perf_counter()
        kernel[phobos_kernels.grid](x, out)
        driver.synchronize()
        took.append(time.perf_counter() - start)
    print(json.dumps({"first_s": took[0], "second_s": took[1]}), flush=True)


def main():
    who, mode, *sizes = sys.argv[1:]
    sizes = [int(size) for size in sizes]
    worker(sizes) if mode == "worker" else once(who, sizes)


if __name__ == "__main__":
    main()
