# SPDX-License-Identifier: Apache-2.0
"""The outcome of a tune, as a value. All times are nanoseconds; printed tables choose units."""

from . import _display
from ._errors import argument_error, said


class Variant:
    """One point of the search space and what became of it.

    index; settings (dict); status ("timed", "wrong_result", ...); reason (empty when timed);
    samples (ns, one a round), best, median, interquartile (ns), spread ((max - min) / min);
    registers, shared_memory_bytes, spill_bytes (GPU); artifact_digest; grid (what the grid gave for it,
    or None); race_detail (why it is not proved free of races) and race_recorded (whether a recording on the tune's
    arguments found none).
    """

    __slots__ = (
        "index",
        "settings",
        "status",
        "reason",
        "samples",
        "best",
        "median",
        "spread",
        "interquartile",
        "registers",
        "shared_memory_bytes",
        "spill_bytes",
        "artifact_digest",
        "race_detail",
        "race_recorded",
        "grid",
    )

    def __init__(self, record):
        self.index = int(record.get("index", 0))
        self.settings = dict(record.get("settings", {}))
        self.status = record.get("status", "")
        self.reason = record.get("reason", "")
        self.samples = [int(sample) for sample in record.get("samples_ns", ())]
        self.best = int(record.get("best_ns", 0))
        self.median = int(record.get("median_ns", 0))
        self.spread = float(record.get("spread", 0.0))
        self.interquartile = int(record.get("interquartile_ns", 0))
        self.registers = int(record.get("registers", 0))
        self.shared_memory_bytes = int(record.get("shared_memory_bytes", 0))
        self.spill_bytes = int(record.get("spill_bytes", 0))
        self.artifact_digest = record.get("artifact_digest", "")
        self.race_detail = record.get("race_detail", "")
        self.race_recorded = bool(record.get("race_recorded", False))
        grid = record.get("grid")
        self.grid = tuple(int(grid.get(side, 0)) for side in "xyz") if grid else None

    @property
    def is_timed(self):
        return self.status == "timed"

    def label(self):
        """ "BLOCK=256 UNROLL=2"."""
        return _display.settings_text(self.settings)

    def __repr__(self):
        if self.is_timed:
            return f"<variant {self.index} {self.label()}: {_display.humane(self.best)}>"
        why = _display.first_line(self.reason)
        return f"<variant {self.index} {self.label()}: {self.status}: {why}>"


class Result:
    """What a tune found. Immutable; repr() is a table, and a notebook shows it as one.

    winner (dict), time (ns, the winner's), variants (list of Variant, by index), ties (indices
    within noise of the fastest), cached (a stored Result answered), generation, split (dict, phase
    -> ns; phases overlap), kernel, key and extents (dicts), device (dict), options (dict),
    contended, stale (timed by another compiler than the present one), and what else the daemon
    recorded in `record`.
    """

    def __init__(self, record, message=b""):
        try:
            self._fill(record, message)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise argument_error(f"this is no record of a Result: {said(record)}") from None

    def _fill(self, record, message):
        # Result of proto/phobos/tuner/v1/types.proto, as client/c/phobos.h spells it in JSON, and
        # as protobuf bytes, which adopt sends.
        self.record = record
        self.message = message
        self.cached = bool(record.get("cached", False))
        self.kernel = record["kernel"]
        self.key = {name: int(value) for name, value in record.get("key", {}).items()}
        self.extents = {name: int(value) for name, value in record.get("extents", {}).items()}
        self.variants = [Variant(one) for one in record.get("variants", ())]
        self.winner = dict(record.get("winner_settings", {}))
        self.winner_index = int(record.get("winner", 0))
        self.time = int(record.get("best_ns", 0))
        self.ties = [int(index) for index in record.get("ties", ())]
        self.split = {name[:-3]: int(value) for name, value in record.get("split", {}).items()}
        self.generation = int(record.get("generation", 0))
        self.contended = bool(record.get("contended", False))
        self.stale = bool(record.get("stale", False))
        self.device = dict(record.get("device", {}))
        self.options = dict(record.get("options", {}))

    def table(self, sort="time", limit=32):
        """The Result as text. sort: "time" or "index"; limit: variants shown, None for all."""
        return _display.table(self, sort, limit)

    def plot(self):
        """Draws all samples: a matplotlib figure where that is installed, else bars as text."""
        return _display.plot(self)

    def to_json(self):
        """The whole Result as text; Result.from_json reads it again."""
        import base64
        import json

        message = base64.b64encode(self.message).decode()
        return json.dumps({"phobos_result": 1, "result": self.record, "message": message}, indent=1)

    @classmethod
    def from_json(cls, text):
        """A Result from the text of to_json. Raises ArgumentError when it is not such a text."""
        import base64
        import json

        try:
            outer = json.loads(text)
            if outer["phobos_result"] == 1:
                return cls(outer["result"], base64.b64decode(outer["message"]))
        except (KeyError, TypeError, ValueError, RecursionError):
            pass
        raise argument_error(
            f"this is no Result: {said(text)}",
            remedy="Give the text that Result.to_json() of this version wrote.",
        )

    def __eq__(self, other):
        return isinstance(other, Result) and self.record == other.record

    __hash__ = None

    def __repr__(self):
        return self.table()

    def _repr_html_(self):
        return _display.html(self)
