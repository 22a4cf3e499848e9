#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What runs of bench/gpu/run.py found, as Markdown, from the JSON that they wrote.

    python3 bench/gpu/report.py [--into FILE] [--plot FILE.svg] GPU.JSON ...

Prints it, or writes it --into FILE between the two lines there that name this script. --plot draws phobos against Triton
(needs matplotlib). What the JSON has and this leaves out: each row's `detail`, and the end of a long note.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap

NOTE = 110  # characters of a note
BEGIN, END = "<!-- written by bench/gpu/report.py -->", "<!-- to here by bench/gpu/report.py -->"
MARK = {True: "met", False: "MISSED", None: ""}
HELD = ("yes", "ok")
PHOBOS, TRITON = "#2b6cb0", "#a0aec0"


def shown(value):
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def cell(text):
    return " ".join(str(text).replace("|", "/").split())


def state_lines(machine):
    """The machine as a list."""
    states = {label: machine[name] for label, name in (("before", "card"), ("after", "card_after")) if name in machine}
    lines = [f"- card {label}: " + ", ".join(f"{name} {value}" for name, value in state.items())
             for label, state in states.items()]
    rest = {name: value for name, value in machine.items() if name not in ("when", "card", "card_after")}
    return lines + ["- " + ", ".join(f"{name} {value}" for name, value in rest.items())]


def section_lines(name, section, level, brief):
    """brief: checks that held are counted, not listed."""
    rows = section["rows"]
    held = [row for row in rows if brief and row["met"] and row["value"] in HELD]
    listed = [row for row in rows if row not in held]
    lines = ["", f"{'#' * level} {name}: {section['outcome']} ({section['seconds']:.0f} s)", ""]
    if listed:
        lines += ["| what | value | limit | | notes |", "| --- | --- | --- | --- | --- |"]
    for row in listed:
        note = textwrap.shorten(cell(row["note"]), NOTE, placeholder=" ...")
        cells = (row["name"], f"{shown(row['value'])} {row['unit']}", row["limit"], MARK[row["met"]], note)
        lines.append("| " + " | ".join(map(cell, cells)) + " |")
    if held:
        lines += ["", f"Checks that held beside these: {len(held)}."] if listed else [f"All {len(held)} checks held."]
    return lines


def text(document, level=1, brief=False):
    """Markdown of one run."""
    missed = [f"{name}, {cell(row['name'])}" for name, section in document["sections"].items() for row in section["rows"]
              if row["met"] is False]
    lines = [f"{'#' * level} Run of {document['machine']['when']}: limits missed: {len(missed)}", ""]
    lines += state_lines(document["machine"])
    lines += [f"- missed: {one}" for one in missed]
    lines += [f"- {remark}" for remark in document.get("remarks", ())]
    for name, section in document["sections"].items():
        lines += section_lines(name, section, level + 1, brief)
    return "\n".join(lines) + "\n"


def against_triton(document):
    """[(what, seconds of phobos, seconds of Triton)] of a run of the section tune; empty without it, or without Triton."""
    rows = {row["name"]: row for row in document["sections"].get("tune", {"rows": ()})["rows"]}
    bars = []
    for label, name in (("cold tune", "cold tune of the add, whole call"), ("new n", "tune at a new n, whole call")):
        triton = re.search(r"Triton in turn ([\d.]+) s", rows.get(name, {"note": ""})["note"])
        if triton:
            bars.append((label, rows[name]["value"], float(triton[1])))
    for count in (4, 8):
        ours, triton = (rows.get(f"{count} processes at once: {what}") for what in ("wall over one process", "Triton's wall"))
        if ours and triton:
            bars.append((f"{count} processes", float(ours["note"].split()[0]), triton["value"]))
    return bars


def plot(bars, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams.update({"svg.hashsalt": "phobos", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
    for shift, at, label, colour in ((-0.2, 1, "phobos", PHOBOS), (0.2, 2, "Triton", TRITON)):
        drawn = axes.bar([place + shift for place in range(len(bars))], [bar[at] for bar in bars], 0.4, label=label, color=colour)
        axes.bar_label(drawn, fmt="%.2f", padding=2)
    axes.set_xticks(range(len(bars)), [bar[0] for bar in bars])
    axes.set_ylabel("seconds to the first result")
    axes.margins(y=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def put_into(path, report):
    with open(path) as file:
        before, begin, rest = file.read().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} has not the lines {BEGIN} and {END}, between which the report goes")
    with open(path, "w") as file:
        file.write(f"{before}{BEGIN}\n\n{report}\n{END}{after}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--into", metavar="FILE")
    options.add_argument("--plot", metavar="FILE.svg")
    options.add_argument("runs", nargs="+", metavar="GPU.JSON")
    chosen = options.parse_args()
    documents = []
    for path in chosen.runs:
        with open(path) as file:
            documents.append(json.load(file))
    report = "\n".join(text(document, level=3, brief=True) for document in documents)
    if chosen.into:
        put_into(chosen.into, report)
    else:
        print(report, end="")
    if chosen.plot:
        bars = next(filter(None, map(against_triton, reversed(documents))), None)
        if bars is None:
            raise SystemExit("none of these runs has the section tune with Triton beside it, so there is nothing to draw")
        plot(bars, chosen.plot)


if __name__ == "__main__":
    main()
