# SPDX-License-Identifier: Apache-2.0
"""A daemon for one bench alone: its own socket, cache and folder, gone at the end."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "client/python"))


def located(variable, path):
    """The absolute path of a built file: what the environment names, else the checkout's."""
    return os.path.abspath(os.environ.get(variable) or os.path.join(ROOT, path))


@contextlib.contextmanager
def private_daemon(*options):
    """Runs phobosd with these options more and points PHOBOS_SOCKET at it; gives the process.

    The programs are those that PHOBOS_LIBRARY, PHOBOS_DAEMON and PHOBOS_COMPILER name, else the
    checkout's own build.
    """
    # One place a process: its client keeps to the socket that it first found.
    folder = os.path.join(tempfile.gettempdir(), f"phobos-bench-{os.getpid()}")
    os.mkdir(folder, 0o700)
    library = located("PHOBOS_LIBRARY", "bazel-bin/client/c/libphobos.so")
    os.environ.update(PHOBOS_LIBRARY=library, PHOBOS_SOCKET=folder + "/s", PHOBOS_AUTOSTART="0")
    read, write = os.pipe()
    running = subprocess.Popen(
        [
            located("PHOBOS_DAEMON", "bazel-bin/daemon/main/phobosd"),
            "--private",
            f"--socket={folder}/s",
            f"--cache-dir={folder}/cache",
            f"--compiler={located('PHOBOS_COMPILER', 'bazel-bin/compiler/main/phobos-compile')}",
            f"--ready-fd={write}",
            *options,
        ],
        pass_fds=[write],
    )
    os.close(write)
    with os.fdopen(read) as ready:
        ready.readline()
    try:
        yield running
    finally:
        running.terminate()
        running.wait()
        shutil.rmtree(folder, ignore_errors=True)
