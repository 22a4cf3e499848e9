# SPDX-License-Identifier: Apache-2.0
"""What the sections share: where things are, arrays on a card without a framework, programs of their own, figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
for _folder in ("tests/gpu/ptx", "client/python", "bench"):
    sys.path.insert(0, os.path.join(ROOT, _folder))

import numpy as np

import cuda
from private_daemon import private_daemon

__all__ = ["CardArray", "Figures", "begin", "cuda", "daemon", "finish", "located", "quick"]


def located(name):
    """A program of the bundle."""
    return os.path.join(os.environ.get("PHOBOS_DIST", os.path.join(ROOT, "dist")), "bin", name)


def quick():
    """Whether this is the trial without a card: few tunes, small arrays."""
    return os.environ.get("PHOBOS_GPU_BENCH_QUICK") == "1"


def daemon(*options, rounds=None, warm_up=None):
    """A daemon of this process's own (bench/private_daemon.py). None: as users have it, in a trial as short as can be."""
    rounds, warm_up = rounds or (4 if quick() else None), warm_up or ("20ms" if quick() else None)
    return private_daemon(*options, *([f"--rounds={rounds}"] if rounds else []), *([f"--warm-up={warm_up}"] if warm_up else []))


class CardArray:
    """An array on the first card, as any framework has them. kind: the language's name of its type."""

    def __init__(self, driver, array, kind=None):
        self._driver = driver
        self._typestr, self.dtype = array.dtype.str, "bfloat16" if kind == "bf16" else array.dtype
        if kind == "bf16":
            self._typestr = "<V2"
        self._shape, self._type, self._bytes = array.shape, array.dtype, array.nbytes
        self.address = driver.allocate(array.nbytes)
        if array.nbytes:
            driver.upload(self.address, np.ascontiguousarray(array))

    @property
    def __cuda_array_interface__(self):
        address = self.address if self._bytes else 0
        return {"shape": self._shape, "typestr": self._typestr, "data": (address, False), "version": 3}

    def host(self):
        """A copy in the host's memory, after all that was queued before."""
        self._driver.synchronize()
        array = np.empty(self._shape, self._type)
        if array.nbytes:
            self._driver.download(array, self.address)
        return array

    def free(self):
        self._driver.free(self.address)


class Figures:
    """Rows of the table: printed, and kept as a line of JSON in the file that run.py names, at once."""

    def __init__(self):
        self.met = True
        self._path = os.environ.get("PHOBOS_FIGURES")
        sys.excepthook = self._broke_off

    def add(self, name, value, unit="", at_most=None, at_least=None, note="", detail=None):
        """detail: for the JSON alone."""
        met = None
        if at_most is not None or at_least is not None:
            met = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
        limit = f"<= {at_most:.4g}" if at_most is not None else f">= {at_least:.4g}" if at_least is not None else ""
        self._row(name=name, value=value, unit=unit, limit=limit, met=met, note=note, detail=detail)

    def check(self, name, met, note="", detail=None):
        """Something that is so or not."""
        self._row(name=name, value="yes" if met else "no", unit="", limit="yes", met=bool(met), note=note, detail=detail)

    def skipped(self, name, why):
        """No failure, but not proved either."""
        self._row(name=name, value="-", unit="", limit="", met=None, note=why)

    def _broke_off(self, kind, value, trace):
        self.check("the section ran to its end", False, note=f"{kind.__name__}: {value}")
        sys.__excepthook__(kind, value, trace)

    def _row(self, **row):
        self.met = self.met and row["met"] is not False
        shown = f"{row['value']:.4g}" if isinstance(row["value"], float) else row["value"]
        mark = "MISS " if row["met"] is False else ""
        print(f"{mark}{row['name']}: {shown} {row['unit']} {row['limit']} {row['note']}".rstrip(), flush=True)
        if self._path:
            with open(self._path, "a") as file:
                file.write(json.dumps({name: value for name, value in row.items() if value is not None or name == "met"}) + "\n")

    def status(self):
        return 0 if self.met else 1


def begin(program, *arguments, **environment):
    """Starts a program of this folder; it prints lines, one of them JSON, and may wait for a line."""
    path = os.pathsep.join([os.path.join(ROOT, "client", "python"), HERE])
    settings = {**os.environ, "PYTHONPATH": path, "PHOBOS_PROGRESS": "0", **environment}
    return subprocess.Popen([sys.executable, os.path.join(HERE, program), *map(str, arguments)], env=settings, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(program, seconds=120):
    """What it said, the values of its last line of JSON. Raises RuntimeError where it failed."""
    try:
        out, err = program.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        program.kill()
        out, err = program.communicate()
        raise RuntimeError(f"{program.args[1:]} took longer than {seconds} s: {err[-1000:]}") from None
    if program.returncode:
        raise RuntimeError(f"{program.args[1:]} failed: {(out + err)[-3000:]}")
    return json.loads([line for line in out.splitlines() if line.startswith("{")][-1])
