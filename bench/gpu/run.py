#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the GPU test-suite and the comparison with Triton on a machine with a card; writes one table and JSON.

    python3 bench/gpu/run.py [--out FOLDER] [--within SECONDS] [SECTION ...]

Builds nothing and fetches nothing: the programs are in dist/, where make_bundle.py (or deploy/quickstart.sh) put them.
Each section is a process with a time limit of its own; one that hangs is killed with all that it started, and the next one
runs. FOLDER ($OUT, else the current one) gets gpu.json, gpu.md and gpu.log. Ends with 1 where a limit was missed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import report

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DIST = os.environ.get("PHOBOS_DIST", os.path.join(ROOT, "dist"))
SECTION = os.path.join(HERE, "sections")

# Name -> (command, seconds that it may take), in the order in which they run: the comparison first, so that there is time
# for it.
SECTIONS = {
    "card": ([os.path.join(DIST, "bin", "card_test")], 150),
    "tune": ([sys.executable, os.path.join(SECTION, "tune.py")], 420),
    "winner": ([sys.executable, os.path.join(SECTION, "winner.py")], 120),
    "kernels": ([sys.executable, os.path.join(SECTION, "kernels.py")], 180),
    "gemm": ([sys.executable, os.path.join(SECTION, "gemm.py")], 240),
    "launch": ([sys.executable, os.path.join(SECTION, "launch.py")], 120),
    "faults": ([sys.executable, os.path.join(SECTION, "faults.py")], 180),
    "small": ([sys.executable, os.path.join(SECTION, "small.py")], 90),
    "regret": ([sys.executable, os.path.join(SECTION, "regret.py")], 180),
    "correct": ([sys.executable, os.path.join(SECTION, "correct.py")], 240),
    "clients": ([sys.executable, os.path.join(ROOT, "tests/gpu/clients/clients_on_card.py"), "--dist", DIST], 300),
    "ptx": ([sys.executable, os.path.join(ROOT, "tests/gpu/ptx/run_bundle.py"), "--time"], 150),
    "language": ([sys.executable, os.path.join(ROOT, "tests/compiler/kernels/run_on_card.py")], 120),
    "random": ([sys.executable, os.path.join(ROOT, "tests/gpu/ptx/run_random.py")], 90),
}


def environment_of(folder):
    paths = {"PHOBOS_LIBRARY": "lib/libphobos.so", "PHOBOS_DAEMON": "bin/phobosd", "PHOBOS_COMPILER": "bin/phobos-compile"}
    found = {name: os.environ.get(name) or os.path.join(DIST, path) for name, path in paths.items()}
    return {**os.environ, **found, "PHOBOS_DIST": DIST, "PHOBOS_PROGRESS": "0", "PHOBOS_FIGURES": os.path.join(folder, "rows"),
            "CUDA_CACHE_DISABLE": "1", "PYTHONUNBUFFERED": "1"}


