# SPDX-License-Identifier: Apache-2.0
"""Results for people: text tables that line up, HTML for notebooks, plots. Only reads Results."""

from ._errors import argument_error, said

BAR = 16  # characters of the longest bar

_PHASES = ("queue", "upload", "compile", "reference", "check", "warm_up", "timing")


def humane(ns):
    """A duration with three digits or more and a unit: "812 ns", "45.1 us", "8.12 ms", "1.50 s"."""
    if ns < 1000:
        return f"{ns:.0f} ns"
    for limit, unit in ((1e6, "us"), (1e9, "ms"), (float("inf"), "s")):
        if ns < limit * 0.9995:
            value = ns / (limit / 1000 if limit != float("inf") else 1e9)
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return ""


def settings_text(settings):
    return " ".join(f"{name}={value}" for name, value in settings.items()) or "(no constants)"


def first_line(text):
    return text.split("\n", 1)[0]


def pairs_text(values):
    return ", ".join(f"{name}={value}" for name, value in values.items())


def heading(result):
    parts = [result.kernel + (f" at {pairs_text(result.key)}" if result.key else "")]
    if result.device.get("card_name"):
        parts.append(result.device["card_name"])
    parts.append(f"generation {result.generation}" + (", cached" if result.cached else ""))
    if result.contended:
        parts.append("CONTENDED: others used the device while this was timed")
    if result.stale:
        parts.append("STALE: timed by another compiler than the present one")
    if any(v.race_recorded for v in result.variants if v.index == result.winner_index):
        parts.append("RACES: not proved; a recording of the tune's launch saw none")
    return " | ".join(parts)


def split_text(split):
    parts = [
        f"{name.replace('_', '-')} {humane(split[name])}" for name in _PHASES if split.get(name)
    ]
    total = f"tune {humane(split['total'])}" if split.get("total") else "tune"
    return f"{total}: {', '.join(parts)}" if parts else total


def ordered(result, sort):
    """Variants in the order asked for: the timed ones first by time, or all by index."""
    if not isinstance(sort, str) or sort not in ("time", "index"):
        raise argument_error(f'sort must be "time" or "index", not {said(sort)}')
    if sort == "index":
        return list(result.variants)
    return sorted(result.variants, key=lambda v: (not v.is_timed, v.best, v.index))


def _rows(result, sort, limit):
    """One list of cells a variant, and the number of variants not shown."""
    variants = ordered(result, sort)
    shown = variants if limit is None else variants[:limit]
    slowest = max((v.best for v in result.variants if v.is_timed), default=1) or 1
    rows = []
    for v in shown:
        is_winner = v.is_timed and v.index == result.winner_index
        mark = "*" if is_winner else "~" if v.index in result.ties else " "
        if v.is_timed:
            bar = "#" * max(1, round(BAR * v.best / slowest))
            times = [humane(v.best), humane(v.median), f"{100 * v.spread:.1f} %"]
            rows.append([mark, v.label(), *times, bar])
        else:
            reason = f"{v.status}: {first_line(v.reason)}".rstrip(": ")
            rows.append([mark, v.label(), "-", "-", "-", reason])
    return rows, len(variants) - len(shown)


_HEAD = ["", "variant", "best", "median", "spread", ""]


def table(result, sort, limit):
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise argument_error(
            f"limit must be a number of variants, or None for all, not {said(limit)}"
        )
    rows, hidden = _rows(result, sort, limit)
    widths = [max(len(row[i]) for row in [_HEAD] + rows) for i in range(5)]
    lines = [heading(result)]
    for row in [_HEAD] + rows:
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1])]
        cells += [row[i].rjust(widths[i]) for i in (2, 3, 4)]
        lines.append("  ".join(cells + [row[5]]).rstrip())
    if hidden:
        lines.append(f"... {hidden} more variants; .table(limit=None) shows all")
    marks = "* winner" + (", ~ within noise of it" if len(result.ties) > 1 else "")
    lines.append(f"{marks} | best of {_rounds(result)} | {split_text(result.split)}")
    return "\n".join(lines)


def _rounds(result):
    rounds = max((len(v.samples) for v in result.variants), default=0)
    return f"{rounds} round" + ("" if rounds == 1 else "s")


def html(result):
    from html import escape

    rows, hidden = _rows(result, "time", 64)
    cells = "".join(f"<th>{escape(name)}</th>" for name in _HEAD)
    lines = [f"<table><caption>{escape(heading(result))}</caption><tr>{cells}</tr>"]
    for row in rows:
        style = ' style="font-weight:bold"' if row[0] == "*" else ""
        lines.append(f"<tr{style}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    lines.append("</table>")
    if hidden:
        lines.append(f"<p>... {hidden} more variants</p>")
    lines.append(f"<p>{escape(split_text(result.split))}</p>")
    return "\n".join(lines)


def plot(result):
    try:
        from matplotlib import pyplot
    except ImportError:
        text = _bars(result)
        print(text)
        return text
    timed = [v for v in ordered(result, "time") if v.is_timed]
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.35 * max(1, len(timed))))
    axes.boxplot([[s / 1e3 for s in v.samples] for v in timed], vert=False, whis=(0, 100))
    axes.set_yticks(range(1, len(timed) + 1))
    axes.set_yticklabels([v.label() for v in timed])
    axes.invert_yaxis()
    axes.set_xlabel("time of a launch, us")
    axes.set_title(heading(result))
    figure.tight_layout()
    return figure


def _bars(result):
    """Samples of all timed variants on one scale: `=` from fastest to slowest, `|` the median."""
    timed = [v for v in ordered(result, "time") if v.is_timed and v.samples]
    if not timed:
        return heading(result) + "\nno variant was timed"
    width, slowest = 60, max(max(v.samples) for v in timed)
    label = max(len(v.label()) for v in timed)
    lines = [heading(result)]
    for v in timed:
        times = (min(v.samples), max(v.samples), v.median)
        low, high, median = (int((width - 1) * ns / slowest) for ns in times)
        strip = [" "] * width
        strip[low : high + 1] = "=" * (high + 1 - low)
        strip[median] = "|"
        lines.append(f"{v.label().ljust(label)}  {''.join(strip)}  {humane(v.best)}".rstrip())
    lines.append(f"{' ' * label}  0{humane(slowest).rjust(width - 1)}")
    return "\n".join(lines)
