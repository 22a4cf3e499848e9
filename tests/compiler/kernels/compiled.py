# SPDX-License-Identifier: Apache-2.0
"""Kernels compiled for the host's chips and run on NumPy arrays, without a daemon; with $PHOBOS_INTERPRET, the program
of interpret.cc, interpreted instead; with $PHOBOS_TEST_CARD, a GPU's chip such as sm_90, on this machine's card. For tests;
one thread."""

import ctypes
import itertools
import json
import os
import subprocess
import tempfile

import numpy as np

HEADER = "from __future__ import annotations\nimport phobos.lang as ph\n"
GUARD = 64  # bytes beside each array that nobody may write


def chips():
    """The host chips that this machine can run, or its card's."""
    if "PHOBOS_TEST_CARD" in os.environ:
        return [os.environ["PHOBOS_TEST_CARD"]]
    with open("/proc/cpuinfo") as file:
        has_avx512 = " avx512vl" in file.read()
    return ["x86-64-v3", "x86-64-v4"] if has_avx512 else ["x86-64-v3"]


class Host:
    """Runs one kernel on this machine's CPU."""

    def __init__(self, path, artifact):
        self._scratch_bytes = int(artifact.get("scratch_bytes", 0))
        self._library = ctypes.CDLL(path)
        self._entry = getattr(self._library, artifact["entry"])
        self._entry.restype = None
        self._entry.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]

    def place(self, memory):
        return memory.ctypes.data

    def launch(self, words, sides):
        scratch = np.full(self._scratch_bytes + 128, 0xA5, np.uint8)
        start = -scratch.ctypes.data % 64
        blocks = int(np.prod(sides))
        for first in range(0, blocks, 5):
            self._entry(words.ctypes.data, sides.ctypes.data, first, min(first + 5, blocks), scratch.ctypes.data + start)
        assert (scratch[start + self._scratch_bytes:] == 0xA5).all(), "wrote behind the scratch memory"

    def fetch(self, memory, address):
        """Nothing is to be brought back: kernels work in `memory` itself."""


def _machine(path, artifact):
    if "PHOBOS_TEST_CARD" not in os.environ:
        return Host(path, artifact)
    import on_card  # which the tests of the host do without
    return on_card.Card(path, artifact)


class Variant:
    """One compiled variant; `constants` are its settings by name, `recording` is its race-recording form, or None."""

    def __init__(self, manifest, variant, folder):
        self.parameters = manifest["description"]["parameters"]
        self._slots = manifest["slots"]
        self.chip = manifest["chip"]
        self.verdict = variant.get("race_verdict", "")
        self.constants = {s["name"]: _value(s) for s in variant.get("settings", [])}
        artifact = variant["artifact"]
        self._machine = _machine(os.path.join(folder, artifact["file"]), artifact)
        self.recording = _recording(manifest, variant, folder)

    def run(self, grid, **arguments):
        """Runs all blocks of the grid; gives copies of the arrays as they are afterwards, by name."""
        slots = {}
        held = {}
        for parameter in self.parameters:
            name = parameter["name"]
            value = arguments[name]
            if not parameter.get("is_tensor"):
                slots[name] = int.from_bytes(np.asarray(value).tobytes().ljust(8, b"\0"), "little")
                continue
            memory = np.full(value.nbytes + 2 * GUARD, 0xA5, np.uint8)
            inside = memory[GUARD:GUARD + value.nbytes]
            inside[:] = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
            address = self._machine.place(memory)
            held[name] = (memory, address, inside, value)
            slots[name] = address + GUARD
            for dim, side in zip(parameter["dims"], value.shape):
                if "extent" in dim:
                    slots["extent:" + dim["extent"]] = side
        words = np.array([slots[name] for name in self._slots], np.uint64)
        sides = np.array(list(grid) + [1] * (3 - len(grid)), np.int64)
        self._machine.launch(words, sides)
        result = {}
        for name, (memory, address, inside, value) in held.items():
            self._machine.fetch(memory, address)
            assert (memory[:GUARD] == 0xA5).all() and (memory[GUARD + value.nbytes:] == 0xA5).all(), "wrote beside " + name
            result[name] = np.frombuffer(inside.tobytes(), value.dtype).reshape(value.shape)
        return result


