# SPDX-License-Identifier: Apache-2.0
"""Random kernels come back from the file that random_bundle writes, and what differs is seen.

random_test.py RANDOM_BUNDLE
"""

import lzma
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import run_random

PROGRAM = os.path.abspath(sys.argv.pop(1))


class Random(unittest.TestCase):

    def test_a_file_of_kernels(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "random")
            subprocess.run([PROGRAM, path, "0", "12"], check=True, stdout=subprocess.DEVNULL)
            with open(path, "rb") as source, lzma.open(path + ".xz", "wb", preset=0) as target:
                target.write(source.read())
            kernels = list(run_random.records(path + ".xz"))
        self.assertEqual(12, len(kernels))
        changed, promises = 0, set()
        for head, ptx, tensors in kernels:
            self.assertIn(f".entry {head['entry']}(".encode(), ptx)
            changed += any((before != after).any() for before, after in tensors)
            self.check_differences(head, [after for _, after in tensors])
            promises |= {parameter["aligned_bytes"] for parameter in head["parameters"] if "elements" in parameter}
        self.assertGreater(changed, 8)
        self.assertLessEqual({1, 16}, promises)

    def check_differences(self, head, wanted):
        self.assertEqual([], list(run_random.differences(head, wanted, wanted)))
        turned = [~array for array in wanted]
        expected = [array for array in wanted if array.size]
        self.assertLessEqual(1, len(list(run_random.differences(head, turned, wanted))))
        self.assertLessEqual(len(list(run_random.differences(head, turned, wanted))), len(expected))

    def test_tensors_start_where_they_are_promised_to(self):
        for promise in (1, 2, 4, 16, 64):
            for itemsize in (1, 8):
                least = max(promise, itemsize)
                starts = [run_random.start_of({"aligned_bytes": promise}, number, itemsize) for number in (0, 1)]
                self.assertEqual([0, least], [start % (2 * least) for start in starts])
                self.assertTrue(all(start >= run_random.GUARD for start in starts))

    def test_units_in_the_last_place(self):
        head = {"seed": 1, "parameters": [{"name": "x", "dtype": "F32", "elements": 3, "ulps": 2}]}
        want = np.array([1.0, 0.0, np.nan], np.float32).view(np.uint32)
        near = np.array([0x3F800003, 0x80000003, 0x7FC00001], np.uint32)
        self.assertEqual([], list(run_random.differences(head, [near], [want])))
        far = np.array([0x3F800004, 0, 0x7FC00000], np.uint32)
        self.assertEqual(1, len(list(run_random.differences(head, [far], [want]))))
        head["parameters"][0]["ulps"] = 0
        self.assertEqual(1, len(list(run_random.differences(head, [near], [want]))))


if __name__ == "__main__":
    unittest.main()
