# SPDX-License-Identifier: Apache-2.0
"""Variants that cannot be proved free of races, tuned on the host chip and on the stand-in card of tests/gpu/fake_driver: a
recording on the tune's own arguments decides."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../requirements"))
from tuner import Tuner, found

QUICK = ("--rounds=3", "--warm-up=10ms")
RECORDED = ", found by its race-recording form on these arguments"


class Races:
    """The cases of races.py, on a device."""

    def begin(self, **environment):
        patch = unittest.mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)
        self.tuner = Tuner(*QUICK)
        self.addCleanup(self.tuner.close)

    def outcomes(self, *cases):
        """{case: {settings: (status, reason, whether recorded)}}"""
        done = subprocess.run([sys.executable, os.path.join(HERE, "races.py"), *cases], env=self.tuner.environment,
                              capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def test_verdicts(self):
        self.begin()
        found = self.outcomes("unique", "across_blocks", "in_a_block", "reads_its_own", "reads_anothers", "atomics",
                              "atomic_and_store")
        for case in ("unique", "reads_its_own", "atomics"):
            self.assertEqual(found[case], {"B=64": ["timed", "", True], "B=24": ["timed", "", True]}, case)
        line, place = self.line("out[at] = x[i:+B]"), np.random.default_rng(3).permutation(1000)[3]
        self.assertEqual(found["across_blocks"]["B=64"][:2], [
            "race", f"block (0, 0, 0) writes out[{place}] ({line}) and block (15, 0, 0) writes it ({line})" + RECORDED])
        for settings in ("B=64", "B=24"):
            self.assertEqual(found["in_a_block"][settings], [
                "race", f"a scatter of block (0, 0, 0) writes out[{place}] twice ({line})" + RECORDED, False])
        line = self.line("out[i:+B] = out[ph.load(to[i:+B], fill=-1)] + 1.0")
        self.assertEqual(found["reads_anothers"]["B=24"][:2], [
            "race", f"block (0, 0, 0) writes out[3] ({line}) and block (41, 0, 0) reads it ({line})" + RECORDED])
        store, atomic = self.line("out[i:+B] = 0"), self.line("ph.atomic_add(out[ph.load(to[i:+B], fill=-1)], 1)")
        self.assertEqual(found["atomic_and_store"]["B=64"][:2], [
            "race",
            f"block (0, 0, 0) writes out[3] ({store}) and block (15, 0, 0) atomically changes it ({atomic})" + RECORDED])

    @staticmethod
    def line(text):
        with open(os.path.join(HERE, "races.py")) as file:
            lines = [number for number, line in enumerate(file, 1) if line.strip() == text]
        return f"{os.path.join(HERE, 'races.py')}:{lines[0]}"


class OnHost(Races, unittest.TestCase):
    def test_nothing_to_write(self):
        self.begin()
        self.assertEqual(self.outcomes("empty"), {"empty": {"B=64": ["timed", "", True], "B=24": ["timed", "", True]}})

    def test_a_recording_is_made_once(self):
        self.begin()
        self.outcomes("unique")
        artifacts = self.tuner.artifacts()
        self.assertEqual(len(artifacts), 4)  # two variants, each with its recording form
        self.outcomes("unique", "across_blocks")
        self.assertEqual(self.tuner.artifacts(), artifacts)


    # Tunes in one process, launches in another: scatter's M is no part of its key.
    def test_launches_at_other_extents_than_the_recordings_are_warned_of_once(self):
        self.begin()
        self.outcomes("unique")
        program = """
import warnings
import numpy as np
import races
def launch(m):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = np.zeros(m, np.float32)
        races.scatter[races.grid](np.ones(races.LENGTH, np.float32), races.permutation(), out)
        assert out[: races.LENGTH].all()
    print(m - races.LENGTH, *(str(warning.message) for warning in caught))
for more in 0, 5, 6, 5:
    launch(races.LENGTH + more)
"""
        environment = {**self.tuner.environment}
        environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], HERE])
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        first, second, *rest = done.stdout.splitlines()
        self.assertEqual((first, rest), ("0", ["6", "5"]), done.stdout)
        said = "the variant that is launched is not proved free of races, .* made at N=1000, M=1000, and launches"
        self.assertRegex(second, "^5 scatter: " + said)


class OnCard(Races, unittest.TestCase):
    def begin(self, script=""):
        folder = tempfile.mkdtemp(prefix="phobos-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        with open(os.path.join(folder, "script"), "w") as file:
            file.write(script)
        super().begin(
            PHOBOS_CUDA_LIBRARY=found("FAKE_CUDA", ""),
            PHOBOS_NVML_LIBRARY=found("FAKE_NVML", ""),
            PHOBOS_FAKE_CUDA_SCRIPT=os.path.join(folder, "script"),
            PHOBOS_FAKE_COMPILER=found("PHOBOS_COMPILER", ""),
            PHOBOS_FAKE_TWINS=folder,
            PHOBOS_COMPILER=found("FAKE_COMPILER", ""))

    def failure(self, script, case="unique_in_one_way"):
        """Why the one variant of a scatter without races was left out."""
        self.begin(script)
        status, reason, is_recorded = self.outcomes(case)[case]["B=64"]
        self.assertEqual((status, is_recorded), ("race_check_failed", False), reason)
        beginning = "could not be proved free of races, and its race-recording form gave no answer: "
        self.assertTrue(reason.startswith(beginning), reason)
        return reason.removeprefix(beginning)

    def test_a_recording_that_faults(self):
        self.assertIn("it ended the worker process twice, last by ", self.failure("kernel _ph_form=record lost 1 700\n"))

    def test_a_recording_that_is_not_linked(self):
        self.assertIn("the script says so", self.failure("kernel _ph_form=record link 218\n"))

    def test_a_recording_that_does_not_end(self):
        self.assertIn("it ran longer than 10.0 s", self.failure("kernel _ph_form=record hang 1\n"))

    def test_shadows_over_the_memory_there_is(self):
        # The tensors of 4 MiB, copies of them and 2 MB to flush fit; four shadows more do not.
        reason = self.failure("memory_bytes 40000000\nl2_bytes 1000000\n", "large")
        self.assertIn("it needs 16777216 bytes for shadows beside the tensors: ", reason)


if __name__ == "__main__":
    unittest.main()
