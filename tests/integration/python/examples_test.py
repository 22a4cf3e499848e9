# SPDX-License-Identifier: Apache-2.0
"""The examples: as programs, and their kernels against NumPy at sizes around the tiles."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../requirements"))
from tuner import ROOT, Tuner, found

# Every size with first choices (nothing is tuned), and one with the winner.
_CHECK = """
import math, os, sys
import numpy as np
import phobos.lang as ph
import gelu, saxpy, vector_add

def close(got, want, rtol):
    return np.allclose(got, want, rtol=rtol, atol=1e-5)

def check(n):
    x = np.linspace(-5, 5, n, dtype=np.float32)
    y = np.cos(x)
    out = np.full_like(x, 9)
    vector_add.add[vector_add.grid](x, y, out)
    assert np.array_equal(out, x + y), n
    out = y.copy()
    saxpy.saxpy[saxpy.grid](alpha=-1.5, x=x, y=out)
    assert np.array_equal(out, np.float32(-1.5) * x + y), n
    erf = np.array([math.erf(v / math.sqrt(2)) for v in x.astype(float)])
    gelu.gelu_f32[gelu.grid](x, y, out)
    assert close(out, 0.5 * x * (1 + erf) * y, 2e-6), n
    hx, hy, hout = x.astype(np.float16), y.astype(np.float16), np.zeros(n, np.float16)
    gelu.gelu_f16[gelu.grid](hx, hy, hout)
    wide = hx.astype(float)
    erf = np.array([math.erf(v / math.sqrt(2)) for v in wide])
    assert close(hout, 0.5 * wide * (1 + erf) * hy, 1e-3), n
    bx, by, bout = ph.to_bf16(x), ph.to_bf16(y), np.zeros(n, np.uint16)
    gelu.gelu_bf16[gelu.grid](bx, by, bout)
    wide = ph.from_bf16(bx).astype(float)
    erf = np.array([math.erf(v / math.sqrt(2)) for v in wide])
    assert close(ph.from_bf16(bout), 0.5 * wide * (1 + erf) * ph.from_bf16(by), 5e-3), n

for n in map(int, sys.argv[1:]):
    check(n)
"""

# Tiles of several sides: each kernel against its own reference.
_TILES_CHECK = """
import sys
import numpy as np
import phobos.lang as ph
import attention, layernorm, matmul, softmax

random = np.random.default_rng(3)

def real(*shape, dtype=np.float32):
    return random.standard_normal(shape, np.float32).astype(dtype)

def check(kernel, grid, reference, tolerance, *arguments):
    want = reference(*(array.copy() for array in arguments))
    kernel[grid](*arguments)
    for name, array in want.items():
        assert np.allclose(arguments[-1], array, rtol=tolerance, atol=tolerance), (kernel, [a.shape for a in arguments])

for rows, columns in (0, 5), (1, 1), (3, 7), (2, 63), (5, 64), (2, 65), (2, 1823):
    x, out, (weight, bias) = real(rows, columns), np.zeros((rows, columns), np.float32), real(2, columns)
    check(softmax.softmax, softmax.grid, softmax.reference, 1e-5, x, out)
    check(softmax.softmax_looped, softmax.grid, softmax.reference, 1e-5, x, out)
    check(layernorm.layernorm, layernorm.grid, layernorm.layernorm_reference, 1e-4, x, weight, bias, out)
    check(layernorm.rmsnorm, layernorm.grid, layernorm.rmsnorm_reference, 1e-4, x, weight, out)
for m, n, k in (0, 3, 4), (1, 1, 1), (7, 65, 33), (64, 64, 64), (129, 63, 17):
    a, b = real(m, k), real(k, n)
    check(matmul.matmul, matmul.grid, matmul.product, 1e-4, a, b, np.zeros((m, n), np.float32))
    half = [v.astype(np.float16) for v in (a / 4, b, real(n), np.zeros((m, n)))]
    check(matmul.layer, matmul.grid, matmul.layer_reference, 1e-2, *half)
