# SPDX-License-Identifier: Apache-2.0
"""A tuner of a test's own: a daemon with a socket and a cache under the test's folder, and programs
that use it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.getcwd()

_BEGINNING = """
from __future__ import annotations
import json, os, sys, threading, time, warnings
import numpy as np
import phobos.lang as ph
import kernels
from kernels import *

def say(**values):
    print("SAID " + json.dumps(values), flush=True)

"""


def found(variable, path):
    """An absolute path: what the test's rule set, else the one in the tree."""
    return os.path.abspath(os.environ.get(variable) or os.path.join(ROOT, path))


class Tuner:
    """A daemon, started at once and stopped by close(). flags: phobosd's."""

    def __init__(self, *flags):
        # A socket's path has at most 107 bytes, and a test's own folder may be deep.
        self.folder = tempfile.mkdtemp(prefix="phobos-test-", dir="/tmp")
        self.cache = os.path.join(self.folder, "cache")
        self.socket = os.path.join(self.folder, "s")
        self.environment = {
            **os.environ,
            "PHOBOS_LIBRARY": found("PHOBOS_LIBRARY", "bazel-bin/client/c/libphobos.so"),
            "PHOBOS_SOCKET": self.socket,
            "PHOBOS_KERNEL_CACHE_DIR": self.cache,
            "PHOBOS_AUTOSTART": "0",
            "PYTHONPATH": os.pathsep.join([os.path.join(ROOT, "client/python"), HERE]),
            "HOME": self.folder,
        }
        self.flags = flags
        self.daemon = None
        self.start()

    def start(self):
        read, write = os.pipe()
        self.daemon = subprocess.Popen(
            [
                found("PHOBOS_DAEMON", "bazel-bin/daemon/main/phobosd"),
                f"--socket={self.socket}",
                f"--cache-dir={self.cache}",
                f"--compiler={found('PHOBOS_COMPILER', 'bazel-bin/compiler/main/phobos-compile')}",
                f"--ready-fd={write}",
                "--private",
                *self.flags,
            ],
            pass_fds=[write],
            env=self.environment,
            stdin=subprocess.DEVNULL,
        )
        os.close(write)
        with os.fdopen(read) as ready:
            said = ready.readline()
        if not os.path.exists(self.socket):
            raise RuntimeError(f"the daemon did not start: {said}")

    def stop(self, how=signal.SIGTERM):
        self.daemon.send_signal(how)
        self.daemon.wait(30)

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def artifacts(self):
        """{path: inode} of everything compiled: a file that is made again gets a new one."""
        found = {}
        for folder, _, names in os.walk(self.cache):
            if os.path.basename(folder) == "kernels":
                for name in names:
                    path = os.path.join(folder, name)
                    found[path] = os.stat(path).st_ino
        return found

    def status(self):
        """GetStatus, as phobosctl shows it."""
        done = subprocess.run(
            [found("PHOBOSCTL", "bazel-bin/client/cli/phobosctl"), "status", "--format=json"],
            env=self.environment,
            capture_output=True,
            check=True,
        )
        return json.loads(done.stdout)

    def begin(self, text, **environment):
        """Starts a program; `text` comes after the imports and `say`."""
        path = tempfile.mktemp(suffix=".py", dir=self.folder)
        with open(path, "w") as file:
            file.write(_BEGINNING + textwrap.dedent(text))
        return subprocess.Popen(
            [sys.executable, path],
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, text, **environment):
        """Runs a program to its end; see finish."""
        return finish(self.begin(text, **environment))


class Ended:
    """What a program left: status, out, err, and the values that it said, as attributes."""

    def __init__(self, status, out, err):
        self.status = status
        self.out = out
        self.err = err
        for line in out.splitlines():
            if line.startswith("SAID "):
                self.__dict__.update(json.loads(line[5:]))

    def __repr__(self):
        return f"status {self.status}\n{self.out}\n{self.err}"


def finish(program, seconds=240):
    try:
        out, err = program.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        program.kill()
        out, err = program.communicate()
        err += "\n(killed: it took too long)"
    return Ended(program.returncode, out, err)


def wait_until(condition, seconds=90):
    """Whether the condition came true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False
