# SPDX-License-Identifier: Apache-2.0
"""Runs the Python blocks of docs/python.md as one program."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../requirements"))
from tuner import ROOT, Tuner


class DocsTest(unittest.TestCase):
    def test_every_block_runs(self):
        with open(os.path.join(ROOT, "docs/python.md")) as file:
            page = file.read()
        blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 8)
        tuner = Tuner("--rounds=3", "--warm-up=5ms")
        self.addCleanup(tuner.close)
        path = os.path.join(tuner.folder, "page.py")
        with open(path, "w") as file:
            file.write("\n".join(blocks))
        done = subprocess.run(
            [sys.executable, path], env=tuner.environment, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        for said in ("* winner", "tuned add {'N': 1048576}", "not contiguous", "0.10009766"):
            self.assertIn(said, done.stdout)


if __name__ == "__main__":
    unittest.main()
