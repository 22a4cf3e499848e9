# SPDX-License-Identifier: Apache-2.0
"""phobosd as a process: how it starts, who owns the cache, how it ends. The compiler is a stand-in that only has a version."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import grpc

DAEMON = os.environ["PHOBOS_DAEMON"]
SANITIZER = os.environ.get("SANITIZER", "")
HELLO = "/phobos.tuner.v1.TunerService/Hello"


def hello(socket):
    """The bytes of HelloResponse."""
    channel = grpc.insecure_channel("unix:" + socket)
    try:
        # HelloRequest{wire_version: 1}
        return channel.unary_unary(HELLO)(b"\x08\x01", wait_for_ready=True, timeout=20)
    finally:
        channel.close()


class Daemon(unittest.TestCase):
    def setUp(self):
        # A socket's path has at most 107 bytes, and a test's own folder may be deep.
        self.folder = tempfile.mkdtemp(prefix="phobos-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.socket = os.path.join(self.folder, "s")
        self.cache = os.path.join(self.folder, "cache")
        self.compiler = os.path.join(self.folder, "compiler")
        with open(self.compiler, "w") as file:
            file.write("#!/bin/sh\necho 'stand-in 1'\n")
        os.chmod(self.compiler, 0o755)
        self.started = []
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()

    def command(self, *flags, socket=None):
        return [DAEMON, "--private", "--socket=" + (socket or self.socket), "--cache-dir=" + self.cache,
                "--compiler=" + self.compiler, *flags]

    def start(self, *flags, socket=None):
        """Starts a daemon in the foreground; (process, its line of readiness)."""
        read, write = os.pipe()
        process = subprocess.Popen(self.command(f"--ready-fd={write}", *flags, socket=socket), pass_fds=[write],
                                   stdin=subprocess.DEVNULL)
        os.close(write)
        self.started.append(process)
        with os.fdopen(read) as ready:
            return process, ready.readline().strip()

    def test_it_listens_and_ends_when_told(self):
        process, line = self.start()
        self.assertEqual(line, "ready " + self.socket)
        self.assertIn(b"stand-in 1", hello(self.socket))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0)
        self.assertFalse(os.path.exists(self.socket))
        self.assertFalse(os.path.exists(self.socket + ".side"))
        self.assertEqual(self.start()[1], "ready " + self.socket)

    def test_after_a_kill_the_next_one_starts(self):
        process, _ = self.start()
        process.kill()
        process.wait()
        self.assertTrue(os.path.exists(self.socket))
        self.assertEqual(self.start()[1], "ready " + self.socket)
        self.assertIn(b"stand-in 1", hello(self.socket))

    def test_a_second_one_sends_to_the_first(self):
        self.start()
        second, line = self.start(socket=self.socket + "2")
        self.assertEqual(line, "ready " + self.socket)
        self.assertEqual(second.wait(20), 0)
        self.assertFalse(os.path.exists(self.socket + "2"))

    def test_a_second_one_by_hand_says_who_has_the_cache(self):
        first, _ = self.start()
        done = subprocess.run(self.command(socket=self.socket + "2"), capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"the daemon at {self.socket} has the cache {self.cache}; use that one, end it with: kill {first.pid},", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_relative_paths_are_of_the_working_folder(self):
        self.socket, self.cache = "s", "here/cache"
        done = subprocess.run(self.command("--background", "--idle-exit=1s"), capture_output=True, text=True,
                              timeout=20, cwd=self.folder)
        self.socket = os.path.join(self.folder, "s")
        self.assertEqual((done.returncode, done.stdout), (0, f"ready {self.socket}\n"))
        self.assertIn(os.path.join(self.folder, "here/cache").encode(), hello(self.socket))
        self.wait_until(lambda: not os.path.exists(self.socket))

    def break_compiler(self):
        with open(self.compiler, "w") as file:
            file.write("#!/bin/sh\necho 'no such back end' >&2\nsleep 0.5\nexit 3\n")

    def test_nobody_connects_before_the_compiler_works(self):
        self.break_compiler()
        starter = subprocess.Popen(self.command("--background"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        while starter.poll() is None:
            self.assertFalse(os.path.exists(self.socket))
            time.sleep(0.01)
        out, err = starter.communicate()
        self.assertEqual((starter.returncode, out), (1, ""))
        self.assertRegex(err, "^error the compiler cannot be run .*exit status 3")
        self.assertEqual(err.count("the compiler cannot be run"), 1, err)

    def test_an_activated_one_answers_with_why_it_cannot_serve(self):
        self.break_compiler()
        path = os.path.join(self.folder, "activated")
        self.activated(self.listener(path), self.socket)
        with self.assertRaises(grpc.RpcError) as caught:
            hello(path)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
        self.assertRegex(caught.exception.details(), "cannot serve: the compiler cannot be run")
        self.assertEqual(self.started[-1].wait(timeout=20), 1)

    def test_it_goes_to_the_background(self):
        done = subprocess.run(self.command("--background", "--idle-exit=1s"), capture_output=True, text=True, timeout=20)
        self.assertEqual((done.returncode, done.stdout), (0, f"ready {self.socket}\n"))
        self.assertIn(b"stand-in 1", hello(self.socket))
        self.wait_until(lambda: not os.path.exists(self.socket))  # idle for a second: it ended

    def wait_until(self, holds):
        end = time.monotonic() + 20
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_one_whose_sockets_are_gone_makes_way(self):
        process, _ = self.start()
        os.unlink(self.socket)
        # It waits for the cache's lock, which the first one gives up.
        self.assertEqual(self.start()[1], "ready " + self.socket)
        self.assertEqual(process.wait(20), 0)
        self.assertIn(b"stand-in 1", hello(self.socket))

    def test_one_whose_cache_is_gone_makes_way(self):
        process, _ = self.start()
        shutil.rmtree(self.cache)
        self.assertEqual(process.wait(20), 0)
        self.assertFalse(os.path.exists(self.socket))
        self.assertEqual(self.start()[1], "ready " + self.socket)

    def test_it_leaves_another_ones_socket_alone(self):
        process, _ = self.start()
        process.send_signal(signal.SIGSTOP)
        shutil.rmtree(self.cache)
        os.unlink(self.socket)
        os.unlink(self.socket + ".side")
        self.assertEqual(self.start()[1], "ready " + self.socket)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(20), 0)
        self.assertIn(b"stand-in 1", hello(self.socket))

    @unittest.skipIf(SANITIZER == "tsan", "ThreadSanitizer takes terabytes of addresses, and writes large files")
    def test_a_users_limits_are_kept_to(self):
        # AddressSanitizer takes terabytes of addresses for notes of its own.
        for limit in ("-f 200",) if SANITIZER == "asan" else ("-v 8000000", "-f 200"):
            done = subprocess.run(["bash", "-c", f'ulimit {limit}; exec "$@"', "bash",
                                   *self.command("--background", "--idle-exit=1s")],
                                  capture_output=True, text=True, timeout=20)
            self.assertEqual((done.returncode, done.stderr), (0, ""), limit)
            self.wait_until(lambda: not os.path.exists(self.socket))

    def test_nobody_else_may_write_to_the_cache(self):
        before = os.umask(0)
        try:
            self.start()
        finally:
            os.umask(before)
        for folder, _, files in os.walk(self.cache):
            for path in (folder, *(os.path.join(folder, name) for name in files)):
                self.assertEqual(os.stat(path).st_mode & 0o022, 0, path)

    def test_it_says_why_it_cannot_start(self):
        os.chmod(self.folder, 0o755)
        process, line = self.start()
        self.assertRegex(line, "^error .* is open to other users; .*mkdir -m 700")
        self.assertNotIn("chmod", line)  # others may need it as it is
        self.assertEqual(process.wait(20), 1)
        os.chmod(self.folder, 0o700)
        os.unlink(self.compiler)
        _, line = self.start()
        self.assertRegex(line, "^error .*compiler")

    def activated(self, listener, socket):
        """Starts a daemon as systemd does: the listening socket is descriptor 3."""
        def inherit():
            os.dup2(listener, 3)
        shell = ["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"', *self.command(socket=socket)]
        process = subprocess.Popen(shell, preexec_fn=inherit, pass_fds=[3, listener], stdin=subprocess.DEVNULL)
        self.started.append(process)

    def listener(self, path):
        import socket
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen()
        return listener.fileno()

    def test_each_gpu_that_is_not_there_is_named(self):
        line = self.start("--devices=cuda:GPU-one,cuda:GPU-two")[1]
        self.assertIn("there is no GPU GPU-one; ", line)
        self.assertIn("there is no GPU GPU-two", line)

    def test_socket_activation(self):
        path = os.path.join(self.folder, "activated")
        self.activated(self.listener(path), self.socket)
        self.assertIn(b"stand-in 1", hello(path))

    def test_an_activated_one_without_the_cache_redirects(self):
        target, _ = self.start()
        path = os.path.join(self.folder, "activated")
        self.activated(self.listener(path), self.socket)
        answer = hello(path)
        self.assertIn(self.socket.encode(), answer)
        self.assertNotIn(b"stand-in 1", answer)
        # It ends with what it points to, so that the next one to be activated can have the cache.
        target.terminate()
        target.wait(timeout=10)
        self.assertEqual(self.started[-1].wait(timeout=10), 0)

    @unittest.skipIf(SANITIZER, "a sanitizer keeps notes of its own in memory")
    def test_an_idle_one_is_small(self):
        process, _ = self.start()
        hello(self.socket)
        time.sleep(1.5)
        with open(f"/proc/{process.pid}/status") as status:
            resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
        self.assertLess(resident, 16 * 1024, "KiB resident")

    def test_help_and_mistakes(self):
        done = subprocess.run([DAEMON, "--help"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("--idle-exit", done.stdout)
        done = subprocess.run([DAEMON, "--nonsense"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--nonsense", done.stderr)


if __name__ == "__main__":
    unittest.main()
