# SPDX-License-Identifier: Apache-2.0
"""SIGTERM while the daemon works: it ends at once and leaves nothing behind, neither a process nor half a file."""

import os
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.getcwd(), "tests/integration/requirements"))

import tuner  # noqa: E402

LIMIT_S = 2

TUNE = """
x, y, out = (np.ones(1 << 16, dtype=np.float32) for _ in range(3))
add.tune(grid, x, y, out)
"""

# The compiler, but that variants take for ever, in a child of its own.
SLOW = """#!/bin/sh
case "$*" in
  *--version*|*--describe*) exec "$REAL_COMPILER" "$@" ;;
esac
sleep 600 &
wait
"""


def children(pid):
    """Process ids of all descendants."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                for child in map(int, file.read().split()):
                    found += [child, *children(child)]
    except (FileNotFoundError, ProcessLookupError):
        pass  # it, or a thread of it, has just ended
    return found


def is_sleeping(pid):
    """Whether it is the child of SLOW."""
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().startswith("sleep")
    except FileNotFoundError:
        return False


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class ShutdownTest(unittest.TestCase):
    def begin(self, *flags):
        self.tuner = tuner.Tuner(*flags)
        self.addCleanup(self.tuner.close)
        self.program = self.tuner.begin(TUNE)
        self.addCleanup(self.program.communicate)
        self.addCleanup(self.program.kill)

    def end(self):
        """Ends the daemon; checks how long that takes and what is left."""
        descendants = children(self.tuner.daemon.pid)
        self.assertTrue(descendants)
        start = time.monotonic()
        self.tuner.stop(signal.SIGTERM)
        took = time.monotonic() - start
        self.assertLess(took, LIMIT_S)
        self.assertEqual(self.tuner.daemon.returncode, 0)
        print(f"ended in {took:.3f} s")
        self.assertTrue(tuner.wait_until(lambda: not any(map(is_alive, descendants)), 1), descendants)
        self.assertFalse(os.path.exists(self.tuner.socket))
        self.assertFalse(os.path.exists(self.tuner.socket + ".side"))
        self.assertEqual(os.listdir(os.path.join(self.tuner.cache, "work")), [])
        for path in self.tuner.artifacts():
            self.assertRegex(os.path.basename(path), r"^[0-9a-f]{64}\.so$")

    def test_while_a_tune_runs(self):
        self.begin("--warm-up=600s")
        self.assertTrue(tuner.wait_until(lambda: self.tuner.status()["workers"][0]["state"] == "timing"))
        self.end()

    def test_while_a_source_is_described(self):
        self.begin()
        self.assertTrue(tuner.wait_until(lambda: len(children(self.tuner.daemon.pid)) >= 2))
        self.tuner.stop(signal.SIGTERM)
        self.assertEqual(self.tuner.daemon.returncode, 0)

    def test_while_compilers_run(self):
        folder = os.path.dirname(tuner.found("PHOBOS_COMPILER", ""))
        os.environ["REAL_COMPILER"] = os.path.join(folder, "phobos-compile")
        slow = os.path.join(os.environ.get("TEST_TMPDIR", "/tmp"), f"slow-compiler-{os.getpid()}")
        with open(slow, "w") as file:
            file.write(SLOW)
        os.chmod(slow, 0o755)
        self.addCleanup(os.unlink, slow)
        self.begin(f"--compiler={slow}")
        self.assertTrue(tuner.wait_until(lambda: any(map(is_sleeping, children(self.tuner.daemon.pid)))))
        self.end()


if __name__ == "__main__":
    unittest.main()
