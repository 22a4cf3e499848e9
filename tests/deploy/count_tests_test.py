# SPDX-License-Identifier: Apache-2.0
"""deploy/count_tests.py on reports as Bazel, GoogleTest and unittest write them."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

GOOGLETEST = """<?xml version="1.0"?><testsuites><testsuite name="S">
<testcase name="a" status="run" result="completed" classname="S"/>
<testcase name="b" status="run" result="completed" classname="S"><failure message="x"/></testcase>
<testcase name="c" status="run" result="skipped" classname="S"><skipped/></testcase>
<testcase name="DISABLED_d" status="notrun" result="suppressed" classname="S"/>
</testsuite></testsuites>"""
BAZELS_OWN = '<testsuites><testsuite><testcase name="x" status="run" time="0"/></testsuite></testsuites>'


class CountTests(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.events = []

    def add_test(self, label, status="PASSED", xml=None, log=None):
        self.events.append({"id": {"targetConfigured": {"label": label}}, "configured": {"targetKind": "cc_test rule"}})
        outputs = []
        for name, text in (("test.xml", xml), ("test.log", log)):
            if text is not None:
                path = os.path.join(self.folder, f"{len(self.events)} {name}")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                outputs.append({"name": name, "uri": "file://" + path.replace(" ", "%20")})
        self.events.append({"id": {"testResult": {"label": label}},
                            "testResult": {"status": status, "testActionOutput": outputs}})

    def count(self, lint=None):
        """Last line and exit status."""
        arguments = []
        for name, events in (("tests.json", self.events), ("lint.json", lint)):
            if events is not None:
                path = os.path.join(self.folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.writelines(json.dumps(event) + "\n" for event in events)
                arguments.append(("--lint=" if name == "lint.json" else "") + path)
        answer = subprocess.run([sys.executable, "deploy/count_tests.py"] + arguments, capture_output=True, text=True)
        self.assertEqual("", answer.stderr)
        return answer.stdout.rstrip("\n").split("\n")[-1], answer.returncode

    def test_googletest_cases(self):
        self.add_test("//a", "FAILED", GOOGLETEST)
        self.assertEqual(("1 passed, 1 failed", 1), self.count())

    def test_unittest_cases(self):
        self.add_test("//a", "PASSED", BAZELS_OWN, "..s\nRan 7 tests in 0.1s\n\nOK (skipped=1)\n")
        self.assertEqual(("6 passed, 0 failed", 0), self.count())
        self.add_test("//b", "FAILED", BAZELS_OWN, "F\nRan 5 tests in 0.1s\n\nFAILED (failures=1, errors=2)\n")
        self.assertEqual(("8 passed, 3 failed", 1), self.count())

    def test_many_failed_subtests_of_one_case(self):
        self.add_test("//a", "FAILED", BAZELS_OWN, "Ran 2 tests in 0.1s\n\nFAILED (failures=40)\n")
        self.assertEqual(("0 passed, 2 failed", 1), self.count())

    def test_a_test_without_cases(self):
        self.add_test("//a", "PASSED", BAZELS_OWN, "fine\n")
        self.add_test("//b", "TIMEOUT", BAZELS_OWN, "...")
        self.assertEqual(("1 passed, 1 failed", 1), self.count())

    def test_a_test_that_dies_after_its_cases(self):
        self.add_test("//a", "FAILED", GOOGLETEST.replace('<failure message="x"/>', ""))
        self.assertEqual(("2 passed, 1 failed", 1), self.count())

    def test_a_test_that_did_not_build(self):
        self.add_test("//a", "PASSED", BAZELS_OWN, "")
        self.events.append({"id": {"targetConfigured": {"label": "//b"}}, "configured": {"targetKind": "sh_test rule"}})
        self.assertEqual(("1 passed, 1 failed", 1), self.count())

    def test_shards_and_runs_add_up(self):
        self.add_test("//a", "PASSED", GOOGLETEST.replace('<failure message="x"/>', ""))
        self.add_test("//a", "PASSED", GOOGLETEST.replace('<failure message="x"/>', ""))
        self.assertEqual(("4 passed, 0 failed", 0), self.count())

    def test_nothing_ran(self):
        self.assertEqual(("0 passed, 0 failed", 1), self.count())

    def test_the_lint(self):
        self.add_test("//a", "PASSED", BAZELS_OWN, "")
        good = [{"id": {"buildFinished": {}}, "finished": {"overallSuccess": True}}]
        bad = [{"id": {"buildFinished": {}}, "finished": {"overallSuccess": False}}]
        self.assertEqual(("2 passed, 0 failed", 0), self.count(good))
        self.assertEqual(("1 passed, 1 failed", 1), self.count(bad))
        self.assertEqual(("1 passed, 1 failed", 1), self.count([]))


if __name__ == "__main__":
    unittest.main()
