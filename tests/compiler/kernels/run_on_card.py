#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kernels of this folder on the card, against NumPy, at extents around their tiles; a row each.

run_on_card.py [TEST_FILE ...]        $PHOBOS_COMPILER: phobos-compile
"""

import concurrent.futures
import os
import re
import subprocess
import sys

KERNELS = os.path.dirname(os.path.abspath(__file__))
CHIP = "sm_90"
FILES = ("elementwise_test.py", "shape_test.py", "reduction_test.py", "update_test.py", "contraction_test.py",
         "language_test.py")
SECONDS = 100  # one test


def tests(name):
    """Class.test of each test of the file, but those that run nothing."""
    with open(os.path.join(KERNELS, name), encoding="utf-8") as file:
        text = file.read()
    for part in re.split(r"^class ", text, flags=re.MULTILINE)[1:]:
        owner = re.match(r"\w+", part)[0]
        if owner != "Nvidia":
            yield from (f"{owner}.{test}" for test in re.findall(r"^    def (test_\w+)", part, re.MULTILINE))


def run(name, test):
    """(word, what to say) of one test, in a process of its own: an error of the card ends that one alone."""
    command = [sys.executable, os.path.join(KERNELS, name), os.environ["PHOBOS_COMPILER"], test]
    environment = {**os.environ, "PHOBOS_TEST_CARD": CHIP}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "FAIL", f"took longer than {SECONDS} s"
    count = re.search(r"^(\d+) launches", done.stdout, re.MULTILINE)
    launches = int(count[1]) if count else 0
    wrong = sum(int(number) for number in re.findall(r"(?:failures|errors)=(\d+)", done.stderr.splitlines()[-1]))
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if re.match(r"\w*(Error|Exception)\b|E?\w+: ", line)][:1]
        print(done.stderr[-3000:], file=sys.stderr)
        return "FAIL", f"{launches} launches, {wrong} differ; {' '.join(last)[:200]}"
    if not launches:
        return "FAIL", "nothing was launched"
    return "ok  ", f"{launches} launches, 0 differ"


def main(names):
    chosen = [(name, test) for name in names or FILES for test in tests(name)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(min(12, os.cpu_count() or 1)) as pool:
        for (name, test), (word, said) in zip(chosen, pool.map(run, *zip(*chosen))):
            print(f"{word} {test.split('.test_')[1].replace('_', ' ')}\n       {said}", flush=True)
            failed += word == "FAIL"
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
