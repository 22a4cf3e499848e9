#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The clients on a real card: torch, CuPy and JAX arrays, streams, graphs and processes.

    tests/gpu/clients/clients_on_card.py [--dist dist] [--json FILE] [CHECK ...]

Needs phobosd and phobos-compile in dist/bin and libphobos.so in dist/lib (bench/gpu/make_bundle.py puts them there), a GPU,
and those of the frameworks that are to be looked at: a framework that is not installed is skipped. Each check is a process of
its own with a daemon of this run. Prints a line a check and exits with 1 when one failed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

_BEGINNING = '''
from __future__ import annotations
import importlib.util, json, multiprocessing, os, sys, threading, time, warnings
import numpy as np
import phobos.lang as ph
from kernels import *

def need(*names):
    for name in names:
        if importlib.util.find_spec(name) is None:
            print("SKIPPED " + name + " is not installed"); sys.exit(0)

def say(**values):
    print("SAID " + json.dumps(values), flush=True)

def refused(function, *words):
    try:
        function()
    except ph.PhobosError as error:
        for word in words:
            assert word in str(error), (word, str(error))
        return str(error)
    raise AssertionError("it was not refused")

def us_a_call(function, calls=20000):
    for _ in range(1000): function()
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls // 5): function()
        best = min(best, (time.perf_counter() - start) / (calls // 5))
    return round(best * 1e6, 2)

'''

KERNELS = '''
from __future__ import annotations
import phobos.lang as ph

def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)

def summed(x, y, out):
    return {"out": x + y}

'''
KERNELS += "".join(f'''
@ph.kernel(key=("N",), reference=summed)
@ph.autotune(BLOCK=[256, 4096])
def add_{name}(x: ph.tensor[ph.{name}][N], y: ph.tensor[ph.{name}][N], out: ph.tensor[ph.{name}][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]

''' for name in ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64")) + '''
@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[256, 1024])
def untuned(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]

