# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/language.md, compiled and run against their references, and its errors, asked for."""

import ast
import re
import sys
import unittest

import numpy as np

import compiled

COMPILER = sys.argv.pop(1)
with open(sys.argv.pop(1)) as page:
    PAGE = page.read()

EXTENTS = {"N": 53, "M": 7, "K": 20}  # of every example, and what its constraints say of others
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32,
         "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}


def examples():
    """The page's blocks that hold a kernel, each as text."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [block for block in blocks if "@ph.kernel" in block]


def functions(text):
    """The Python functions `reference` and `grid` of an example."""
    wanted = [node for node in ast.parse(text).body if getattr(node, "name", "") in ("reference", "grid")]
    scope = {"np": np}
    exec(compile(ast.Module(wanted, []), "example", "exec"), scope)
    return scope["reference"], scope["grid"]


def argument(parameter, extents, random):
    kind = TYPES[parameter["dtype"].rsplit("_", 1)[-1].lower()]
    shape = [extents[d["extent"]] if "extent" in d else int(d["literal"]) for d in parameter.get("dims", [])]
    if np.issubdtype(kind, np.floating):
        return np.asarray(random.standard_normal(shape), kind)[()]
    return np.asarray(random.integers(0, 9, shape), kind)[()]


class Page(unittest.TestCase):

    def test_every_example_does_what_its_reference_does(self):
        self.assertGreater(len(examples()), 15)
        for text in examples():
            with self.subTest(example=text):
                self.run_example(text)

    def run_example(self, text):
        reference, grid = functions(text)
        extents = {**EXTENTS, "N2": 2 * EXTENTS["N"]}
        for variant in compiled.variants(COMPILER, text, every_chip=False, checks_races=False):
            random = np.random.default_rng(11)
            arguments = {p["name"]: argument(p, extents, random) for p in variant.parameters}
            want = reference(**{name: np.copy(value) for name, value in arguments.items()})
            got = variant.run(grid({**variant.constants, **extents}), **arguments)
            for name, value in want.items():
                with self.subTest(constants=variant.constants, tensor=name):
                    self.assertEqual(np.asarray(value).shape, got[name].shape)
                    rtol, atol = (2e-3, 2e-3) if got[name].dtype == np.float16 else (1e-5, 1e-6)
                    np.testing.assert_allclose(got[name], value, rtol=rtol, atol=atol)

    def test_every_error_of_the_page_is_said(self):
        rows = re.findall(r"^\| `(.*?)` \| (.*?) \| (.*?) \|$", PAGE.split("## What the compiler says")[1], re.MULTILINE)
        self.assertGreater(len(rows), 20)
        for written, error, remedy in rows:
            body = written.replace("\\|", "|").replace("; ", "\n    ")
            text = ("@ph.kernel\ndef k(x: ph.tensor[ph.f32][N], m: ph.tensor[ph.f32][N, 8], k: ph.tensor[ph.i32][N],\n"
                    "      b: ph.tensor[ph.bool][N], out: ph.tensor[ph.f32][N], a: ph.f32, n: ph.i32):\n    " + body + "\n")
            with self.subTest(written=written):
                said = compiled.refusal(COMPILER, text, "x86-64-v3")
                self.assertIn(": error: " + error.replace("\\|", "|"), said)
                self.assertIn(remedy.replace("\\|", "|"), said)


if __name__ == "__main__":
    unittest.main()
