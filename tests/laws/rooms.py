# SPDX-License-Identifier: Apache-2.0
"""Which room may look into which, and which libraries it may know: the table that layers_test.py enforces.

A room is a folder with all that is under it. A row reads: room, rooms it may include, libraries it may include. Bazel's
visibility says the same of targets; this also covers headers in /usr/include, which need no dependency to be found.
"""

# Library -> how its headers begin.
LIBRARIES = {
    "absl": ("absl/",),
    "benchmark": ("benchmark/",),
    "cuda": ("cuda", "cupti", "nvml", "nvrtc"),
    "grpc": ("grpc/", "grpcpp/"),
    "gtest": ("gtest/", "gmock/"),
    "llvm": ("llvm/", "llvm-c/", "lld/"),
    "nghttp2": ("nghttp2/",),
    "protobuf": ("google/protobuf/",),
    "protozero": ("protozero/",),
    "sqlite": ("sqlite3",),
    "zlib": ("zlib.h",),
}

# Folders of headers that are the system's or the compiler's own.
SYSTEM_FOLDERS = ("arpa/", "linux/", "net/", "netinet/", "sanitizer/", "sys/")

_COMPILER = ["compiler/syntax", "compiler/sema", "compiler/ir", "compiler/passes", "compiler/race"]
_DAEMON = [
    "daemon/compile", "daemon/device", "daemon/engine", "daemon/error", "daemon/options", "daemon/process", "daemon/rpc",
    "daemon/tuner", "daemon/worker"
]
EVERYTHING = ["*"]

ROOMS = {
    # room: (rooms, libraries)
    "base": ([], ["absl"]),
    "cache": (["base"], ["absl", "sqlite", "zlib"]),

    "compiler/syntax": (["base"], ["absl"]),
    "compiler/ir": (["base"], ["absl"]),
    "compiler/sema": (["base", "compiler/syntax", "compiler/ir"], ["absl"]),
    "compiler/interpreter": (["base", "compiler/ir"], ["absl"]),
    "compiler/passes": (["base", "compiler/ir"], ["absl"]),
    "compiler/race": (["base", "compiler/ir"], ["absl"]),
    "compiler/codegen": (["base", "compiler/ir", "compiler/passes"], ["absl", "llvm"]),
    "compiler/manifest": (["base", "proto"] + _COMPILER, ["absl", "protobuf"]),
    "compiler/main": (["base", "proto", "compiler/codegen", "compiler/manifest"] + _COMPILER, ["absl", "protobuf"]),

    # These four become libphobos.so: nothing but the standard library, nghttp2 and protozero.
    "client/launch": (["base"], []),
    "client/stub": (["base", "client/launch"], ["nghttp2", "protozero"]),
    "client/cpp": (["base", "client/launch", "client/stub"], []),
    "client/c": (["base", "client/launch", "client/stub", "client/cpp"], []),
    "client/cli": (["base", "proto", "client/launch", "client/stub", "client/cpp"], ["absl", "grpc", "protobuf"]),

    "daemon/error": (["base", "proto"], ["absl", "protobuf"]),
    "daemon/options": (["base", "proto"], ["absl", "protobuf"]),
    # What the machine lacks is told with its remedy where the system says so.
    "daemon/process": (["base", "daemon/error"], ["absl"]),
    "daemon/device": (["base", "proto", "client/launch", "daemon/process"], ["absl", "protobuf"]),
    "daemon/worker": (["base", "proto", "client/launch", "daemon/device", "daemon/error", "daemon/process"],
                      ["absl", "protobuf"]),
    "daemon/compile": (["base", "proto", "cache", "daemon/error", "daemon/process"], ["absl", "protobuf"]),
    "daemon/tuner": ([
        "base", "proto", "client/launch", "daemon/compile", "daemon/device", "daemon/error", "daemon/process",
        "daemon/worker"
    ], ["absl", "protobuf"]),
    "daemon/engine": ([
        "base", "proto", "cache", "client/launch", "daemon/compile", "daemon/device", "daemon/error", "daemon/options",
        "daemon/process", "daemon/tuner", "daemon/worker"
    ], ["absl", "protobuf"]),
    "daemon/rpc":
        (["base", "proto", "daemon/engine", "daemon/error", "daemon/options", "daemon/process"],
         ["absl", "grpc", "protobuf"]),
    "daemon/main": (["base", "proto", "cache", "client/launch"] + _DAEMON, ["absl", "protobuf"]),

    "tests": (EVERYTHING, [name for name in LIBRARIES if name != "cuda"]),
    "tests/gpu/declarations": (["client/launch"], ["cuda"]),  # compares them with cuda.h where there is one
    "bench": (EVERYTHING, ["absl", "benchmark", "grpc", "protobuf"]),
    "examples": (["client/cpp", "client/c"], []),
}

# Rooms whose code, with all that it includes, must be free of these: Debian's archives cannot go into a shared library.
PURE_ROOMS = ("client/launch", "client/stub", "client/cpp", "client/c", "examples")
IMPURE_LIBRARIES = ("absl", "grpc", "protobuf")