def _recording(manifest, variant, folder):
    """A variant whose last parameters are the shadows, each by its content and its tensor's name."""
    recording = variant.get("recording")
    if recording is None:
        return None
    parameters = manifest["description"]["parameters"]
    tensors = {p["name"]: p for p in parameters}
    shadows = [
        {**tensors[s["parameter"]], "name": f"{s['content']} {s['parameter']}", "dtype": "DTYPE_U32"}
        for s in recording["shadows"]]
    slots, count = manifest["slots"], len(parameters)
    form = {
        **manifest,
        "description": {**manifest["description"], "parameters": parameters + shadows},
        "slots": slots[:count] + [s["name"] for s in shadows] + slots[count:],
    }
    return Variant(form, {**variant, "artifact": recording["artifact"], "recording": None}, folder)


def run_recorded(variant, grid, **arguments):
    """(arrays as Variant.run gives them, whether their recording shows a race)"""
    shadows = [p["name"] for p in variant.recording.parameters if " " in p["name"]]
    zeros = {name: np.zeros(arguments[name.split()[1]].shape, np.uint32) for name in shadows}
    got = variant.recording.run(grid, **arguments, **zeros)
    return got, any(_shows_race(got, name) for name in {name.split()[1] for name in shadows})


def _shows_race(got, tensor):
    def blocks(way):
        none = np.zeros_like(got[tensor], np.uint32)
        last, first = (got.get(f"{end}_{way} {tensor}", none).astype(np.int64) for end in ("LAST", "FIRST"))
        return last - 1, 2**32 - 1 - first

    def meet(one, other):
        (a_last, a_first), (b_last, b_first) = blocks(one), blocks(other)
        same = (a_last == a_first) & (b_last == b_first) & (a_last == b_last)
        return ((a_last >= 0) & (b_last >= 0) & ~same).any()

    pairs = (("WRITE", "WRITE"), ("WRITE", "READ"), ("WRITE", "ATOMIC"), ("ATOMIC", "READ"))
    return any(meet(*pair) for pair in pairs) or got.get(f"CLASH {tensor}", np.zeros(1)).any()


class Interpreted:
    """One variant, as the interpreter runs it."""

    def __init__(self, text, compiled, recording=None):
        self.parameters, self.constants, self.verdict = compiled.parameters, compiled.constants, compiled.verdict
        self.recording = recording
        self.chip = "interpreter"
        self._text = text

    def run(self, grid, **arguments):
        """As Variant.run."""
        words = []
        for parameter in self.parameters:
            value = np.asarray(arguments[parameter["name"]])
            words += [value.ndim, *value.shape]
            words.append(_bits(value, parameter))
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("ir", "arguments", "results")]
            with open(paths[0], "w") as file:
                file.write(self._text)
            np.concatenate([np.atleast_1d(word).astype(np.int64) for word in words]).tofile(paths[1])
            sides = [str(side) for side in list(grid) + [1] * (3 - len(grid))]
            subprocess.run([os.environ["PHOBOS_INTERPRET"], *paths, *sides], check=True)
            left = np.fromfile(paths[2], np.int64)
        result = {}
        for parameter in self.parameters:
            value = np.asarray(arguments[parameter["name"]])
            elements = left[1 + value.ndim:1 + value.ndim + value.size]
            left = left[1 + value.ndim + value.size:]
            if parameter.get("is_tensor"):
                raw = elements.astype(np.dtype(f"u{value.itemsize}"))
                result[parameter["name"]] = raw.view(value.dtype).reshape(value.shape)
        return result


def _bits(value, parameter):
    """The elements of an argument as the interpreter has them: signed ones extended by their sign, all else by zeros."""
    if not parameter.get("is_tensor"):
        value = value.reshape(1)
    signed = parameter["dtype"].startswith("DTYPE_I")
    return np.ascontiguousarray(value).view(f"{'i' if signed else 'u'}{value.itemsize}").reshape(-1).astype(np.int64)


