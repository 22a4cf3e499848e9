# SPDX-License-Identifier: Apache-2.0
"""Launches of a kernel over the stand-in library: grids, errors, threads, forks."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
import time
import unittest
import warnings
import weakref
from unittest import mock

import numpy as np

import fake
import phobos.lang as ph
from adding import at_module_level, blocks, Case, make, scaled
from phobos import _kernel, _library

WRONG_GRIDS = (
    (), (1, 2, 3, 4), (-1,), -1, (1.5,), 1.5, "1", None, b"1", {4}, object(), float("nan"),
    np.array([1.0]), np.ones((1, 1), int), lambda meta: None, lambda meta: 0.5,
    (1 << 70,),
)  # fmt: skip
REASONS = (
    "bad_source", "unknown_kernel", "bad_argument", "no_winner", "no_device", "out_of_memory", "timeout",
    "reference_failed", "cancelled", "not_permitted", "draining", "limit", "race", "machine",
)  # fmt: skip
TOO_LARGE_GRIDS = 1 << 31, (1, 1 << 16), (1, 1, 1 << 16)


class LaunchTest(Case):
    def test_arguments_and_grid_reach_the_library(self):
        make()[blocks](self.x, self.out, 0.5)
        self.assertEqual(fake.values(3), [self.x.ctypes.data, self.out.ctypes.data, 0x3F000000])
        self.assertEqual(fake.grid(), (4, 1, 1))

    def test_grids_of_every_form(self):
        add = make()
        for grid, sides in (
            ((4,), (4, 1, 1)), ((2, 3), (2, 3, 1)), ((2, 3, 4), (2, 3, 4)), (5, (5, 1, 1)),
            ([6], (6, 1, 1)), (np.array([6, 2]), (6, 2, 1)), (np.array(6), (6, 1, 1)),
            ((np.int64(7),), (7, 1, 1)), (lambda meta: meta["BLOCK"], (256, 1, 1)),
        ):  # fmt: skip
            for _ in range(2):  # first the slow way, then the fast one
                add[grid](self.x, self.out, 0.5)
                self.assertEqual(fake.grid(), sides)
        for grid in WRONG_GRIDS:
            with self.assertRaisesRegex(ph.ArgumentError, "^add: (a|the) grid "):
                add[grid](self.x, self.out, 0.5)

    def test_a_grid_that_no_variant_can_take_asks_nothing(self):
        add = make(scaled)
        for grid in WRONG_GRIDS + TOO_LARGE_GRIDS:
            with self.assertRaisesRegex(ph.ArgumentError, "^add: (a|the) grid "):
                add[grid](self.x, self.out, 0.5)
            with self.assertRaisesRegex(ph.ArgumentError, "^add: (a|the) grid "):
                add.tune(grid, self.x, self.out, 0.5)
        self.assertEqual(fake.counts(), {"launches": 0, "prepares": 0, "tunes": 0})
        with self.assertRaisesRegex(
            ph.ArgumentError, r"add\[\(64,\)\]\(.*function of the constants"
        ):
            add.tune(0.5, self.x, self.out, 0.5)

    def test_a_name_that_meta_lacks_is_told_with_those_it_has(self):
        with self.assertRaisesRegex(KeyError, "'M' is no constant or extent; there are BLOCK, N"):
            make(scaled).tune(lambda meta: meta["M"], self.x, self.out, 0.5)

    def test_meta_is_read_only_and_has_constants_and_extents(self):
        seen = []
        make()[lambda meta: seen.append(meta) or 1](self.x, self.out, 0.5)
        self.assertEqual(dict(seen[0]), {"BLOCK": 256, "N": 1024})
        with self.assertRaises(TypeError):
            seen[0]["BLOCK"] = 1

    def test_later_launches_ask_nobody(self):
        add = make()
        for _ in range(3):
            add[blocks](self.x, self.out, 0.5)
            add[blocks](self.x.copy(), out=self.out, alpha=0.5)
        self.assertEqual((fake.counts()["launches"], fake.counts()["prepares"]), (6, 1))
        small = np.zeros(7, np.float32)
        add[blocks](small, small.copy(), 0.5)
        self.assertEqual(fake.counts()["prepares"], 2)

    def test_the_fast_path_accepts_nothing_that_the_slow_one_refuses(self):
        add = make()
        add[blocks](self.x, self.out, 0.5)
        read_only = self.out.copy()
        read_only.flags.writeable = False
        twice = np.zeros(2048, np.float32)
        for arguments in (
            (self.x.astype(np.int32), self.out, 0.5), (twice[::2], self.out, 0.5),
            (self.x, read_only, 0.5),
            (self.x, self.out, "1"), (self.x, self.out, 1e39), (self.x, self.out),
            (self.x, self.out, 1, 2),
            (self.x.reshape(32, 32), self.out, 1), (self.x.astype(">f4"), self.out, 1),
            (None, self.out, 1), (np.ma.array(self.x), self.out, 1),
            (self.x, np.ma.array(self.out), 1),
        ):  # fmt: skip
            with self.assertRaises(ph.ArgumentError):
                add[blocks](*arguments)
        with self.assertRaises(ph.ArgumentError):
            add[blocks](self.x, self.out, 0.5, stream=1)
        self.assertEqual(fake.counts()["launches"], 1)

    def test_buffers_launch_too(self):
        import array

        x, out = array.array("f", [1, 2, 3]), array.array("f", [0, 0, 0])
        add = make()
        for _ in range(2):
            add[blocks](x, out, 0.5)
            self.assertEqual(fake.values(2), [x.buffer_info()[0], out.buffer_info()[0]])
        self.assertEqual(fake.counts()["prepares"], 1)

    def test_an_empty_grid_launches_and_asks_nothing(self):
        empty = np.zeros(0, np.float32)
        add = make(scaled)
        add[blocks](empty, empty.copy(), 0.5)
        self.assertEqual(fake.counts(), {"launches": 0, "prepares": 0, "tunes": 0})
        with self.assertRaisesRegex(ph.TuneError, "nothing to tune"):
            add.tune(blocks, empty, empty.copy(), 0.5)

    def test_a_plan_out_of_date_is_asked_for_again(self):
        add = make()
        add[blocks](self.x, self.out, 0.5)
        fake.number("look_again", 1)
        add[blocks](self.x, self.out, 0.5)
        self.assertEqual((fake.counts()["launches"], fake.counts()["prepares"]), (2, 2))
        fake.number("look_again", 100)
        with self.assertRaisesRegex(ph.LaunchError, "again and again"):
            add[blocks](self.x, self.out, 0.5)

    def test_a_refused_launch_raises_with_all_it_knows(self):
        add = make()
        add[blocks](self.x, self.out, 0.5)
        fake.fail("launch", 3, "bad_argument", "out overlaps x", "Use another array.")
        with self.assertRaises(ph.ArgumentError) as caught:
            add[blocks](self.x, self.out, 0.5)
        error = caught.exception
        self.assertEqual(
            (error.kernel, error.key, error.reason, error.remedy),
            ("add", "N=7", "bad_argument", "Use another array."),
        )
        self.assertIn("out overlaps x", str(error))

    def test_codes_and_reasons_choose_the_exception(self):
        for code, reason, kind in (
            (3, "bad_source", ph.KernelSourceError), (5, "unknown_kernel", ph.KernelSourceError),
            (9, "no_winner", ph.TuneError), (9, "race", ph.LaunchError),
            (14, "", ph.DaemonError), (7, "", ph.DaemonError),
            (8, "out_of_memory", ph.TuneError), (4, "timeout", ph.TuneCancelledError),
            (12, "", ph.UnsupportedError), (1, "", ph.TuneCancelledError), (4, "", ph.TuneCancelledError),
            (5, "", ph.DaemonError), (8, "", ph.DaemonError), (14, "machine", ph.DaemonError),
            *((code, "", ph.DaemonError) for code in (2, 6, 10, 11, 13, 15)),
            (3, "99", ph.ArgumentError), (13, "99", ph.DaemonError),
            (3, "", ph.ArgumentError), (9, "", ph.LaunchError), (9, "reference_failed", ph.ReferenceFailedError),
        ):  # fmt: skip
            fake.fail("prepare", code, reason)
            with self.assertRaises(ph.PhobosError) as caught:
                make()[blocks](self.x, self.out, 0.5)
            self.assertIs(type(caught.exception), kind, (code, reason))
            said = {
                1: "cancelled", 3: "bad_argument", 4: "timeout", 5: "not_found", 7: "not_permitted",
                8: "limit", 9: "refused", 12: "unsupported", 14: "no_daemon",
            }  # fmt: skip
            self.assertEqual(caught.exception.reason, reason or said.get(code, "internal"))

    def test_every_refusal_of_the_library_has_a_reason_and_a_remedy(self):
        add = make(scaled)
        add[blocks](self.x, self.out, 0.5)
        result = add.tune(blocks, self.x, self.out, 0.5)
        calls = (
            ("launch", lambda: add[blocks](self.x, self.out, 0.5)),
            ("prepare", lambda: make()[blocks](self.x, self.out, 0.5)),
            ("tune", lambda: add.tune(blocks, self.x, self.out, 0.5)),
            ("warm", lambda: add.warm(blocks, self.x, self.out, 0.5)),
            ("result", lambda: add.result(N=7)),
            ("adopt", lambda: add.adopt(result)),
        )
        for function, call in calls:
            for code in range(1, 16):
                for reason in ("", "unspecified", *REASONS, "99"):
                    fake.fail(function, code, reason)
                    with self.subTest(function, code=code, reason=reason):
                        with self.assertRaises(ph.PhobosError) as caught:
                            call()
                        error = caught.exception
                        self.assertNotIn(error.reason, ("", "unspecified"))
                        self.assertRegex(error.remedy, r"^[A-Z].*\.$")
                        self.assertNotIn(error.remedy, str(error))  # only one's own is shown

    def test_a_grid_that_raises_is_the_caller_s_own_exception(self):
        def grid(meta):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            make()[grid](self.x, self.out, 0.5)

    def test_a_call_without_a_grid(self):
        with self.assertRaisesRegex(ph.ArgumentError, r"Write add\[grid\]"):
            make()(self.x, self.out, 0.5)
        for call in (make().tune, make().warm):
            with self.assertRaisesRegex(ph.ArgumentError, r"the grid is missing.*\nWrite add.tune"):
                call()
        # It was forgotten, and the first array has its place.
        for call in (make().tune, make().warm):
            for given, named in (((self.x, self.out, 0.5), {}), ((self.x, self.out), {"alpha": 0.5})):
                with self.assertRaisesRegex(ph.ArgumentError, "the grid is missing"):
                    call(*given, **named)
        with self.assertRaisesRegex(ph.ArgumentError, "lacks "):
            make().tune(blocks, self.x, self.out)

    def test_a_name_that_is_no_option_of_a_tune(self):
        options = "reference, rtol, atol, flush_l2, stream"
        for call, wanted in ((make().tune, options + ", force"), (make().warm, options)):
            with self.assertRaisesRegex(
                ph.ArgumentError, f"no parameter and no option 'forced'; .* x, .*and the options {wanted}$"
            ):
                call(blocks, self.x, self.out, 0.5, forced=True)

    def test_a_masked_array_is_refused_by_name(self):
        masked = np.ma.array(self.x, mask=self.x > 0)
        with self.assertRaisesRegex(ph.ArgumentError, r"(?s)x is a masked array.*x\.filled\(value\)"):
            make()[blocks](masked, self.out, 0.5)

    def test_notes_of_the_library_are_warnings(self):
        add = make()
        add._described()
        fake.warn("add: not proved free of races")
        with self.assertWarnsRegex(ph.PhobosWarning, "not proved free of races") as caught:
            add[blocks](self.x, self.out, 0.5)
        self.assertEqual(caught.filename, __file__)

    def test_many_sizes_do_not_fill_the_memory(self):
        add = make()
        with mock.patch.object(_kernel, "_PLANS", 8):
            for n in range(1, 40):
                x = np.zeros(n, np.float32)
                add[blocks](x, x.copy(), 0.5)
                add[blocks](x, x.copy(), 0.5)
        self.assertEqual((fake.counts()["launches"], fake.counts()["prepares"]), (78, 39))
        self.assertLessEqual(max(len(add._plans), len(add._known), len(add._turns)), 8)

    def test_a_kernel_is_pickled_by_name(self):
        self.assertIs(pickle.loads(pickle.dumps(at_module_level)), at_module_level)

    def test_a_kernel_can_be_collected(self):
        add = make()
        add[blocks](self.x, self.out, 0.5)
        ghost = weakref.ref(add)
        del add
        gc.collect()
        self.assertIsNone(ghost())


class SharingTest(Case):
    def test_threads_prepare_a_plan_once(self):
        def reference(x, out, alpha):
            time.sleep(0.05)
            return {"out": x}

        add = make(reference)
        failures = []

        def launch():
            try:
                for _ in range(50):
                    add[blocks](self.x, self.out, 0.5)
            except BaseException as error:
                failures.append(error)

        with self.quiet():
            threads = [threading.Thread(target=launch) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(fake.counts()["prepares"], 1)

    def test_a_child_forked_while_another_thread_prepares_goes_on(self):
        inside, leave = threading.Event(), threading.Event()

        def reference(x, out, alpha):
            inside.set()
            leave.wait(20)
            return {"out": x}

        add = make(reference)

        def launch():
            with self.quiet():
                add[blocks](self.x, self.out, 0.5)

        thread = threading.Thread(target=launch)
        thread.start()
        inside.wait(20)
        child = os.fork()
        if child == 0:
            leave.set()
            signal.alarm(20)
            add.reference = None
            add[blocks](self.x, self.out, 0.5)
            os._exit(0)
        leave.set()
        thread.join()
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class LibraryTest(unittest.TestCase):
    def test_a_missing_library_says_how_to_get_one(self):
        with self.assertRaises(ph.DaemonError) as caught:
            _library.Library("/nowhere/libphobos.so", None)
        self.assertIn("cannot load /nowhere/libphobos.so", str(caught.exception))
        self.assertIn("PHOBOS_LIBRARY", caught.exception.remedy)
        with self.assertRaisesRegex(ph.DaemonError, "libc.so.6 is not the library of this package"):
            _library.Library("libc.so.6", None)


if __name__ == "__main__":
    warnings.simplefilter("error", ph.PhobosWarning)
    unittest.main()
