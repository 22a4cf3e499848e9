# SPDX-License-Identifier: Apache-2.0
"""Python processes whose arrays are on the stand-in card: tunes through CUDA IPC and through the host, a second process,
and where handles of memory may not turn up."""

import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from end_to_end_test import BASE, CARD, QUICK, Bench, found

_BEGINNING = """
from __future__ import annotations
import ctypes, json, os, sys
import numpy as np
import phobos.lang as ph
from kernels import add

cuda = ctypes.CDLL(os.environ["PHOBOS_CUDA_LIBRARY"])
cuda.cuMemAlloc_v2.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
cuda.cuMemcpyAsync.argtypes = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p)
cuda.cuIpcGetMemHandle.argtypes = (ctypes.c_void_p, ctypes.c_uint64)
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxPushCurrent_v2(context) == 0

def grid(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)

def say(**values):
    print("SAID " + json.dumps(values), flush=True)

class Array:
    # In the middle of an allocation, as frameworks place them.
    def __init__(self, values):
        self.like, base = values, ctypes.c_uint64()
        assert cuda.cuMemAlloc_v2(ctypes.byref(base), 512 + values.nbytes) == 0
        self.base, self.address = base.value, base.value + 512
        assert cuda.cuMemcpyAsync(self.address, values.ctypes.data, values.nbytes, None) == 0
        assert cuda.cuStreamSynchronize(None) == 0

    def get(self):
        values = np.empty_like(self.like)
        assert cuda.cuMemcpyAsync(values.ctypes.data, self.address, values.nbytes, None) == 0
        assert cuda.cuStreamSynchronize(None) == 0
        return values

    @property
    def handle(self):
        handle = ctypes.create_string_buffer(64)
        assert cuda.cuIpcGetMemHandle(handle, self.base) == 0
        return handle.raw.hex()

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.like.shape, "typestr": self.like.dtype.str, "data": (self.address, False),
                "strides": None, "stream": 1, "version": 3}

filled = []
def reference(x, y, out):
    filled.append(x.base is not None)  # by the library; else it is a copy of a copy
    x[0] += 1  # its copies are its own
    return {"out": np.concatenate([[x[0] - 1], x[1:]]).astype(x.dtype) + y}

n = 5000
values = np.arange(n, dtype=np.float32)
x, y, out = Array(values), Array(values / 2), Array(np.zeros(n, np.float32))
"""

TUNE = """
result = add.tune(grid, x, y, out, reference=reference)
assert np.array_equal(out.get(), np.zeros(n, np.float32))
add[grid](x, y, out)
assert np.array_equal(out.get(), values + values / 2)
say(winner=result.winner, cached=result.cached, uuid=result.device["uuid"], filled=filled, pid=os.getpid())
"""


