# SPDX-License-Identifier: Apache-2.0
"""Law: C++ is formatted as clang-format-14 does it with the tree's .clang-format."""

import re
import subprocess
import unittest

import tree


class Format(unittest.TestCase):

    def test_every_file_is_formatted(self):
        paths = tree.files(*tree.CPP)
        answer = subprocess.run(["clang-format-14", "--dry-run", "-Werror", "--style=file"] + paths, cwd=tree.root(),
                                capture_output=True, text=True)
        wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", answer.stderr, re.MULTILINE)))
        self.assertEqual(0, answer.returncode, "run: clang-format-14 -i " + " ".join(wrong))

    def test_a_wrong_file_is_refused(self):
        answer = subprocess.run(["clang-format-14", "--dry-run", "-Werror", "--style=file", "--assume-filename=a.cc"],
                                cwd=tree.root(), input="int  a;\n", capture_output=True, text=True)
        self.assertNotEqual(0, answer.returncode)


if __name__ == "__main__":
    unittest.main()
