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

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DIST = os.environ.get("PHOBOS_DIST", os.path.join(ROOT, "dist"))
SECTION = os.path.join(HERE, "sections")

# Name -> (command, seconds that it may take).
SECTIONS = {
    "ptx": ([sys.executable, os.path.join(ROOT, "tests/gpu/ptx/run_bundle.py"), "--time"], 150),
    "card": ([os.path.join(DIST, "bin", "card_test")], 150),
    "clients": ([sys.executable, os.path.join(ROOT, "tests/gpu/clients/clients_on_card.py"), "--dist", DIST], 300),
    "tune": ([sys.executable, os.path.join(SECTION, "tune.py")], 420),
    "winner": ([sys.executable, os.path.join(SECTION, "winner.py")], 120),
    "launch": ([sys.executable, os.path.join(SECTION, "launch.py")], 120),
    "faults": ([sys.executable, os.path.join(SECTION, "faults.py")], 180),
    "small": ([sys.executable, os.path.join(SECTION, "small.py")], 90),
    "regret": ([sys.executable, os.path.join(SECTION, "regret.py")], 180),
    "correct": ([sys.executable, os.path.join(SECTION, "correct.py")], 240),
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
    """{"outcome", "seconds", "rows"} of a section."""
    with tempfile.TemporaryDirectory(prefix="phobos-gpu-") as folder:
        said = os.path.join(folder, "said")
        environment, start = {**environment_of(folder), "TEST_TMPDIR": folder}, time.monotonic()
        with open(said, "w") as file:
            process = subprocess.Popen(SECTIONS[name][0], env=environment, stdin=subprocess.DEVNULL, stdout=file,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = process.wait(seconds)
                outcome = "ok" if code == 0 else f"ended with {code}"
            except subprocess.TimeoutExpired:
                outcome = f"took longer than {seconds:.0f} s"
            end(process)
        took = time.monotonic() - start
        with open(said, errors="replace") as file:
            text = file.read()
        log.write(f"==== {name}: {outcome}, {took:.1f} s\n{text}\n")
        log.flush()
        return {"outcome": outcome, "seconds": round(took, 1), "rows": rows_of(folder, text)}


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
            rows[-1]["note"] = (rows[-1]["note"] + "; " + detail[1]).strip("; ")[:600]
        elif summary:
            rows.append({**plain, "name": line, "value": "", "unit": "", "met": line.endswith(" 0 outputs differ")})
        elif bench:
            rows.append({**plain, "name": bench[1], "value": float(bench[2]), "unit": "us", "note": f"best {bench[3]} us"})
    return rows


def machine():
    facts = {"python": platform.python_version(), "cores": os.cpu_count(), "when": time.strftime("%Y-%m-%d %H:%M:%S")}
    ask = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm,temperature.gpu", "--format=csv,noheader"]
    try:
        facts["card"] = subprocess.run(ask, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        facts["card"] = f"unknown: {error}"
    import importlib.metadata
    for name in ("torch", "triton", "numpy", "jax", "cupy-cuda13x"):
        try:
            facts[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return facts


def table(facts, sections):
    """Markdown."""
    shown = lambda value: f"{value:.4g}" if isinstance(value, float) else str(value)
    mark = {True: "met", False: "MISSED", None: ""}
    lines = ["# On " + ", ".join(f"{name} {value}" for name, value in facts.items())]
    for name, section in sections.items():
        lines += ["", f"## {name}: {section['outcome']}, {section['seconds']} s", ""]
        if section["rows"]:
            lines += ["| what | value | limit | | notes |", "| --- | --- | --- | --- | --- |"]
        for row in section["rows"]:
            cells = (row["name"], f"{shown(row['value'])} {row['unit']}", row["limit"], mark[row["met"]], row["note"])
            lines.append("| " + " | ".join(cell.strip().replace("|", "/").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


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
    until, facts, sections = time.monotonic() + chosen.within, machine(), {}
    with open(os.path.join(chosen.out, "gpu.log"), "w") as log:
        for name in chosen.sections or SECTIONS:
            left = until - time.monotonic()
            if left < 5:
                sections[name] = {"outcome": "not run: no time was left", "seconds": 0, "rows": []}
            else:
                print(f"{name} ...", flush=True)
                sections[name] = run(name, min(SECTIONS[name][1], left), log)
            # After each, so that a machine that is taken away leaves what there is.
            with open(os.path.join(chosen.out, "gpu.json"), "w") as file:
                json.dump({"machine": facts, "sections": sections}, file, indent=1)
            with open(os.path.join(chosen.out, "gpu.md"), "w") as file:
                file.write(table(facts, sections))
    print(table(facts, sections))
    tail_of_failures(sections, os.path.join(chosen.out, "gpu.log"))
    missed = [row for section in sections.values() for row in section["rows"] if row["met"] is False]
    return 1 if missed or any(section["outcome"] != "ok" for section in sections.values()) else 0


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
