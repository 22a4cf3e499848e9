#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels of kernels.py for a GPU and for a host, into a folder that a GPU machine can run by itself.

make_bundle.py PHOBOS_COMPILE FOLDER [CHIP]
"""

import json
import os
import shutil
import subprocess
import sys

import kernels

HOST_CHIP = "x86-64-v3"


def compile_kernel(compiler, source, chip, out):
    command = [compiler, source, "--chip", chip, "--all-variants", "--out", out, "--format", "json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {answer.stderr or answer.stdout}")


def make(compiler, folder, chip="sm_90", names=None):
    """`names`: the kernels; None: all."""
    os.makedirs(folder, exist_ok=True)
    tiles = {}
    for name, (tile, text) in kernels.kernels().items():
        if names is not None and name not in names:
            continue
        tiles[name] = tile
        source = os.path.join(folder, f"{name}.py")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        compile_kernel(compiler, source, HOST_CHIP, os.path.join(folder, "host", name))
        compile_kernel(compiler, source, chip, os.path.join(folder, "gpu", name))
        os.unlink(source)
    with open(os.path.join(folder, "tiles.json"), "w", encoding="utf-8") as file:
        json.dump(tiles, file)
    for name in ("run_bundle.py", "run_random.py", "cuda.py"):
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), folder)


if __name__ == "__main__":
    make(*sys.argv[1:])
