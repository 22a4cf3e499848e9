# SPDX-License-Identifier: Apache-2.0
"""The kernels of the bundle are compiled for every chip; where $PHOBOS_PTXAS names one, ptxas takes what comes out.

bundle_test.py PHOBOS_COMPILE LIBCUDA [--all]        without --all: some kernels, the oldest and the newest chip

And a bundle runs through, on LIBCUDA, the stand-in of the driver: what it compares are twins there, so this is about the
bundle's own scripts.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import kernels
import make_bundle

COMPILER = os.path.abspath(sys.argv[1])
LIBCUDA = os.path.abspath(sys.argv[2])
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

    @unittest.skipUnless(EVERYTHING, "only with --all")
    def test_every_chip_takes_the_kernels_that_are_measured(self):
        with open("bench/gpu/peers/row_kernels.py", encoding="utf-8") as file:
            text = file.read()
        for name in re.findall(r"^@ph\.launch.*(?:\n@.*)*\ndef (\w+)", text, re.MULTILINE):
            for chip in CHIPS:
                with self.subTest(kernel=name, chip=chip), tempfile.TemporaryDirectory() as folder:
                    self.compile(text, chip, folder, "--kernel", name)
                    self.assemble(chip, folder)

    def compile(self, text, chip, folder, *more):
        command = [COMPILER, "-", "--chip", chip, "--all-variants", "--out", folder, "--format", "json", *more]
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
            # ptxas itself spills a word here and there; a tile in local memory would be more.
            frame = re.search(r"(\d+) bytes stack frame", answer.stderr)
            self.assertLessEqual(int(frame[1]), 16, answer.stderr)

    def test_a_bundle_runs(self):
        names = ["saxpy", "masks_and_fills", "promised", "cast_f16", "elements", "exp_f32", "log_f32"]
        with tempfile.TemporaryDirectory() as folder:
            make_bundle.make(COMPILER, folder, "sm_90", names)
            self.add_twins(folder, names)
            answer = self.run_bundle(folder)
            self.assertEqual(0, answer.returncode, answer.stdout + answer.stderr)
            self.assertIn("21 kernels, 246 launches, 0 outputs differ", answer.stdout)
            # Another kernel's twin: everything differs, and the bundle says so.
            self.add_twins(folder, ["exp_f32"], of="log_f32")
            answer = self.run_bundle(folder)
            self.assertEqual(1, answer.returncode, answer.stdout + answer.stderr)
            self.assertIn("exp_f32, 4096 elements, shift 0: out: ", answer.stdout)

    def add_twins(self, folder, names, of=None):
        for name in names:
            with open(os.path.join(folder, "host", of or name, "manifest.json"), encoding="utf-8") as file:
                hosts = json.load(file)["variants"]
            with open(os.path.join(folder, "gpu", name, "manifest.json"), encoding="utf-8") as file:
                gpus = json.load(file)["variants"]
            for host, gpu in zip(hosts, gpus):
                path = os.path.join(folder, "host", of or name, host["artifact"]["file"])
                twin = f"// host-twin: {path} {host['artifact']['entry']} {host['artifact'].get('scratch_bytes', 0)} 1\n"
                with open(os.path.join(folder, "gpu", name, gpu["artifact"]["file"]), "r+", encoding="utf-8") as file:
                    text = file.read().split("// host-twin")[0]
                    file.seek(0)
                    file.write(text + twin)
                    file.truncate()

    def run_bundle(self, folder):
        command = [sys.executable, os.path.join(folder, "run_bundle.py")]
        environment = {**os.environ, "PHOBOS_CUDA_LIBRARY": LIBCUDA}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
