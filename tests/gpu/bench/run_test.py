# SPDX-License-Identifier: Apache-2.0
"""bench/gpu runs through on the stand-in driver, without torch: so that a run on a card, which is dear, does not end at a
slip of the pen. What it measures means nothing here; what is right or wrong does."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

RUN = os.path.abspath("bench/gpu/run.py")
SECTIONS = os.path.join(os.path.dirname(RUN), "sections")
sys.path[:0] = [os.path.dirname(RUN), SECTIONS]
import report
import run
import small

# What guilty_compiler.py plants runs on a card alone; here the driver is told to do the same.
SCRIPT = """
l2_bytes 65536
kernel FAULT=1 lost 0 700
kernel FAULT=2 lost 0 716
kernel FAULT=3 hang 0
kernel FAULT=4 poke 2 20000
kernel FAULT=5 link 218
kernel FAULT=6 max_threads 32
kernel FAULT=7 local 524000
kernel FAULT=7 refuse 0 1
kernel FAULT=8 refuse 0 2
"""


def found(variable):
    return os.path.abspath(os.environ[variable])


class Run(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="phobos-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name in ("twins", "dist/bin", "hidden"):
            os.makedirs(self.path(name))
        os.symlink(found("LAUNCH_ON_CARD"), self.path("dist/bin/launch_on_card"))
        with open(self.path("script"), "w") as file:
            file.write(SCRIPT)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self):
        return {
            **os.environ, "HOME": self.folder, "TMPDIR": self.folder, "PHOBOS_DIST": self.path("dist"),
            "PHOBOS_CUDA_LIBRARY": found("FAKE_CUDA"), "PHOBOS_NVML_LIBRARY": found("FAKE_NVML"),
            "PHOBOS_FAKE_CUDA_SCRIPT": self.path("script"), "PHOBOS_FAKE_COMPILER": found("PHOBOS_COMPILER"),
            "PHOBOS_FAKE_TWINS": self.path("twins"), "PHOBOS_COMPILER": found("FAKE_COMPILER"),
            "PHOBOS_DAEMON": found("PHOBOS_DAEMON"), "PHOBOS_LIBRARY": found("PHOBOS_LIBRARY"),
            "PHOBOS_GPU_BENCH_QUICK": "1",
        }

    def sections(self, *arguments):
        """{section: {"outcome", "rows", ...}} of a run, and what it printed."""
        done = subprocess.run([sys.executable, RUN, "--out", self.path("out"), *arguments], env=self.environment(),
                              capture_output=True, text=True, timeout=250)
        with open(self.path("out/gpu.json")) as file:
            sections = json.load(file)["sections"]
        with open(self.path("out/gpu.log")) as file:
            return sections, done.stdout + done.stderr + file.read()

    def test_kernels_of_the_language_have_a_row_each(self):
        command = [sys.executable, os.path.abspath("tests/compiler/kernels/run_on_card.py"), "elementwise_test.py"]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, timeout=100)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        rows = run.rows_of(self.folder, done.stdout)
        self.assertEqual({"vector add": "14 launches, 0 differ", "saxpy with scalars": "28 launches, 0 differ",
                          "gelu and relu": "42 launches, 0 differ",
                          "ranges longer than any i64": "16 launches, 0 differ"}, {row["name"]: row["note"] for row in rows})

    def test_sections_run_through(self):
        names = ("correct", "faults", "small", "tune", "launch", "regret")
        sections, said = self.sections(*names)
        self.assertEqual(list(sections), list(names), said)
        for name, section in sections.items():
            with self.subTest(name):
                # A limit of time that was missed says nothing here.
                self.assertRegex(section["outcome"], r"^(ok|limits missed: \d+)$", said)
                self.assertNotIn("Traceback", said)
                wrong = [row for row in section["rows"] if row["value"] == "no"]
                self.assertEqual(wrong, [], said)
        checks = {row["name"] for section in sections.values() for row in section["rows"] if row["value"] == "yes"}
        for name in ("planted: infinite loop", "planted: one byte behind a tensor written", "i64: the sum is NumPy's at 3 sizes",
                     "3 processes at once: one tune, one winner", "the second process tuned nothing",
                     "C++ on device pointers: tunes, and the sum is right"):
            self.assertIn(name, checks, said)
        with open(self.path("out/gpu.md")) as file:
            self.assertIn("| cold tune of the add, whole call |", file.read())
        names = [row["name"] for row in sections["regret"]["rows"]]
        self.assertEqual(len(names), len(set(names)), names)

    def test_a_fault_that_costs_no_variant_is_a_miss(self):
        with open(self.path("script"), "w") as file:
            file.write(SCRIPT.replace("kernel FAULT=8 refuse 0 2\n", ""))
        sections, said = self.sections("faults")
        missed = [row["name"] for row in sections["faults"]["rows"] if row["met"] is False]
        # The variant is as honest as the other then, and may win.
        missed = [name for name in missed if name.startswith("planted")]
        self.assertEqual(missed, ["planted: no memory left on the card"], said)
        count = sections["faults"]["missed"]
        self.assertEqual(sections["faults"]["outcome"], f"limits missed: {count}")


def has_ended(pid, seconds=10):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


class OneSection(unittest.TestCase):

    def run_program(self, text, seconds):
        run.SECTIONS["own"] = ([sys.executable, "-c", text], seconds)
        with tempfile.TemporaryFile("w+") as log:
            section = run.run("own", seconds, log)
            log.seek(0)
            return section, log.read()

    def test_one_that_hangs_is_ended_with_its_children(self):
        program = ("import subprocess, time\n"
                   "child = subprocess.Popen(['sleep', '600'])\nprint(child.pid, flush=True)\ntime.sleep(600)")
        section, log = self.run_program(program, 3)
        self.assertEqual(section["outcome"], "took longer than 3 s")
        child = int(log.split("\n")[1])
        self.assertTrue(has_ended(child), log)

    def test_what_the_programs_of_tests_say_becomes_rows(self):
        lines = ("FIGURE timer floor   1500.000 ns", "[       OK ] CardTest.Describes (3 ms)",
                 "[  FAILED  ] CardTest.Slow (3 ms)", "ok   CuPy arrays", "       us_a_launch: 4.5", "skip JAX arrays",
                 "FAIL torch: streams", "21 kernels, 246 launches, 0 outputs differ", "hand, 128-bit loads median  51.02 us, best  50.00 us")
        section, _ = self.run_program("print('''" + "\n".join(lines) + "''')", 20)
        rows = {row["name"]: (row["value"], row["met"]) for row in section["rows"]}
        self.assertEqual(rows["timer floor"], (1500.0, None))
        self.assertEqual(rows["CardTest.Describes"], ("ok", True))
        self.assertEqual(rows["CardTest.Slow"], ("failed", False))
        self.assertEqual(rows["CuPy arrays"], ("ok", True))
        self.assertEqual(rows["JAX arrays"], ("skip", None))
        self.assertEqual(rows["torch: streams"], ("fail", False))
        self.assertTrue(rows["21 kernels, 246 launches, 0 outputs differ"][1])
        self.assertEqual(rows["hand, 128-bit loads"], (51.02, None))
        self.assertIn("us_a_launch: 4.5", [row["note"] for row in section["rows"]])
        self.assertEqual((section["missed"], section["outcome"]), (2, "limits missed: 2, ended with 0"))
        self.assertIn("| timer floor | 1500 ns |", report.text({"machine": {"when": "now"}, "sections": {"own": section}}))

    def test_one_that_breaks_off_says_so_in_its_rows(self):
        program = (f"import sys; sys.path.insert(0, {SECTIONS!r})\nimport stage\nfigures = stage.Figures()\n"
                   "figures.check('first', True)\nraise KeyError('gone')")
        section, log = self.run_program(program, 60)
        self.assertEqual(section["outcome"], "limits missed: 1", log)
        self.assertEqual([(row["name"], row["met"]) for row in section["rows"]],
                         [("first", True), ("the section ran to its end", False)])
        self.assertIn("KeyError: 'gone'", log)


class Small(unittest.TestCase):

    def test_steps_are_found_on_the_lines_between_lengths(self):
        self.assertEqual(small.solved({1: 500, 10: 900, 30: 1100, 130: 3100}), (20, 75))

    def test_a_kernel_has_a_step_where_its_rest_is_longer(self):
        self.assertEqual(small.solved({1: 1300, 11: 1500, 111: 2500}), (1, 61))

    def test_lengths_that_do_not_grow(self):
        self.assertEqual(small.solved({1: 1300, 2: 1200, 12: 2400}), (1, 8))
        self.assertEqual(small.solved({1: 2400, 2: 2500}), (1, 2))


class Report(unittest.TestCase):

    def runs(self):
        folder = os.path.join(os.path.dirname(RUN), "runs")
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name)) as file:
                yield json.load(file)

    def test_the_page_shows_the_runs_that_are_kept(self):
        with open("docs/performance.md") as file:
            page = file.read()
        self.assertIn("\n".join(report.text(document, level=3, brief=True) for document in self.runs()), page,
                      "run bench/gpu/report.py as the page says")

    def test_a_miss_is_shown_and_long_notes_are_cut(self):
        row = {"name": "slow", "value": 2.0, "unit": "s", "limit": "<= 1", "met": False, "note": "word " * 100}
        held = {"name": "right", "value": "yes", "unit": "", "limit": "yes", "met": True, "note": ""}
        section = {"outcome": "limits missed: 1", "missed": 1, "seconds": 3.2, "rows": [row, held]}
        document = {"machine": {"when": "now", "card": {"name": "H200"}}, "sections": {"own": section}}
        said = report.text(document, brief=True)
        self.assertIn("# Run of now: limits missed: 1", said)
        self.assertIn("- card before: name H200", said)
        self.assertIn("- missed: own, slow\n", said)
        self.assertIn("## own: limits missed: 1 (3 s)", said)
        self.assertIn("| slow | 2 s | <= 1 | MISSED | word word", said)
        self.assertLess(max(map(len, said.splitlines())), 200)
        self.assertNotIn("| right |", said)
        self.assertIn("| right |", report.text(document))

    def test_what_the_plot_shows(self):
        rows = [("cold tune of the add, whole call", 0.5, "Triton in turn 1.5 s"), ("tune at a new n, whole call", 0.4, ""),
                ("4 processes at once: wall over one process", 1.0, "0.85 s"), ("4 processes at once: Triton's wall", 3.5, "")]
        rows = [{"name": name, "value": value, "note": note} for name, value, note in rows]
        self.assertEqual(report.against_triton({"sections": {"tune": {"rows": rows}}}),
                         [("cold tune", 0.5, 1.5), ("4 processes", 0.85, 3.5)])
        self.assertEqual(report.against_triton({"sections": {}}), [])


if __name__ == "__main__":
    unittest.main()
