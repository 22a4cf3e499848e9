# SPDX-License-Identifier: Apache-2.0
"""Results as values, as tables, as text; and the progress line."""

import copy
import io
import os
import unittest
from contextlib import redirect_stdout
from unittest import mock

import fake
import phobos.lang as ph
from phobos import _display, _progress


def result(**changes):
    return ph.Result({**copy.deepcopy(fake.RESULT), **changes}, b"\x01\x02\xff")


class ResultTest(unittest.TestCase):
    def test_fields(self):
        r = result()
        self.assertEqual(r.winner, {"BLOCK": 512})
        self.assertEqual((r.time, r.generation, r.cached), (8120000, 3, False))
        self.assertEqual((r.key, r.extents), ({"N": 16777216}, {"N": 16777216}))
        self.assertEqual([v.status for v in r.variants], ["timed", "timed", "wrong_result"])
        self.assertEqual(r.variants[0].samples, [9100000, 9000000, 9900000])
        self.assertEqual((r.variants[0].best, r.variants[0].median), (9000000, 9100000))
        self.assertEqual((r.variants[0].spread, r.variants[0].interquartile), (0.1, 400000))
        self.assertEqual(r.variants[0].grid, (65536, 1, 1))
        self.assertEqual(r.variants[2].reason.splitlines()[0], "out[3]: got 1, want 2")
        self.assertEqual(r.split["compile"], 8000000)

    def test_json_brings_back_an_equal_result(self):
        again = ph.Result.from_json(result().to_json())
        self.assertEqual(again, result())
        self.assertEqual(again.message, b"\x01\x02\xff")
        self.assertNotEqual(again, result(generation=4))
        for text in ("[]", '{"phobos_result": 2}', "[" * 100000):
            with self.assertRaises(ph.ArgumentError):
                ph.Result.from_json(text)

    def test_table(self):
        self.assertEqual(
            repr(result()),
            "add at N=16777216 | Test CPU, 2 threads | generation 3\n   variant        best  "
            " median  spread\n*  BLOCK=512   8.12 ms  8.30 ms   3.5 %  ##############\n   BLOCK=256"
            "   9.00 ms  9.10 ms  10.0 %  ################\n   BLOCK=1024        -        -       -"
            "  wrong_result: out[3]: got 1, want 2\n* winner | best of 3 rounds | tune 903 ms:"
            " queue 40.0 us, upload 12.4 ms, compile 8.00 ms, timing 500 ms",
        )

    def test_what_to_know_of_a_result_is_in_its_heading(self):
        self.assertTrue(result(stale=True).stale)
        self.assertIn("| STALE: timed by another", repr(result(stale=True)).splitlines()[0])
        recorded = result()
        self.assertNotIn("RACES", repr(recorded))
        recorded.variants[1].race_recorded = True  # the winner
        self.assertIn("| RACES: not proved; a recording", repr(recorded).splitlines()[0])

    def test_table_by_index_with_a_limit_ties_and_contention(self):
        text = result(ties=[0, 1], contended=True, cached=True).table(sort="index", limit=1)
        self.assertIn("generation 3, cached | CONTENDED", text)
        self.assertIn("\n~  BLOCK=256", text)
        self.assertNotIn("BLOCK=512", text)
        self.assertIn("... 2 more variants", text)
        self.assertIn("~ within noise", text)
        with self.assertRaises(ValueError):
            result().table(sort="name")

    def test_columns_line_up_whatever_the_settings(self):
        record = copy.deepcopy(fake.RESULT)
        record["variants"][0]["settings"] = {"BLOCK": 4, "PRECISION": "tf32", "FAST": True}
        lines = ph.Result(record).table().splitlines()
        self.assertEqual(lines[2].index(" ms  8.30"), lines[3].index(" ms  9.10"))
        self.assertEqual(lines[2].index("#"), lines[3].index("#"))

    def test_html_escapes(self):
        record = copy.deepcopy(fake.RESULT)
        record["variants"][2]["reason"] = "<b>&"
        text = ph.Result(record)._repr_html_()
        self.assertIn("&lt;b&gt;&amp;", text)
        self.assertEqual(text.count("<tr"), 4)

    def test_plot_without_matplotlib_prints_bars(self):
        with mock.patch.dict("sys.modules", {"matplotlib": None}), redirect_stdout(
            io.StringIO()
        ) as out:
            text = result().plot()
        self.assertEqual(out.getvalue().strip("\n"), text.strip("\n"))
        lines = text.splitlines()
        self.assertTrue(lines[1].startswith("BLOCK=512") and lines[2].startswith("BLOCK=256"))
        self.assertEqual(lines[1].count("|"), 1)
        self.assertIn("9.90 ms", lines[3])

    def test_humane(self):
        for ns, text in (
            (0, "0 ns"), (999, "999 ns"), (1000, "1.00 us"), (45123, "45.1 us"),
            (999499, "999 us"), (999999, "1.00 ms"),
            (8120000, "8.12 ms"), (123456789, "123 ms"), (1500000000, "1.50 s"),
            (90e9, "90.0 s"), (4e12, "4000 s"),
        ):  # fmt: skip
            self.assertEqual(_display.humane(ns), text)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def progress(**changes):
    fields = dict(
        phase="timing",
        done=3,
        total=20,
        best_ns=8120000,
        best_settings="BLOCK=512",
        queue_position=0,
        estimate_ms=1500,
        note="",
    )
    return _progress.Progress(**{**fields, **changes})


class ProgressTest(unittest.TestCase):
    def test_line(self):
        self.assertEqual(
            _progress.line("tuning add", progress(), 200),
            "tuning add  timing  [#.........] 3 of 20  best 8.12 ms BLOCK=512  about 1.50 s left",
        )
        self.assertEqual(
            _progress.line("tuning add", progress(queue_position=2, best_ns=0, estimate_ms=0), 200),
            "tuning add  queued, 2 before it",
        )
        held_up = progress(phase="queued", total=0, best_ns=0, estimate_ms=0, note="another tunes")
        self.assertEqual(
            _progress.line("tuning add", held_up, 200), "tuning add  queued  another tunes"
        )
        self.assertIn(
            "120 of 300 ms",
            _progress.line("a", progress(phase="warm_up", done=120, total=300), 200),
        )
        self.assertEqual(len(_progress.line("tuning add", progress(), 30)), 29)

    def test_the_bar_draws_on_a_terminal_and_wipes_itself(self):
        stream = Terminal()
        with mock.patch.dict(os.environ, {"TERM": "xterm"}):
            os.environ.pop("PHOBOS_PROGRESS", None)
            with _progress.Bar("tuning add", stream) as bar:
                bar.show(progress())
                bar.show(progress(done=4))  # too soon after the last
        text = stream.getvalue()
        self.assertEqual(text.count("3 of 20"), 1)
        self.assertNotIn("4 of 20", text)
        self.assertTrue(text.endswith("\r\x1b[K"))

    def test_it_is_silent_elsewhere(self):
        for environment, stream in (
            ({"PHOBOS_PROGRESS": "0", "TERM": "xterm"}, Terminal()),
            ({"TERM": "dumb"}, Terminal()),
            ({"TERM": "xterm"}, io.StringIO()),
        ):
            with mock.patch.dict(os.environ, environment):
                with _progress.Bar("a", stream) as bar:
                    bar.show(progress())
            self.assertEqual(stream.getvalue(), "")


if __name__ == "__main__":
    unittest.main()
