# SPDX-License-Identifier: Apache-2.0
"""The units of deploy/systemd: systemd accepts them, and the daemon they name serves the socket they describe."""

import configparser
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

UNITS = "deploy/systemd"
PROGRAM = {"system": "/usr/local/bin/phobosd", "user": "%h/.local/bin/phobosd"}
phobosd = compiler = None  # absolute paths, from the command line


def unit(kind, name):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    with open(f"{UNITS}/{kind}/{name}", encoding="utf-8") as file:
        parser.read_file(file)
    return parser


class Units(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp()  # short: a socket's path has 107 bytes at most
        self.addCleanup(shutil.rmtree, self.folder)

    def test_systemd_accepts_them(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze here")
        for kind in PROGRAM:
            paths = []
            for name in ("phobosd.service", "phobosd.socket"):
                with open(f"{UNITS}/{kind}/{name}", encoding="utf-8") as file:
                    text = file.read().replace(PROGRAM[kind], "/bin/true")  # it need not be installed here
                paths.append(os.path.join(self.folder, name))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(text)
            with self.subTest(kind):
                answer = subprocess.run(
                    ["systemd-analyze", "verify", "--man=no"] + (["--user"] if kind == "user" else []) + paths,
                    env={**os.environ, "XDG_RUNTIME_DIR": self.folder}, capture_output=True, text=True)
                self.assertEqual((0, ""), (answer.returncode, answer.stderr))

    def test_they_name_the_default_sockets(self):
        self.assertEqual("/run/phobos/tuner.sock", unit("system", "phobosd.socket")["Socket"]["ListenStream"])
        self.assertEqual("%t/phobos/tuner.sock", unit("user", "phobosd.socket")["Socket"]["ListenStream"])
        self.assertEqual("0660", unit("system", "phobosd.socket")["Socket"]["SocketMode"])
        self.assertEqual("phobos", unit("system", "phobosd.socket")["Socket"]["SocketGroup"])

    def test_the_daemon_serves_the_socket_it_is_given(self):
        for kind in PROGRAM:
            with self.subTest(kind):
                self.check_activation(kind)

    def check_activation(self, kind):
        """What systemd does at the first connection: the command of the unit, with the socket as descriptor 3."""
        command = unit(kind, "phobosd.service")["Service"]["ExecStart"].split()
        self.assertEqual(PROGRAM[kind], command[0])
        arguments = [a.replace("/var/cache/phobos", self.folder + "/cache-" + kind) for a in command[1:]]
        path = f"{self.folder}/{kind}.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            environment = {"HOME": self.folder, "PATH": os.path.dirname(compiler), "LISTEN_FDS": "1",
                           "PHOBOS_KERNEL_CACHE_DIR": f"{self.folder}/cache-{kind}"}

            # The shell becomes the daemon, so its own process id is the LISTEN_PID.
            script = f'exec 3<&{listener.fileno()}; LISTEN_PID=$$ exec "$@"'
            daemon = subprocess.Popen(["/bin/bash", "-c", script, "bash", phobosd] + arguments, env=environment,
                                      pass_fds=(listener.fileno(),))
        try:
            self.check_http2(path)
            self.assertTrue(stat.S_ISSOCK(os.stat(path).st_mode))
        finally:
            daemon.send_signal(signal.SIGTERM)
            self.assertEqual(0, daemon.wait(timeout=20))
        self.assertTrue(os.path.exists(path), "the socket is systemd's; the daemon must not remove it")

    def check_http2(self, path):
        """gRPC's server speaks first: a SETTINGS frame."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(path)
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
            header = b""
            deadline = time.monotonic() + 20
            while len(header) < 9 and time.monotonic() < deadline:
                got = client.recv(9 - len(header))
                if not got:
                    break
                header += got
            self.assertEqual(4, header[3] if len(header) == 9 else None, "the first frame is no SETTINGS")


if __name__ == "__main__":
    phobosd = os.path.abspath(sys.argv.pop(1))
    compiler = os.path.abspath(sys.argv.pop(1))
    unittest.main()