def unpack():
    """Programs that make_bundle.py packed."""
    folder = os.path.join(DIST, "bin")
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        path, packed = os.path.join(folder, name[:-3]), os.path.join(folder, name)
        if not name.endswith(".xz") or os.path.exists(path):
            continue
        with lzma.open(packed) as source, open(path + ".new", "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        os.chmod(path + ".new", 0o755)
        os.replace(path + ".new", path)


def end(process):
    """Kills the section and what it started."""
    for number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            pass


def run(name, seconds, log):
    """{"outcome", "missed", "seconds", "rows"} of a section."""
    with tempfile.TemporaryDirectory(prefix="phobos-gpu-") as folder:
        said, code = os.path.join(folder, "said"), None
        environment, start = {**environment_of(folder), "TEST_TMPDIR": folder}, time.monotonic()
        with open(said, "w") as file:
            process = subprocess.Popen(SECTIONS[name][0], env=environment, stdin=subprocess.DEVNULL, stdout=file,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                pass
            end(process)
        took = time.monotonic() - start
        with open(said, errors="replace") as file:
            text = file.read()
        rows = rows_of(folder, text)
        missed = sum(row["met"] is False for row in rows)
        outcome = outcome_of(code, missed, seconds)
        log.write(f"==== {name}: {outcome}, {took:.1f} s\n{text}\n")
        log.flush()
        return {"outcome": outcome, "missed": missed, "seconds": round(took, 1), "rows": rows}


def outcome_of(code, missed, seconds):
    """code: the section's exit status, 1 where it missed a limit; None: it did not end."""
    said = [f"limits missed: {missed}"] if missed else []
    if code is None:
        said.append(f"took longer than {seconds:.0f} s")
    elif code != (1 if missed else 0):
        said.append(f"ended with {code}")
    return ", ".join(said) or "ok"


def rows_of(folder, text):
    """What the section wrote down; of the programs of tests/, their own lines."""
    rows = []
    path = os.path.join(folder, "rows")
    if os.path.exists(path):
        with open(path) as file:
            rows = [json.loads(line) for line in file]
    plain = {"limit": "", "met": None, "note": ""}
    for line in text.splitlines():
        figure = re.match(r"FIGURE (.*?) +(-?[\d.]+) *(\S*)$", line)
        check = re.match(r"(ok  |skip|FAIL) (\S.*)$", line)
        detail = re.match(r" {7}(\S.*)$", line)
        case = re.match(r"\[ +(OK|FAILED) +\] (\S+) \(", line)
        summary = re.search(r"\d+ outputs differ", line)
        bench = re.match(r"(.*?) +median +([\d.]+) us, best +([\d.]+) us", line)
        if figure:
            rows.append({**plain, "name": figure[1], "value": float(figure[2]), "unit": figure[3]})
        elif check or case:
            word = (check or case)[1].strip()
            met = {"ok": True, "OK": True, "skip": None}.get(word, False)
            rows.append({**plain, "name": (check or case)[2], "value": word.lower(), "unit": "", "met": met})
        elif detail and rows:
            rows[-1]["note"] = (rows[-1]["note"] + "; " + detail[1]).strip("; ")
        elif summary:
            rows.append({**plain, "name": line, "value": "", "unit": "", "met": line.endswith(" 0 outputs differ")})
        elif bench:
            rows.append({**plain, "name": bench[1], "value": float(bench[2]), "unit": "us", "note": f"best {bench[3]} us"})
    return rows


# What nvidia-smi is asked for.
STATE = ("name", "driver_version", "pstate", "clocks.sm", "clocks.max.sm", "clocks.mem", "temperature.gpu", "power.draw",
         "power.limit", "memory.used", "memory.total", "utilization.gpu", "mig.mode.current", "compute_mode")


def card_state():
    ask = ["nvidia-smi", "--id=0", "--query-gpu=" + ",".join(STATE), "--format=csv,noheader"]
    try:
        done = subprocess.run(ask, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"unknown": str(error)}
    values = done.stdout.strip().split(", ")
    return dict(zip(STATE, values)) if len(values) == len(STATE) else {"unknown": (done.stdout + done.stderr).strip()[:300]}


def machine():
    import importlib.metadata

    facts = {"when": time.strftime("%Y-%m-%d %H:%M:%S %Z"), "card": card_state(), "cores": os.cpu_count(),
             "python": platform.python_version()}
    for name in ("torch", "triton", "numpy", "jax", "cupy-cuda13x"):
        try:
            facts[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return facts


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--out", default=os.environ.get("OUT", "."))
    options.add_argument("--within", type=float, default=580, help="seconds for all sections together")
    options.add_argument("sections", nargs="*", metavar="SECTION", help="all without one: " + " ".join(SECTIONS))
    chosen = options.parse_args()
    unknown = [name for name in chosen.sections if name not in SECTIONS]
    if unknown:
        options.error(f"no section {unknown[0]}; there are {' '.join(SECTIONS)}")
    os.makedirs(chosen.out, exist_ok=True)
    unpack()
    until, sections = time.monotonic() + chosen.within, {}
    document = {"machine": machine(), "sections": sections}
    with open(os.path.join(chosen.out, "gpu.log"), "w") as log:
        for name in chosen.sections or SECTIONS:
            left = until - time.monotonic()
            if left < 5:
                sections[name] = {"outcome": "not run: no time was left", "missed": 0, "seconds": 0, "rows": []}
            else:
                print(f"{name} ...", flush=True)
                sections[name] = run(name, min(SECTIONS[name][1], left), log)
            # After each, so that a machine that is taken away leaves what there is.
            document["machine"]["card_after"] = card_state()
            write(document, chosen.out)
    print(report.text(document, brief=True))
    tail_of_failures(sections, os.path.join(chosen.out, "gpu.log"))
    return 0 if all(section["outcome"] == "ok" for section in sections.values()) else 1


def write(document, folder):
    with open(os.path.join(folder, "gpu.json"), "w") as file:
        json.dump(document, file, indent=1)
    with open(os.path.join(folder, "gpu.md"), "w") as file:
        file.write(report.text(document))


def tail_of_failures(sections, path):
    """The end of what sections said that did not end by themselves, or ended with nothing to show."""
    with open(path, errors="replace") as file:
        parts = file.read().split("==== ")
    for part in parts:
        name = part.partition(":")[0]
        section = sections.get(name)
        if section and section["outcome"] != "ok" and not any(row["met"] is False for row in section["rows"]):
            print("==== " + part[-1500:])


if __name__ == "__main__":
    sys.exit(main())
