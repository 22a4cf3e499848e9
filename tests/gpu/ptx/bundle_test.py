# SPDX-License-Identifier: Apache-2.0
"""The kernels of the bundle are compiled for every chip; where $PHOBOS_PTXAS names one, ptxas takes what comes out.

bundle_test.py PHOBOS_COMPILE [--all]        without --all: some kernels, the oldest and the newest chip
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import kernels

COMPILER = os.path.abspath(sys.argv[1])
EVERYTHING = "--all" in sys.argv
CHIPS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90") if EVERYTHING else ("sm_75", "sm_90")


def chosen():
    everything = kernels.kernels()
    if EVERYTHING:
        return everything
    some = list(kernels.STATEMENTS) + ["erf_f32", "pow_f64", "fma_f16", "integer_u8", "integer_i64", "cast_f64"]
    return {name: everything[name] for name in some}


class Bundle(unittest.TestCase):

    def test_every_chip_takes_every_kernel(self):
        for name, (_, text) in chosen().items():
            for chip in CHIPS:
                with self.subTest(kernel=name, chip=chip), tempfile.TemporaryDirectory() as folder:
                    self.compile(text, chip, folder)
                    self.assemble(chip, folder)

    def compile(self, text, chip, folder):
        command = [COMPILER, "-", "--chip", chip, "--all-variants", "--out", folder, "--format", "json"]
        answer = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        self.assertEqual(0, answer.returncode, answer.stderr)
        for variant in json.loads(answer.stdout)["variants"]:
            self.assertEqual("VARIANT_STATUS_COMPILED", variant["status"], variant.get("reason"))
            self.assertGreater(variant["artifact"]["threads"], 0)

    def assemble(self, chip, folder):
        ptxas = os.environ.get("PHOBOS_PTXAS")
        for name in os.listdir(folder) if ptxas else ():
            if not name.endswith(".ptx"):
                continue
            path = os.path.join(folder, name)
            command = [ptxas, f"-arch={chip}", "-v", "-lineinfo", path, "-o", f"{path}.cubin"]
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(0, answer.returncode, answer.stderr)
            self.assertIn(" 0 bytes spill stores", answer.stderr)
            self.assertIn(" 0 bytes stack frame", f" {answer.stderr.strip()}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
