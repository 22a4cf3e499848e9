# SPDX-License-Identifier: Apache-2.0
"""ph.print in a program: a launch prints to the program's standard error, a tune prints nothing."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../requirements"))
from tuner import Tuner

PROGRAM = """
from __future__ import annotations
import sys
import numpy as np
import phobos.lang as ph

def grid(meta):
    return (-(-meta["N"] // 4),)

@ph.kernel(key=("N",))
@ph.autotune(B=[4])
def doubled(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x * 4
    ph.print("from", i, "on:", x[i:+B])
    out[i:+B] = x[i:+B] * 2.0

x = np.arange(8, dtype=np.float32)
out = np.zeros_like(x)
doubled.tune(grid, x, out, reference=lambda x, out: {"out": 2 * x})
print("tuned", file=sys.stderr, flush=True)
doubled[grid](x, out)
assert (out == 2 * x).all()
"""


class PrintTest(unittest.TestCase):
    def test_a_launch_prints_and_a_tune_does_not(self):
        tuner = Tuner("--rounds=3", "--warm-up=5ms")
        self.addCleanup(tuner.close)
        path = os.path.join(tuner.folder, "program.py")
        with open(path, "w") as file:
            file.write(PROGRAM)
        done = subprocess.run(
            [sys.executable, path],
            env={**tuner.environment, "PHOBOS_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(
            lines[lines.index("tuned") :],
            [
                "tuned",
                "doubled block 0: from 0 on: [0.0 1.0 2.0 3.0]",
                "doubled block 1: from 4 on: [4.0 5.0 6.0 7.0]",
            ],
        )
        self.assertFalse([line for line in lines[: lines.index("tuned")] if "block" in line])


if __name__ == "__main__":
    unittest.main()