def _ir(compiler, path, constants, stage="lower"):
    """The tile IR of the variant with these constants."""
    sets = [part for name, value in constants.items() for part in ("--set", f"{name}={value}")]
    command = [compiler, path, "--chip", "x86-64-v3", *sets, "--print-ir=" + stage]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _value(setting):
    for kind, read in (("int_value", int), ("float_value", float), ("bool_value", bool), ("string_value", str)):
        if kind in setting:
            return read(setting[kind])
    return 0


def variants(compiler, text, every_chip=True, checks_races=True):
    """All variants of the one kernel in `text`, for each chip, those left out that a constraint over constants excludes."""
    for chip in chips() if every_chip and "PHOBOS_INTERPRET" not in os.environ else chips()[-1:]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kernel.py")
            with open(path, "w") as file:
                file.write(HEADER + text)
            command = [compiler, path, "--chip", chip, "--all-variants", "--out", folder, "--format", "json"]
            command += ["--check-races"] if checks_races else []
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise AssertionError(done.stderr + done.stdout[-2000:])
            with open(os.path.join(folder, "manifest.json")) as file:
                manifest = json.load(file)
            for variant in manifest["variants"]:
                if variant["status"] != "VARIANT_STATUS_COMPILED":
                    raise AssertionError(variant.get("reason"))
                made = Variant(manifest, variant, folder)
                if "PHOBOS_INTERPRET" in os.environ:
                    recording = made.recording and Interpreted(_ir(compiler, path, made.constants, "record"), made.recording)
                    made = Interpreted(_ir(compiler, path, made.constants), made, recording)
                yield made


def refusal(compiler, text, chip):
    """Why the one kernel in `text` is not compiled for `chip`: what is wrong with the file, or its first variant's reason."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.py")
        with open(path, "w") as file:
            file.write(HEADER + text)
        done = subprocess.run([compiler, path, "--chip", chip, "--format", "json"], capture_output=True, text=True)
        if not done.stdout:
            return done.stderr
        return json.loads(done.stdout)["variants"][0].get("reason", "")


def sizes(*tiles):
    """Extents around tiles: nothing, one, a few, a prime, a tile and one more and less, several tiles."""
    found = {0, 1, 7, 13}
    for tile in tiles:
        found |= {max(tile - 1, 0), tile, tile + 1, 2 * tile}
    return sorted(found)


def some_shapes(rows, columns):
    """Pairs of extents: each row count with some column counts, each column count with some row counts."""
    pairs = set(zip(rows, itertools.cycle(columns[::-1]))) | set(zip(itertools.cycle(rows), columns))
    return sorted(pairs | {(rows[0], columns[-1]), (rows[-1], columns[0]), (rows[-1], columns[-1])})


def around_tiles(test, compiler, text, tiles, run, columns_for=sizes):
    """Calls run(variant, rows, columns, m, n) for each variant at extents around its tiles.

    tiles: the names of the constants that are a tile's two sides. columns_for: the extents n to try for a tile's columns.
    """
    for variant in variants(compiler, text):
        rows, columns = (variant.constants[name] for name in tiles)
        for m, n in some_shapes(sizes(rows), columns_for(columns)):
            with test.subTest(chip=variant.chip, constants=variant.constants, m=m, n=n):
                run(variant, rows, columns, m, n)


def floats(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def assert_scanned(got, want):
    """Sums so far: one element after the other, so equal to NumPy's; of floats on a GPU in pieces."""
    if "PHOBOS_TEST_CARD" in os.environ and want.dtype.kind == "f":
        rtol = 8 * np.finfo(want.dtype).eps
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.abs(want).max(initial=0))
    else:
        np.testing.assert_array_equal(got, want)


def cdiv(a, b):
    return -(-a // b)


def bf16(values):
    """f32 numbers, rounded to bf16: its bits."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)