for heads, length in (0, 4), (1, 1), (2, 7), (2, 64), (1, 131):
    arrays = [real(heads, length, attention.HEAD, dtype=np.float16) for _ in range(4)]
    check(attention.attention, attention.grid, attention.attention_reference, 1e-2, *arrays)
    check(attention.causal_attention, attention.grid, attention.causal_reference, 1e-2, *arrays)
"""


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        self.tuner = Tuner("--rounds=3", "--warm-up=5ms")
        self.addCleanup(self.tuner.close)

    def run_python(self, *arguments, **environment):
        path = os.pathsep.join(
            [self.tuner.environment["PYTHONPATH"], os.path.join(ROOT, "examples")]
        )
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**self.tuner.environment, "PYTHONPATH": path, **environment},
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def example(self, name, *arguments):
        return self.run_python(os.path.join(ROOT, "examples", name), *arguments)

    def test_vector_add_tunes_once(self):
        self.assertIn("* winner", self.example("vector_add.py", "100000"))
        second = self.example("vector_add.py", "100000")
        self.assertIn("launched without tuning: {'BLOCK': ", second)
        self.assertNotIn("* winner", second)

    def test_vector_add_says_that_it_launched_first_choices(self):
        path = os.path.join(ROOT, "examples/vector_add.py")
        said = self.run_python(path, "1000", PHOBOS_TUNE="off")
        self.assertIn("launched the first choices: no Result is stored at N=1000", said)
        self.assertRegex(said, r"a launch: \d+\.\d+ (us|ms)")

    def test_c_and_cpp_processes_get_the_winner_that_python_found(self):
        table = self.example("vector_add.py", "100000")
        block = re.search(r"^\*  BLOCK=(\d+)", table, re.MULTILINE).group(1)
        source = os.path.join(ROOT, "examples/vector_add.py")
        for variable, path, said in (
            ("VECTOR_ADD", "bazel-bin/examples/vector_add", f"winner BLOCK={block}, "),
            ("VECTOR_ADD_C", "bazel-bin/examples/vector_add_c", f'"BLOCK":{block}'),
        ):
            done = subprocess.run(
                [found(variable, path), source, "100000"],
                env=self.tuner.environment,
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(said, done.stdout)
        self.assertEqual(self.tuner.status()["tunes"], "1")

    def test_saxpy(self):
        out = self.example("saxpy.py", "100000")
        self.assertEqual(out.count("UNROLL="), 12)
        self.assertIn("y = 2 x + 1", out)

    def test_torch_where_there_is_a_gpu(self):
        out = self.example("torch_add.py", "100000")
        self.assertTrue("sums on" in out or out.startswith("skipped: "), out)

    def test_gelu(self):
        out = self.example("gelu.py", "20000")
        for name in ("gelu_f32", "gelu_f16", "gelu_bf16"):
            self.assertIn(name + " at N=20000", out)

    def test_kernels_agree_with_numpy(self):
        sizes = [str(n) for n in (0, 1, 7, 255, 256, 257, 511, 512, 513, 4099)]
        self.run_python("-c", _CHECK, *sizes, PHOBOS_TUNE="off")
        self.run_python("-c", _CHECK, "4099")

    def test_tiles_agree_with_numpy(self):
        self.run_python("-c", _TILES_CHECK, PHOBOS_TUNE="off")

    def test_programs_with_tiles(self):
        for name, arguments, said in (
            ("softmax.py", ("64", "100"), ("softmax at C=100", "softmax_looped at C=100")),
            ("layernorm.py", ("64", "100"), ("layernorm at C=100", "rmsnorm at C=100")),
            ("matmul.py", ("64", "64", "64"), ("matmul at M=64", "layer at M=64")),
            ("attention.py", ("1", "64"), ("attention at S=64", "causal_attention at S=64")),
        ):
            out = self.example(name, *arguments)
            for line in said:
                self.assertIn(line, out)


if __name__ == "__main__":
    unittest.main()