class PythonTest(Bench):
    def start(self, script=BASE):
        self.errors = open(self.path("stderr"), "w+")
        self.addCleanup(self.errors.close)
        kept = os.dup(2)
        os.dup2(self.errors.fileno(), 2)  # the daemon's, and its workers'
        try:
            super().start(script, QUICK)
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        self.environment["PYTHONPATH"] = os.pathsep.join([os.path.abspath("client/python"), HERE])
        self.environment["PHOBOS_LIBRARY"] = found("PHOBOS_LIBRARY")

    def run_python(self, text):
        path = tempfile.mktemp(suffix=".py", dir=self.folder)
        with open(path, "w") as file:
            file.write(_BEGINNING + text)
        done = subprocess.run([sys.executable, path], env=self.environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.output = done.stdout + done.stderr
        said = {}
        for line in done.stdout.splitlines():
            if line.startswith("SAID "):
                said.update(json.loads(line[5:]))
        return said

    def calls_of(self, name):
        """The processes that called a function of the driver, one a call."""
        with open(self.path("trace")) as file:
            return [int(line.split()[0]) for line in file if re.match(rf"\d+ {name}\b", line)]

    def tune_and_kill(self, kills):
        """Tunes, and kills so many workers, each in its first opening of an allocation, where it stalls."""
        with concurrent.futures.ThreadPoolExecutor() as threads:
            said = threads.submit(self.run_python, TUNE)
            killed = []
            while len(killed) < kills and not said.done():
                time.sleep(0.01)
                stalled = os.path.exists(self.path("trace")) and self.calls_of("cuIpcOpenMemHandle_v2")[len(killed):]
                if stalled:
                    os.kill(stalled[0], signal.SIGKILL)
                    killed.append(stalled[0])
            return said.result()

    def test_a_worker_that_dies_while_it_fetches_is_replaced(self):
        self.start(BASE + f"stall cuIpcOpenMemHandle_v2 1 once {self.path('stalled')}\n")
        self.assertEqual(self.tune_and_kill(1)["winner"], {"BLOCK": 512})
        opened = self.calls_of("cuIpcOpenMemHandle_v2")
        self.assertEqual([pid == opened[0] for pid in opened], [True, False, False, False])

    def test_when_workers_die_while_they_fetch_the_bytes_are_sent(self):
        self.start(BASE + "stall cuIpcOpenMemHandle_v2 1\n")
        self.assertEqual(self.tune_and_kill(2)["winner"], {"BLOCK": 512})
        self.assertEqual(len(self.calls_of("cuIpcOpenMemHandle_v2")), 2)

    def test_a_damaged_cubin_is_not_run(self):
        self.start()
        self.run_python(TUNE)
        kernels = os.path.join(self.path("cache"), "sm_90", "kernels")
        damaged = 0
        for name in os.listdir(kernels):
            if not name.endswith(".sealed.cubin"):
                continue
            with open(os.path.join(kernels, name), "r+b") as file:
                cubin = file.read()
                worse = cubin.replace(b"// host-twin: /", b"// host-twin: X")  # whoever loads that is aborted
                damaged += worse != cubin
                file.seek(0)
                file.write(worse)
        self.assertGreater(damaged, 0)
        self.run_python("""
add[grid](x, y, out)
assert np.array_equal(out.get(), values + values / 2)
""")

    def test_one_process_tunes_and_the_next_one_launches(self):
        self.start()
        first = self.run_python(TUNE)
        self.assertEqual((first["winner"], first["cached"], first["uuid"]), ({"BLOCK": 512}, False, CARD))
        self.assertEqual(first["filled"], [True])
        opened = self.calls_of("cuIpcOpenMemHandle_v2")
        self.assertEqual(len(opened), 3)  # one a tensor: each has an allocation of its own
        self.assertNotIn(first["pid"], opened)
        self.assertEqual(self.calls_of("cuIpcCloseMemHandle"), opened)
        with open(self.path("trace")) as file:
            worker = [line.split()[1] for line in file if line.startswith(f"{opened[0]} ")]
        last_close = len(worker) - 1 - worker[::-1].index("cuIpcCloseMemHandle")
        self.assertGreater(worker.index("cuMemAlloc_v2", last_close), last_close)  # a job begins after it
        second = self.run_python("""
tuned = []
ph.on_tune(tuned.append)
add[grid](x, y, out)
assert np.array_equal(out.get(), values + values / 2)
say(winner=add.result(N=n).winner, tuned=len(tuned), pid=os.getpid())
""")
        self.assertEqual((second["winner"], second["tuned"]), ({"BLOCK": 512}, 0))
        # Of the cubin that the worker made: nothing is compiled anew.
        self.assertEqual(self.calls_of("cuModuleLoadDataEx").count(second["pid"]), 1)
        self.assertNotIn(second["pid"], self.calls_of("cuLinkCreate_v2"))

    def test_without_ipc_the_bytes_go_through_the_host(self):
        self.start(BASE + "no_ipc\n")
        said = self.run_python(TUNE)
        self.assertEqual((said["winner"], said["filled"]), ({"BLOCK": 512}, [False]))
        self.assertEqual(self.calls_of("cuIpcOpenMemHandle_v2"), [])

    def test_where_the_worker_cannot_open_a_handle_the_bytes_go_through_the_host(self):
        self.start(BASE + "fail cuIpcOpenMemHandle_v2 0 201\n")
        self.assertEqual(self.run_python(TUNE)["winner"], {"BLOCK": 512})
        self.assertEqual(len(self.calls_of("cuIpcOpenMemHandle_v2")), 1)

    def test_handles_turn_up_nowhere(self):
        # Also where something goes wrong with them.
        self.start(BASE + "fail cuIpcOpenMemHandle_v2 1 201\n")
        said = self.run_python(TUNE.replace("pid=os.getpid()", "handles=[a.handle for a in (x, y, out)]") + """
result = add.tune(grid, x, y, out, reference=reference, force=True)
try:
    add.tune(grid, x, y, out, reference=lambda x, y, out: {"out": x}, rtol=1e-3)
except ph.PhobosError as error:
    print(error, repr(error), error.__dict__)
else:
    raise AssertionError
""")
        self.assertEqual(len(self.calls_of("cuIpcOpenMemHandle_v2")), 1 + 3 + 3)
        status = self.status() + self.status("--format=json")
        self.stop()
        told = "".join(line for line in self.output.splitlines() if not line.startswith("SAID "))
        places = [self.path("stderr"), self.path("trace")]
        for folder, _, names in os.walk(self.path("cache")):
            places += [os.path.join(folder, name) for name in names]
        self.assertGreater(len(places), 5)
        for text in said["handles"]:
            handle = bytes.fromhex(text)
            secret = handle.rstrip(b"\0")
            self.assertGreater(len(secret), 8)
            for place in places:
                with open(place, "rb") as file:
                    content = file.read()
                self.assertNotIn(secret, content, place)
                self.assertNotIn(secret.hex().encode(), content, place)
            self.assertNotIn(secret.hex(), told + status)


if __name__ == "__main__":
    unittest.main()
