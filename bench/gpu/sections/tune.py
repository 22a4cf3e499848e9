#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a tune costs, beside Triton's in the same run and in turn: cold, at a new size, in a second process, in several.

tune.py [--times N] [--n N]        Needs torch and Triton; without torch, phobos alone on arrays of its own.

Each repetition has a daemon with an empty cache, whose worker another kernel's tune brought up, and an empty cache of
Triton's. The driver's own cache is off (CUDA_CACHE_DISABLE=1). A call is timed from the arrays, which are there, to the
end of the launch on the card.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import shutil
import statistics
import sys
import tempfile

import stage

COLD_S, NEW_SIZE_S, NEW_SIZE_RESULT_S, SECOND_MS, TOGETHER = 0.50, 0.42, 0.34, 5.0, 1.1


def timed(who, *sizes):
    program = stage.begin("tuner.py", who, "once", *sizes)
    return run_together([program])[0]["rows"]


def run_together(programs):
    """Lets all go at once when each is ready."""
    try:
        for program in programs:
            if program.stdout.readline() != "READY\n":
                stage.finish(program)
        for program in programs:
            program.stdin.write("\n")
            program.stdin.flush()
        return [stage.finish(program) for program in programs]
    finally:
        for program in programs:
            program.kill()


@contextlib.contextmanager
def daemon_with_worker(seen):
    """A daemon of an empty cache whose worker runs; what that took goes to `seen`."""
    with stage.daemon():
        seen.append(run_together([stage.begin("tuner.py", "phobos", "worker", 4096)])[0])
        yield


@contextlib.contextmanager
def triton_cache():
    folder = tempfile.mkdtemp(prefix="phobos-triton-")
    try:
        stage.os.environ["TRITON_CACHE_DIR"] = folder
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def one_after_the_other(who, n, times, has_triton):
    """([rows of phobos: cold, new size, second process], [the same of Triton], [worker's rows])."""
    ours, triton, workers = [], [], []
    for _ in range(times):
        with daemon_with_worker(workers):
            # A size between, so that the arrays' memory and the worker's are there.
            first = timed(who, n, n - 8, n - 16)
            ours.append((first[0], first[2], timed(who, n)[0]))
        if has_triton:
            with triton_cache():
                first = timed("triton", n, n - 8, n - 16)
                triton.append((first[0], first[2], timed("triton", n)[0]))
    return ours, triton, workers


def together(who, n, count):
    """(wall of them all, its rows), from the first that began to the last that ended."""
    rows = [one["rows"][0] for one in run_together([stage.begin("tuner.py", who, "once", n) for _ in range(count)])]
    return max(row["ended"] for row in rows) - min(row["began"] for row in rows), rows


def report_in_turn(figures, ours, triton, workers):
    middle = lambda rows, at, name: statistics.median(row[at][name] for row in rows)
    against = lambda at: f"Triton in turn {middle(triton, at, 'call_s'):.3f} s" if triton else "Triton is not here"
    figures.check("every sum was right", all(row["right"] for rows in ours + triton for row in rows))
    figures.add("cold tune of the add, whole call", middle(ours, 0, "call_s"), "s", at_most=COLD_S, note=against(0))
    figures.add("tune at a new n, whole call", middle(ours, 1, "call_s"), "s", at_most=NEW_SIZE_S, note=against(1))
    rest = [row[1]["split"] for row in ours]
    waited = statistics.median(s["total"] - s.get("upload", 0) - s.get("reference", 0) for s in rest)
    figures.add("tune at a new n, from Expected to the Result", waited, "s", at_most=NEW_SIZE_RESULT_S,
                note="total without upload and reference")
    figures.add("second process to its first launch", 1e3 * middle(ours, 2, "call_s"), "ms", at_most=SECOND_MS,
                note=f"{against(2)}; import of phobos beside it {1e3 * middle(ours, 2, 'import_s'):.1f} ms")
    figures.check("the second process tuned nothing", not any(row[2]["tuned_here"] for row in ours))
    if triton:
        figures.add("cold tune: Triton's call over ours", middle(triton, 0, "call_s") / middle(ours, 0, "call_s"), "times")
    figures.add("worker's start, in a fresh daemon's first tune",
                statistics.median(row["first_s"] - row["second_s"] for row in workers), "s")
    for at, name in ((0, "cold"), (1, "new n")):
        split = {phase: statistics.median(row[at]["split"].get(phase, 0.0) for row in ours) for phase in ours[0][at]["split"]}
        figures.add(f"reference's time, {name}", split.get("reference", 0.0), "s",
                    note="ms: " + ", ".join(f"{phase} {1e3 * s:.0f}" for phase, s in split.items() if phase != "reference"),
                    detail={"phobos": [row[at] for row in ours], "triton": [row[at] for row in triton]})


def report_together(figures, who, n, times, has_triton):
    walls = {}
    for count in (1, 4, 8) if not stage.quick() else (1, 3):
        seen, agreed, tunes = [], True, []
        for _ in range(times):
            with daemon_with_worker([]):
                wall, rows = together(who, n, count)
            seen.append(wall)
            agreed = agreed and len({(row["winner"], row["generation"]) for row in rows}) == 1
            tunes.append(max(row["generation"] for row in rows))
        walls[count] = statistics.median(seen)
        if count == 1:
            figures.add("one process, cold", walls[1], "s")
            continue
        figures.add(f"{count} processes at once: wall over one process", walls[count] / walls[1], "times", at_most=TOGETHER,
                    note=f"{walls[count]:.3f} s")
        figures.check(f"{count} processes at once: one tune, one winner", agreed and set(tunes) == {1})
        if has_triton:
            with triton_cache():
                wall, rows = together("triton", n, count)
            blocks = sorted({int(row["winner"].split(",")[0].split()[-1]) for row in rows})
            figures.add(f"{count} processes at once: Triton's wall", wall, "s",
                        note=f"calls {min(row['call_s'] for row in rows):.2f} to {max(row['call_s'] for row in rows):.2f} s; "
                        "winners' BLOCK " + ", ".join(map(str, blocks)), detail=rows)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--times", type=int, default=1 if stage.quick() else 3)
    options.add_argument("--n", type=int, default=5000 if stage.quick() else 1 << 24)
    chosen = options.parse_args()
    stage.os.environ["CUDA_CACHE_DISABLE"] = "1"
    has_torch, has_triton = (importlib.util.find_spec(name) is not None for name in ("torch", "triton"))
    who, figures = "phobos" if has_torch else "torchless", stage.Figures()
    report_in_turn(figures, *one_after_the_other(who, chosen.n, chosen.times, has_torch and has_triton))
    report_together(figures, who, chosen.n, chosen.times, has_torch and has_triton)
    return figures.status()


if __name__ == "__main__":
    sys.exit(main())
