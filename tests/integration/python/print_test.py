# SPDX-License-Identifier: Apache-2.0
"""ph.print in a program: a launch prints to the program's standard error, a tune prints nothing."""

import os
import re
import subprocess
import sys
import time
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

# Blocks print more than a pipe takes at once, to one that is slow and does not wait.
LONG_LINES = """
from __future__ import annotations
import os
import numpy as np
import phobos.lang as ph

@ph.kernel(key=("N",))
@ph.autotune(B=[1])
def loud(out: ph.tensor[ph.i32][N]):
    i: ph.let = ph.ctx.block.x
    ph.print(ph.full(ph.i32, ph.cast(i, ph.i32), 1000), "end")
    out[i] = 1

out = np.zeros(100, np.int32)
os.set_blocking(2, False)
loud[(100,)](out)
"""


class PrintTest(unittest.TestCase):

    def program(self, text, threads):
        """A process of its own that runs this text beside a daemon, with what it prints to standard error in a pipe."""
        tuner = Tuner("--rounds=3", "--warm-up=5ms")
        self.addCleanup(tuner.close)
        path = os.path.join(tuner.folder, "program.py")
        with open(path, "w") as file:
            file.write(text)
        environment = {**tuner.environment, "PHOBOS_THREADS": str(threads)}
        return subprocess.Popen([sys.executable, path], env=environment, stderr=subprocess.PIPE)

    def test_a_launch_prints_and_a_tune_does_not(self):
        with self.program(PROGRAM, threads=1) as program:
            text = program.stderr.read().decode()
        self.assertEqual(program.returncode, 0, text)
        lines = text.splitlines()
        tuned = lines.index("tuned")
        self.assertEqual(lines[tuned:], [
            "tuned",
            "doubled block 0: from 0 on: [0.0 1.0 2.0 3.0]",
            "doubled block 1: from 4 on: [4.0 5.0 6.0 7.0]",
        ])
        self.assertFalse([line for line in lines[:tuned] if "block" in line])

    def test_long_lines_come_out_in_one_piece_each(self):
        text = b""
        with self.program(LONG_LINES, threads=4) as program:
            while piece := os.read(program.stderr.fileno(), 3000):
                text += piece
                time.sleep(0.001)
        self.assertEqual(program.returncode, 0, text[-500:])
        printed = re.findall(rb"loud block (\d+): \[([\d\s]+)\] end\n", text)
        self.assertEqual(sorted(int(block) for block, _ in printed), list(range(100)))
        for block, elements in printed:
            self.assertEqual(elements.split(), [block] * 1000)


if __name__ == "__main__":
    unittest.main()
