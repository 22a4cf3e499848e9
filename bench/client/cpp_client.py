#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the thin client costs in C++: a launch on top of the kernel itself, and lookups.

    bazel build //bench/client:client_bench //daemon/main:phobosd //compiler/main:phobos-compile //client/c:libphobos.so
    python3 bench/client/cpp_client.py [--json FILE]

One block of 256 elements is launched. Lookups go to a daemon of its own: one client one after another, then eight at
once. Ends with 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from private_daemon import ROOT, located, private_daemon


def rows(measured):
    """(what, value, unit, limit, is it kept) of each figure."""
    over = [measured[name] - measured["kernel_ns"] for name in ("plan_launch_ns", "kernel_launch_ns")]
    p50, rate = measured["lookup_p50_us"], measured["lookups_per_second"]
    return [
        ("kernel itself, one block", measured["kernel_ns"], "ns", "", True),
        ("Plan::Launch on top of it", over[0], "ns", "<= 1000", over[0] <= 1000),
        ("Kernel::Launch on top of it", over[1], "ns", "<= 1000", over[1] <= 1000),
        ("load, once a plan: digest checked", measured["load_us"], "us", "", True),
        ("load, unchecked", measured["load_unchecked_us"], "us", "", True),
        ("Lookup p50, one client", p50, "us", "<= 150", p50 <= 150),
        ("Lookup p99, one client", measured["lookup_p99_us"], "us", "", True),
        ("Lookups a second, 8 clients", rate, "", ">= 12000", rate >= 12000),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()
    bench = located("PHOBOS_CLIENT_BENCH", "bazel-bin/bench/client/client_bench")
    with private_daemon():
        done = subprocess.run([bench, os.path.join(ROOT, "examples/vector_add.py")], stdout=subprocess.PIPE, check=True)
    measured = json.loads(done.stdout)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(measured, file, indent=2)
    missed = False
    for what, value, unit, limit, is_kept in rows(measured):
        missed = missed or not is_kept
        print(f"{what:<36}{value:>12.1f} {unit:<4}{limit:<10}{'' if is_kept else 'MISSED'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
