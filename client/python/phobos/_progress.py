# SPDX-License-Identifier: Apache-2.0
"""A line on the terminal that tells how far a tune is, and wipes itself when the tune ends."""

import os
import sys
import time

from . import _display

INTERVAL = 0.1  # seconds between redraws


class Progress:
    """What the daemon last said of a tune."""

    __slots__ = (
        "phase",
        "done",
        "total",
        "best_ns",
        "best_settings",
        "queue_position",
        "estimate_ms",
        "note",
    )

    def __init__(
        self, phase, done, total, best_ns, best_settings, queue_position, estimate_ms, note
    ):
        self.phase = phase
        self.done = done
        self.total = total
        self.best_ns = best_ns
        self.best_settings = best_settings
        self.queue_position = queue_position
        self.estimate_ms = estimate_ms
        self.note = note


def wanted(stream):
    """Whether to draw on `stream`: a terminal that can erase, and PHOBOS_PROGRESS is not 0."""
    if os.environ.get("PHOBOS_PROGRESS") == "0" or os.environ.get("TERM") == "dumb":
        return False
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):
        return False


def line(label, progress, columns):
    """The line's text, never longer than the terminal is wide."""
    if progress.queue_position > 0:
        parts = [f"{label}  queued, {progress.queue_position} before it"]
    else:
        parts = [f"{label}  {progress.phase.replace('_', '-')}"]
        if progress.total:
            filled = min(10, 10 * progress.done // progress.total)
            unit = " ms" if progress.phase == "warm_up" else ""
            parts.append(
                f"[{'#' * filled}{'.' * (10 - filled)}] {progress.done} of {progress.total}{unit}"
            )
    if progress.note:
        parts.append(progress.note)
    if progress.best_ns:
        parts.append(f"best {_display.humane(progress.best_ns)} {progress.best_settings}".rstrip())
    if progress.estimate_ms:
        parts.append(f"about {_display.humane(progress.estimate_ms * 1_000_000)} left")
    return "  ".join(parts)[: max(10, columns - 1)]


class Bar:
    """Draws on stderr while in a `with`, unless `wanted` says no. One thread at a time."""

    def __init__(self, label, stream=None):
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._wanted = wanted(self._stream)
        self._drawn = 0.0

    def __enter__(self):
        return self

    def show(self, progress):
        now = time.monotonic()
        if not self._wanted or now - self._drawn < INTERVAL:
            return
        self._drawn = now
        self._write("\r" + line(self._label, progress, self._columns()) + "\x1b[K")

    def __exit__(self, *exception):
        if self._drawn:
            self._write("\r\x1b[K")
        self._drawn = 0.0

    def _write(self, text):
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal went away
            self._wanted = False

    def _columns(self):
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError, AttributeError):
            return 80
