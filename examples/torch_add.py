#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The vector add on a GPU, from torch tensors: tuned, launched on a stream, and captured in a CUDA
graph.

python3 torch_add.py [N]
"""

from __future__ import annotations

import sys

import phobos.lang as ph

try:
    import torch
except ImportError:
    print("skipped: torch is not installed")
    sys.exit()


def reference(x, y, out):
    return {"out": x + y}  # of NumPy arrays, as everywhere


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]


def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


def main(n):
    if not torch.cuda.is_available():
        return print("skipped: torch sees no GPU")
    x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    out = torch.empty_like(x)

    # On torch's current stream. Tunes at this N if nobody on this machine has, and does not wait
    # for the launch.
    add[grid](x, y, out)
    if not torch.equal(out, x + y):
        sys.exit("the result is wrong")
    print(add.result(N=n) or "launched the first choices: nothing was tuned")

    # A stream can also be given.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    add[grid](x, out, out=y, stream=stream)
    stream.synchronize()

    # While a stream is captured nothing is tuned or loaded: what was launched before is taken.
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add[grid](x, y, out)
    x.fill_(1)
    y.fill_(2)
    graph.replay()
    if not bool((out == 3).all()):
        sys.exit("the graph's result is wrong")
    print(f"{n} sums on {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 24)
