# SPDX-License-Identifier: Apache-2.0
"""Law: what no file may say, and what each must say."""

import os
import platform
import re
import subprocess
import unittest

import cpp
import tree

LICENSED = (".h", ".cc", ".c", ".py", ".sh", ".proto")

# What to look for in every text, and what to do instead. Written so that this file does not say it.
FORBIDDEN_TEXT = {
    r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b": "finish it, or leave it out and say so in the docs",
    r"(?<![\w.])/(?:ro" + r"ot|ho" + r"me/\w+|wo" + r"rk)/": "a path of one machine; take it from an option or the environment",
    r"\b[Ii]ss" + r"ue #?\d": "a comment says why, not which ticket",
    r"@(?:file|brief|param|return)\b": "plain sentences, not doc tags",
}

# The same in C++ outside tests: comments and strings blanked.
FORBIDDEN_CODE = {
    r"\bthrow\b": "no exceptions: return a Status",
    r"\b(?:class|struct)\s+\w*(?:Manager|Helper|Utils?|Core|Data|Info)\b": "name the thing, not the drawer",
    r"\busing\s+namespace\b": "name what you use",
}

# exit() and abort() end somebody else's program. Only what is a program's own may.
ENDS_THE_PROCESS = re.compile(r"(?<![\w.>])(?:std::)?(?:exit|abort|terminate|quick_exit)\s*\(")
MAY_END = ("compiler/main/", "daemon/main/", "client/cli/", "bench/", "examples/")

# A file that a text sends the reader to; and those that are not ours.
NAMED_FILE = re.compile(r"(?<![\w./-])[\w./-]*\w\.(?:h|cc|md|proto)\b")
FOREIGN_FILES = {"cuda.h"}

PROSE_COLUMNS = 128

FORBIDDEN_NAMES = re.compile(r"(?:^|_)(?:manager|helpers?|utils?|core|misc|common)(?:_|\.|$)")


class Text(unittest.TestCase):

    def text_files(self):
        for path in tree.files():
            try:
                tree.read(path).encode("utf-8")
            except UnicodeEncodeError:
                continue  # not a text
            yield path

    def test_nothing_forbidden_is_said(self):
        for path in self.text_files():
            for number, line in enumerate(tree.read(path).split("\n"), 1):
                for pattern, remedy in FORBIDDEN_TEXT.items():
                    if re.search(pattern, line):
                        with self.subTest(f"{path}:{number}"):
                            self.fail(f"{line.strip()[:100]!r}: {remedy}")

    def test_no_name_of_this_machine(self):
        name = platform.node()
        if len(name) < 4 or name in ("localhost", "debian"):
            return  # says nothing about a machine
        for path in self.text_files():
            with self.subTest(path):
                self.assertFalse(name in tree.read(path), "the name of this machine")

    def test_no_forbidden_code(self):
        for path in tree.files(*tree.CPP):
            if tree.is_test(path):
                continue
            for number, line in enumerate(cpp.without_comments(tree.read(path)).split("\n"), 1):
                for pattern, remedy in FORBIDDEN_CODE.items():
                    if re.search(pattern, line):
                        with self.subTest(f"{path}:{number}"):
                            self.fail(f"{line.strip()[:100]!r}: {remedy}")
                if ENDS_THE_PROCESS.search(line) and not path.startswith(MAY_END):
                    with self.subTest(f"{path}:{number}"):
                        self.fail(f"{line.strip()[:100]!r}: a library returns a Status; _exit is for a forked child")

    def test_prose_is_wrapped(self):
        for path in tree.files(".md"):
            is_sample = is_written = False
            for number, line in enumerate(tree.read(path).split("\n"), 1):
                is_sample ^= line.lstrip().startswith("```")
                if line.startswith(("<!-- written by", "<!-- to here by")):
                    is_written = line.startswith("<!-- written")
                if is_sample or is_written or line.startswith(("|", "    ")):
                    continue  # tables, samples and what a program wrote have lines of their own length
                with self.subTest(f"{path}:{number}"):
                    self.assertLessEqual(len(line), PROSE_COLUMNS, f"wrap it: {line[:60]!r}...")

    def test_file_names(self):
        for path in tree.files(*tree.CPP, ".py"):
            with self.subTest(path):
                self.assertNotRegex(os.path.basename(path), FORBIDDEN_NAMES, "name the file after the type or verb in it")

    def test_files_that_texts_name_are_there(self):
        there = set(FOREIGN_FILES)
        for path in tree.files():
            parts = path.split("/")
            there.update("/".join(parts[i:]) for i in range(len(parts)))
        for path in tree.files(*tree.CPP, ".proto", ".md"):
            text = tree.read(path)
            for number, said in [(1, text)] if path.endswith(".md") else cpp.comments(text):
                for name in NAMED_FILE.findall(said):
                    with self.subTest(f"{path}:{number}"):
                        self.assertIn(os.path.normpath(name).lstrip("./"), there, "no file ends like this")

    def test_license_line(self):
        for path in tree.files(*LICENSED):
            with self.subTest(path):
                head = tree.read(path).split("\n")[:2]
                self.assertTrue(any("SPDX-License-Identifier: Apache-2.0" in line for line in head),
                                "start with the line SPDX-License-Identifier: Apache-2.0 (after #! in a script)")

    def test_lines_end_plainly(self):
        for path in tree.files(*LICENSED, ".bazel", ".bzl", ".md", ".txt"):
            text = tree.read(path)
            with self.subTest(path):
                self.assertFalse("\r" in text, "lines end with a line feed alone")
                if path.startswith("tests/"):
                    continue  # malformed inputs may end as they like
                self.assertTrue(not text or text.endswith("\n"), "the last line has no end")
                self.assertIsNone(re.search(r"(?m)[ \t]+$", text), "a line ends in blanks")


class Scripts(unittest.TestCase):

    def scripts(self):
        for path in tree.files():
            if path.endswith(".sh") or (tree.read(path)[:40].startswith("#!") and "bash" in tree.read(path).split("\n")[0]):
                yield path

    def test_they_parse(self):
        for path in self.scripts():
            with self.subTest(path):
                answer = subprocess.run(["bash", "-n", path], cwd=tree.root(), capture_output=True, text=True)
                self.assertEqual(0, answer.returncode, answer.stderr)

    def test_they_stop_at_errors(self):
        for path in self.scripts():
            with self.subTest(path):
                self.assertTrue(re.search(r"(?m)^set -\w*eu|^exec ", tree.read(path)), "say set -eu, or set -euo pipefail")

    def test_there_are_some(self):
        self.assertIn("deploy/test.sh", list(self.scripts()))


if __name__ == "__main__":
    unittest.main()