@ph.kernel(key=("N",), reference=lambda a, b, out: {"out": a & b})
@ph.autotune(BLOCK=[256, 1024])
def both(a: ph.tensor[ph.bool][N], b: ph.tensor[ph.bool][N], out: ph.tensor[ph.bool][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = a[base:+BLOCK] & b[base:+BLOCK]
'''

# Name -> program. Runs in this order.
CHECKS = {}
CHECKS["torch: the requirements' example, and its launches"] = '''
need("torch"); import torch
n = 1 << 24
x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda"); out = torch.zeros_like(x)
torch.cuda.synchronize()
start = time.perf_counter(); add_f32[grid](x, y, out); torch.cuda.synchronize()
first = time.perf_counter() - start
assert torch.equal(out, x + y)
result = add_f32.result(N=n)
say(first_call_s=round(first, 3), winner=str(result.winner), us=result.time / 1e3, split={k: v / 1e6 for k, v in result.split.items()})
'''
CHECKS["torch: a second process finds the winner"] = '''
need("torch"); import torch
n = 1 << 24
x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda"); out = torch.zeros_like(x)
torch.cuda.synchronize()
tuned = []; ph.on_tune(tuned.append)
start = time.perf_counter(); add_f32[grid](x, y, out); first = time.perf_counter() - start
assert torch.equal(out, x + y) and not tuned
say(first_launch_ms=round(first * 1e3, 2))
'''
CHECKS["torch: a new size of a known kernel"] = '''
need("torch"); import torch
for n in ((1 << 24) - 8, (1 << 24) - 16):
    x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda"); out = torch.zeros_like(x)
    torch.cuda.synchronize()
    start = time.perf_counter(); add_f32[grid](x, y, out); torch.cuda.synchronize()
    first = time.perf_counter() - start
    assert torch.equal(out, x + y)
say(call_s=round(first, 3), split={k: v / 1e6 for k, v in add_f32.result(N=n).split.items()})
'''
CHECKS["torch: every type, sizes 0, 1, 7 and a prime"] = '''
need("torch"); import torch
kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
         "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}
for name, kind in kinds.items():
    kernel = globals()["add_" + name]
    for n in (0, 1, 7, 100003):
        x = (torch.rand(n, device="cuda") * 100).to(kind); y = (torch.rand(n, device="cuda") * 20).to(kind)
        out = torch.zeros_like(x); kernel[grid](x, y, out)
        assert torch.equal(out, x + y), (name, n)
a, b = torch.rand(1000, device="cuda") > 0.5, torch.rand(1000, device="cuda") > 0.5
out = torch.zeros_like(a); both[grid](a, b, out); assert torch.equal(out, a & b)
'''
CHECKS["torch: what a launch costs (us)"] = '''
need("torch"); import torch
n = 4096
x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda"); out = torch.zeros_like(x)
launcher = add_f32[grid]
launcher(x, y, out); torch.cuda.synchronize()
cost = {"add[grid](x, y, out)": us_a_call(lambda: launcher(x, y, out)),
        "with stream=": us_a_call(lambda s=torch.cuda.current_stream(): launcher(x, y, out, stream=s)),
        "torch.add": us_a_call(lambda: torch.add(x, y, out=out))}
torch.cuda.synchronize()
if importlib.util.find_spec("triton"):
    import triton, triton.language as tl
    import triton_add
    cost["triton"] = us_a_call(lambda: triton_add.launch(x, y, out))
    cost["triton with autotune"] = us_a_call(lambda: triton_add.launch_tuned(x, y, out))
torch.cuda.synchronize()
assert cost["add[grid](x, y, out)"] < 15, cost
say(**cost)
'''
CHECKS["torch: streams"] = '''
need("torch"); import torch
n = 1 << 20
x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda"); out = torch.zeros_like(x)
add_f32[grid](x, y, out)
side = torch.cuda.Stream(); side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    torch.cuda._sleep(50_000_000); x.fill_(1); add_f32[grid](x, x, out)  # on the side stream, behind the sleep
start = time.perf_counter(); add_f32[grid](x, x, out, stream=side); queued = time.perf_counter() - start
assert not side.query(), "the launch waited"
side.synchronize(); assert bool((out == 2).all())
say(queued_us=round(queued * 1e6, 1))
'''
CHECKS["torch: a CUDA graph"] = '''
need("torch"); import torch
n = 1 << 20
x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda"); out = torch.zeros_like(x)
add_f32[grid](x, y, out)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    add_f32[grid](x, y, out)
x.fill_(1); y.fill_(2); out.zero_(); graph.replay(); torch.cuda.synchronize(); assert bool((out == 3).all())
# A size that is not prepared: refused, and the capture goes on.
small = torch.rand(1000, device="cuda"); told = []
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    add_f32[grid](x, y, out)
    told.append(refused(lambda: add_f32[grid](small, small, torch.zeros_like(small)), "being captured", "N=1000"))
out.zero_(); graph.replay(); torch.cuda.synchronize(); assert bool((out == 3).all())
# A tune in another thread while a stream is captured does not break the capture.
other = [torch.rand(5003, device="cuda") for _ in range(3)]; torch.cuda.synchronize(); failed = []
def tune():
    try: add_f32[grid](*other, stream=torch.cuda.Stream())
    except BaseException as error: failed.append(error)
graph = torch.cuda.CUDAGraph()
thread = threading.Thread(target=tune)
with torch.cuda.graph(graph):
    add_f32[grid](x, y, out); thread.start(); thread.join(); add_f32[grid](x, y, out)
assert not failed, failed
graph.replay(); torch.cuda.synchronize()
say(told=told[0][:100])
'''
CHECKS["torch: expandable segments go through the host"] = '''
need("torch"); os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"; import torch
n = 3000017
x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda"); out = torch.zeros_like(x)
start = time.perf_counter(); add_f32[grid](x, y, out); torch.cuda.synchronize(); took = time.perf_counter() - start
assert torch.equal(out, x + y); say(call_s=round(took, 3))
'''
CHECKS["torch: mistakes are named"] = '''
need("torch"); import torch
x = torch.rand(1000, device="cuda")
say(host=refused(lambda: add_f32[grid](x, x.cpu(), x.clone()), "y is in host memory"),
    gaps=refused(lambda: add_f32[grid](torch.rand(2000, device="cuda")[::2], x, x.clone()), "strides (8,)", ".contiguous()"),
    kind=refused(lambda: add_f32[grid](x.double(), x, x.clone()), ".to(torch.float32)"),
    overlap=refused(lambda: add_f32[grid](x, x, x), "overlaps"))
'''
CHECKS["torch: a forked child is told why"] = '''
need("torch"); import torch
x = torch.rand(1000, device="cuda"); out = torch.zeros_like(x); add_f32[grid](x, x, out); torch.cuda.synchronize()
pid = os.fork()
if pid == 0:
    try:
        add_f32[grid](x, x, out)
    except ph.PhobosError as error:
        os._exit(0 if "spawn" in str(error) else 1)
    except RuntimeError as error:  # torch's own
        os._exit(0 if "fork" in str(error) else 1)
    except BaseException as error:
        print(error, flush=True); os._exit(2)
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
'''
CHECKS["torch: two cards"] = '''
need("torch"); import torch
if torch.cuda.device_count() < 2: print("SKIPPED one card is here"); sys.exit(0)
for card in (0, 1):
    x, y = torch.rand(100003, device=f"cuda:{card}"), torch.rand(100003, device=f"cuda:{card}"); out = torch.zeros_like(x)
    add_f32[grid](x, y, out); torch.cuda.synchronize(card); assert torch.equal(out, x + y)
    say(**{f"card{card}": add_f32.result(N=100003).device})
a = torch.rand(1000, device="cuda:0")
refused(lambda: add_f32[grid](a, a.to("cuda:1"), a.clone()), "y is on card 1")
'''
CHECKS["CuPy arrays and streams"] = '''
need("cupy"); import cupy
n = 1 << 20
x, y = cupy.random.rand(n, dtype="float32"), cupy.random.rand(n, dtype="float32"); out = cupy.zeros_like(x)
add_f32[grid](x, y, out); assert bool((out == x + y).all())
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    x.fill(1); y.fill(2); add_f32[grid](x, y, out)
stream.synchronize(); assert bool((out == 3).all())
out.fill(0); cupy.cuda.Device().synchronize(); add_f32[grid](x, y, out, stream=stream); stream.synchronize()
assert bool((out == 3).all())
launcher = add_f32[grid]
say(us_a_launch=us_a_call(lambda: launcher(x, y, out)),
    gaps=refused(lambda: add_f32[grid](cupy.zeros(2000, "float32")[::2], x, x), "cupy.ascontiguousarray"))
# A pool whose memory has no IPC handles.
cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
x, y = cupy.random.rand(77777, dtype="float32"), cupy.random.rand(77777, dtype="float32"); out = cupy.zeros_like(x)
cupy.cuda.Device().synchronize(); add_f32[grid](x, y, out); assert bool((out == x + y).all())
half = cupy.random.rand(5003, dtype="float32").astype("float16"); out = cupy.zeros_like(half)
add_f16[grid](half, half, out); assert bool((out == half + half).all())
'''
CHECKS["JAX arrays"] = '''
need("jax", "cupy"); os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"; import jax, jax.numpy as jnp, cupy
x, y = jnp.arange(100003, dtype=jnp.float32), jnp.ones(100003, jnp.float32)
out = cupy.zeros(100003, "float32")
add_f32[grid](x * 2, y, out)  # waits for what JAX still computes
assert np.array_equal(cupy.asnumpy(out), np.arange(100003, dtype=np.float32) * 2 + 1)
back = jax.dlpack.from_dlpack(out); assert float(back[3]) == 7
say(written=refused(lambda: add_f32[grid](x, y, jnp.zeros_like(x)), "read-only"),
    us_a_launch=us_a_call(lambda: add_f32[grid](x, y, out), 2000))
'''
CHECKS["C: a plan by ctypes"] = '''
need("torch"); import torch, ctypes
n = 4096
x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda"); out = torch.zeros_like(x)
add_f32[grid](x, y, out); torch.cuda.synchronize()
plan = next(iter(add_f32._plans.values()))
values = add_f32._pack(x.data_ptr(), y.data_ptr(), out.data_ptr()); sides = bytes((ctypes.c_int64 * 3)(16, 1, 1))
run = add_f32._run
say(us=us_a_call(lambda: run(plan.handle, values, sides, 0, None)))
'''

TRITON = '''
import torch, triton, triton.language as tl

@triton.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK); inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)

