# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels on the first NVIDIA card of this machine. For tests; one thread."""

import atexit
import ctypes
import functools
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../gpu/ptx"))
import cuda

launches = 0


@functools.lru_cache(maxsize=None)
def driver():
    atexit.register(lambda: print(f"{launches} launches", flush=True))
    return cuda.Driver()


class Card:
    """Runs one kernel there, as compiled.Host does on the host."""

    def __init__(self, path, artifact):
        with open(path, "rb") as file:
            self._function = driver().load(file.read() + b"\0", artifact["entry"])
        self._threads = int(artifact["threads"])
        self._shared_bytes = int(artifact.get("dynamic_shared_memory_bytes", 0))

    def place(self, memory):
        """The address of a copy that kernels can reach."""
        address = driver().allocate(memory.nbytes)
        driver().upload(address, memory)
        return address

    def launch(self, words, sides):
        global launches
        if not np.prod(sides):
            return
        launches += 1
        slots = (ctypes.c_uint64 * len(words))(*(int(word) for word in words))
        driver().launch(self._function, tuple(int(side) for side in sides), self._threads, slots, self._shared_bytes)
        driver().synchronize()

    def fetch(self, memory, address):
        """Brings back what the copy holds now, and gives the copy up."""
        driver().download(memory, address)
        driver().free(address)
