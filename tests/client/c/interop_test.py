# SPDX-License-Identifier: Apache-2.0
"""Stock gRPC and protobuf of Python beside us: as clients of phobosd, and in one process with libphobos.so.

interop_test.py PHOBOSD COMPILER LIBRARY (messages made by protoc at the test's start)
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

PHOBOSD, COMPILER, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:4])
FOLDER = tempfile.mkdtemp(prefix="phobos-test-", dir="/tmp")  # short: a socket's path has 107 bytes at most
PROTOS = [
    "proto/phobos/compiler/v1/manifest.proto",
    "proto/phobos/tuner/v1/admin.proto",
    "proto/phobos/tuner/v1/cache.proto",
    "proto/phobos/tuner/v1/tuner.proto",
    "proto/phobos/tuner/v1/types.proto",
]


HELLO_BY_CTYPES = '''
def hello_by_ctypes(library, socket):
    """The daemon's Hello as libphobos.so gives it, in a client of its own."""

    class Options(ctypes.Structure):
        _fields_ = [("struct_bytes", ctypes.c_size_t), ("socket", ctypes.c_char_p), ("rest", ctypes.c_char * 128)]

    options = Options(24, socket.encode())
    client, error, text = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    code = library.phobos_client_open(ctypes.byref(options), ctypes.byref(client), ctypes.byref(error))
    assert code == 0, code
    code = library.phobos_client_hello_json(client, ctypes.byref(text), ctypes.byref(error))
    assert code == 0, code
    hello = json.loads(ctypes.string_at(text.value))
    library.phobos_text_free.argtypes = [ctypes.c_void_p]
    library.phobos_client_free.argtypes = [ctypes.c_void_p]
    library.phobos_text_free(text)
    library.phobos_client_free(client)
    return hello
'''


class Interop(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        os.environ["PHOBOS_AUTOSTART"] = "0"
        subprocess.run(["protoc", "-I.", f"--python_out={FOLDER}", *PROTOS], check=True)
        sys.path.insert(0, FOLDER)
        cls.socket = FOLDER + "/s"
        read, write = os.pipe()
        cls.daemon = subprocess.Popen([
            PHOBOSD, "--private", f"--socket={cls.socket}", f"--cache-dir={FOLDER}/cache", f"--compiler={COMPILER}",
            f"--ready-fd={write}"
        ],
                                      pass_fds=[write])
        os.close(write)
        with os.fdopen(read) as ready:
            line = ready.readline()
        assert line.startswith("ready "), line

    @classmethod
    def tearDownClass(cls):
        cls.daemon.terminate()
        cls.daemon.wait()
        shutil.rmtree(FOLDER, ignore_errors=True)

    def run_python(self, program):
        """Runs a program in a process of its own, with the socket and the library as its arguments."""
        prelude = f"import ctypes, json, os, sys\nsys.path.insert(0, {FOLDER!r})\n" + HELLO_BY_CTYPES
        done = subprocess.run([sys.executable, "-c", prelude + program, self.socket, LIBRARY],
                              capture_output=True,
                              text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_stock_client_of_the_daemon(self):
        self.run_python("""
import grpc
from proto.phobos.tuner.v1 import admin_pb2, tuner_pb2
channel = grpc.insecure_channel("unix:" + sys.argv[1], options=[("grpc.default_authority", "localhost")])

def call(method, request, answer):
    return channel.unary_unary(method, type(request).SerializeToString, answer.FromString)(request, timeout=20)

hello = call("/phobos.tuner.v1.TunerService/Hello", tuner_pb2.HelloRequest(wire_version=1, client="stock"),
             tuner_pb2.HelloResponse)
assert hello.wire_version == 1 and hello.is_private, hello
assert hello.devices[-1].uuid == "host", hello
status = call("/phobos.tuner.v1.AdminService/GetStatus", admin_pb2.GetStatusRequest(), admin_pb2.GetStatusResponse)
assert status.socket == sys.argv[1], status
try:
    call("/phobos.tuner.v1.TunerService/Hello", tuner_pb2.HelloRequest(), tuner_pb2.HelloResponse)
    raise SystemExit("a wire version of 0 was taken")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
""")

    CLASH = """
def clash():
    # Another file of the same name and package, as another library in this process may bring along.
    from google.protobuf import descriptor_pb2, descriptor_pool
    file = descriptor_pb2.FileDescriptorProto(name="proto/phobos/tuner/v1/types.proto", package="phobos.tuner.v1",
                                              syntax="proto3")
    message = file.message_type.add(name="Device")
    message.field.add(name="totally_different", number=1, type=9, label=1)
    descriptor_pool.Default().AddSerializedFile(file.SerializeToString())

def stock():
    import grpc
    raw = grpc.insecure_channel("unix:" + sys.argv[1], options=[("grpc.default_authority", "localhost")])
    request = b"\\x08\\x01"  # wire_version: 1
    return raw.unary_unary("/phobos.tuner.v1.TunerService/Hello")(request, timeout=20)
"""

    def test_one_process_library_first(self):
        self.run_python(self.CLASH + """
library = ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_GLOBAL)
assert hello_by_ctypes(library, sys.argv[1])["devices"][-1]["uuid"] == "host"
clash()
for _ in range(20):
    assert b"host" in stock()
    assert hello_by_ctypes(library, sys.argv[1])["devices"][-1]["uuid"] == "host"
""")

    def test_one_process_library_last(self):
        self.run_python(self.CLASH + """
clash()
assert b"host" in stock()
library = ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_GLOBAL)
for _ in range(20):
    assert hello_by_ctypes(library, sys.argv[1])["devices"][-1]["uuid"] == "host"
    assert b"host" in stock()
""")

    def test_many_at_once_start_one_private_daemon(self):
        own = os.path.join(FOLDER, "own")
        environment = {
            **os.environ, "PHOBOS_AUTOSTART": "1",
            "PHOBOS_DAEMON": PHOBOSD,
            "PHOBOS_KERNEL_CACHE_DIR": own + "/cache",
            "PATH": os.path.dirname(COMPILER) + ":" + os.environ["PATH"]
        }
        program = "import ctypes, json, os, sys\n" + HELLO_BY_CTYPES + """
hello = hello_by_ctypes(ctypes.CDLL(sys.argv[2]), sys.argv[1])
assert hello["is_private"] and hello["socket"] == sys.argv[1], hello
import socket, struct
with socket.socket(socket.AF_UNIX) as peer:
    peer.connect(sys.argv[1])
    print(struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
"""
        running = [
            subprocess.Popen([sys.executable, "-c", program, own + "/s", LIBRARY],
                             env=environment,
                             stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE,
                             text=True) for _ in range(4)
        ]
        answers = [process.communicate(timeout=60) for process in running]
        daemons = {int(out) for out, _ in answers if out.strip()}
        for daemon in daemons:
            os.kill(daemon, signal.SIGTERM)
        self.assertEqual([process.returncode for process in running], [0] * 4, answers)
        self.assertEqual(len(daemons), 1, answers)
        self.assertEqual(os.stat(own).st_mode & 0o777, 0o700)

    def test_forked_children_connect_by_themselves(self):
        self.run_python("""
library = ctypes.CDLL(sys.argv[2])
assert hello_by_ctypes(library, sys.argv[1])["is_private"]
for _ in range(20):
    child = os.fork()
    if child == 0:
        good = hello_by_ctypes(library, sys.argv[1])["is_private"]
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
assert hello_by_ctypes(library, sys.argv[1])["is_private"]
""")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
