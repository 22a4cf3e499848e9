#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one folder of all that bench/gpu/run.py needs on a machine with a GPU, from this checkout and its build.

    python3 bench/gpu/make_bundle.py OUT_DIR

Build first: bazel build -c opt //daemon/main:phobosd //compiler/main:phobos-compile //client/cli:phobosctl
//client/c:libphobos.so //tests/gpu/card:card_test //bench/gpu:launch_on_card
//tests/compiler/codegen/nvptx:random_bundle. The programs
are stripped and need nothing but glibc. The folder has the checkout's own places, so that scripts find each other as they do
here. On the machine:

    python3 OUT_DIR/bench/gpu/run.py [SECTION ...]
"""

import lzma
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/gpu/ptx"))
import make_bundle as ptx_bundle

MOST_BYTES = 64 << 20
BUILT = {
    "daemon/main/phobosd": "bin/phobosd",
    "compiler/main/phobos-compile": "bin/phobos-compile",
    "client/cli/phobosctl": "bin/phobosctl",
    "tests/gpu/card/card_test": "bin/card_test",
    "bench/gpu/launch_on_card": "bin/launch_on_card",
    "client/c/libphobos.so": "lib/libphobos.so",
}
PACKED = "bin/phobos-compile"  # which is most of it; run.py unpacks it
SCRIPTS = ("bench/private_daemon.py", "bench/gpu/report.py", "bench/gpu/run.py", "bench/gpu/sections", "bench/gpu/peers",
           "client/python/phobos", "tests/gpu/clients/clients_on_card.py", "tests/compiler/kernels", "examples")
RANDOM_KERNELS = 500


def place(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(source):
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "BUILD.bazel"))
    else:
        shutil.copy(source, target)


def pack(path):
    with open(path, "rb") as source, lzma.open(path + ".xz", "wb", preset=1) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    os.unlink(path)


def pack_random_kernels(program, path):
    subprocess.run([program, path, "0", str(RANDOM_KERNELS)], check=True)
    with open(path, "rb") as source, lzma.open(path + ".xz", "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    os.unlink(path)


def size_of(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)


def built_program(name):
    path = os.path.join(ROOT, "bazel-bin", name)
    if not os.path.exists(path):
        raise SystemExit(f"{path} is not built; {__doc__.split('Build first: ')[1].split('. The')[0]}")
    return path


def make(out):
    if os.path.exists(out):
        if os.listdir(out) and not os.path.exists(os.path.join(out, "bench/gpu/run.py")):
            raise SystemExit(f"{out} is there and is no bundle; name another folder, or remove it")
        shutil.rmtree(out)
    for built, name in BUILT.items():
        source, target = built_program(built), os.path.join(out, "dist", name)
        place(source, target)
        os.chmod(target, 0o755)
        flags = ["--strip-unneeded"] if name.endswith(".so") else []
        subprocess.run(["strip", *flags, target], check=True)
    pack(os.path.join(out, "dist", PACKED))
    for script in SCRIPTS:
        place(os.path.join(ROOT, script), os.path.join(out, script))
    ptx_bundle.make(os.path.join(ROOT, "bazel-bin/compiler/main/phobos-compile"), os.path.join(out, "tests/gpu/ptx"))
    random_bundle = built_program("tests/compiler/codegen/nvptx/random_bundle")
    pack_random_kernels(random_bundle, os.path.join(out, "tests/gpu/ptx/random"))


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    out = os.path.abspath(sys.argv[1])
    make(out)
    size = size_of(out)
    print(f"{out}: {size / (1 << 20):.1f} MiB")
    if size > MOST_BYTES:
        raise SystemExit(f"that is more than {MOST_BYTES >> 20} MiB, the most that may travel")


if __name__ == "__main__":
    main()