tuned = triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=8) for b in (256, 512, 1024, 2048, 4096)], key=["n"])(kernel)

def launch(x, y, out):
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)

def launch_tuned(x, y, out):
    tuned[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel())
'''

# A start, a barrier after the contexts, then all ask for the same key.
TOGETHER = '''
need("torch"); import torch
n = 7654321
x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda"); out = torch.zeros_like(x); torch.cuda.synchronize()
print("READY", flush=True); sys.stdin.readline()
start = time.perf_counter(); add_f32[grid](x, y, out); torch.cuda.synchronize(); took = time.perf_counter() - start
assert torch.equal(out, x + y)
say(took_s=round(took, 3), winner=str(add_f32.result(N=n).winner), generation=add_f32.result(N=n).generation)
'''


def unpacked(dist, folder):
    """The programs of dist/bin, which may be packed, in a folder of their own."""
    os.mkdir(folder)
    for name in os.listdir(os.path.join(dist, "bin")):
        path, packed = os.path.join(dist, "bin", name), name.endswith(".xz")
        target = os.path.join(folder, name[:-3] if packed else name)
        with (lzma.open(path) if packed else open(path, "rb")) as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file)
        os.chmod(target, 0o755)
    return folder


class Bench:
    """A daemon of this run and the programs that use it. What the daemon prints is kept."""

    def __init__(self, dist):
        self.folder = tempfile.mkdtemp(prefix="phobos-clients-")
        self.bin = unpacked(dist, os.path.join(self.folder, "bin"))
        for name, text in (("kernels", KERNELS), ("triton_add", TRITON)):
            with open(os.path.join(self.folder, name + ".py"), "w") as file:
                file.write(text)
        self.environment = {
            **os.environ,
            "PHOBOS_SOCKET": os.path.join(self.folder, "s"),
            "PHOBOS_AUTOSTART": "0",
            "PHOBOS_PROGRESS": "0",
            "PHOBOS_LIBRARY": os.path.join(dist, "lib", "libphobos.so"),
            "PYTHONPATH": os.pathsep.join([os.path.join(ROOT, "client", "python"), self.folder]),
            "CUDA_CACHE_DISABLE": "1",
        }
        self.log = os.path.join(self.folder, "log")
        read, write = os.pipe()
        self.daemon = subprocess.Popen(
            [os.path.join(self.bin, "phobosd"), "--private", "--idle-exit=0", f"--ready-fd={write}",
             "--socket=" + self.environment["PHOBOS_SOCKET"], "--cache-dir=" + os.path.join(self.folder, "cache"),
             "--compiler=" + os.path.join(self.bin, "phobos-compile")],
            pass_fds=[write], env=self.environment, stdin=subprocess.DEVNULL, stderr=open(self.log, "w"))
        os.close(write)
        with os.fdopen(read) as ready:
            said = ready.readline()
        if "ready" not in said:
            raise SystemExit(f"the daemon did not start: {said} {open(self.log).read()}")

    def begin(self, text):
        path = tempfile.mktemp(suffix=".py", dir=self.folder)
        with open(path, "w") as file:
            file.write(_BEGINNING + text)
        return subprocess.Popen([sys.executable, path], env=self.environment, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def close(self):
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)


def said(out):
    values = {}
    for line in out.splitlines():
        if line.startswith("SAID "):
            values.update(json.loads(line[5:]))
    return values


def run(bench, text):
    """(outcome, values): outcome is "ok", "skipped: why" or what went wrong."""
    program = bench.begin(text)
    try:
        out, err = program.communicate(timeout=180)
    except subprocess.TimeoutExpired:
        program.kill()
        out, err = program.communicate()
        return "took longer than 180 s", {}
    skipped = re.search(r"^SKIPPED (.*)$", out, re.M)
    if skipped:
        return "skipped: " + skipped.group(1), {}
    return ("ok" if program.returncode == 0 else (out + err).strip()[-1500:]), said(out)


def together(bench, count):
    """Programs that start together: one tune, one winner."""
    programs = [bench.begin(TOGETHER.replace("7654321", str(7654321 + 8 * count))) for _ in range(count)]
    if any("READY" not in program.stdout.readline() for program in programs):
        return "skipped: torch is not installed", {}
    start = time.perf_counter()
    for program in programs:
        program.stdin.write("\n")
        program.stdin.flush()
    ended = [program.communicate(timeout=180) for program in programs]
    wall = round(time.perf_counter() - start, 3)
    values = [said(out) for out, _ in ended]
    if any(program.returncode for program in programs):
        return "".join(err for _, err in ended)[-1500:], {}
    took = [one["took_s"] for one in values]
    facts = {"wall_s": wall, "took_s": took, "winner": values[0]["winner"]}
    agree = len({(one["winner"], one["generation"]) for one in values}) == 1
    return ("ok" if agree else f"they disagree: {values}"), facts


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--dist", default=os.path.join(ROOT, "dist"))
    options.add_argument("--json", help="also write the outcome to this file")
    options.add_argument("checks", nargs="*", help="words of the names of those to run")
    chosen = options.parse_args()
    bench, outcomes = Bench(os.path.abspath(chosen.dist)), {}
    jobs = {name: (lambda text=text: run(bench, text)) for name, text in CHECKS.items()}
    jobs.update({f"torch: {count} processes at once": (lambda count=count: together(bench, count)) for count in (1, 4, 8)})
    try:
        for name, job in jobs.items():
            if chosen.checks and not any(word in name for word in chosen.checks):
                continue
            outcome, values = job()
            outcomes[name] = {"outcome": outcome, **values}
            print(f"{'ok  ' if outcome == 'ok' else 'skip' if outcome.startswith('skipped') else 'FAIL'} {name}", flush=True)
            for key, value in values.items():
                print(f"       {key}: {value}", flush=True)
            if outcome != "ok":
                print("       " + outcome.replace("\n", "\n       "), flush=True)
        log = open(bench.log).read().strip()
        if log:
            print("the daemon said:\n" + log[-3000:])
    finally:
        bench.close()
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(outcomes, file, indent=1)
    failed = [name for name, one in outcomes.items() if one["outcome"] != "ok" and not one["outcome"].startswith("skipped")]
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} checks hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
