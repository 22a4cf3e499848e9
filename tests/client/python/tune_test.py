# SPDX-License-Identifier: Apache-2.0
"""Tunes of a kernel over the stand-in library: references, listeners, what is shown, interrupts."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import tempfile
import threading
import time
import unittest
import warnings
from concurrent import futures
from unittest import mock

import numpy as np

import fake
import phobos.lang as ph
from adding import blocks, Case, make, scaled
from phobos import _library

DECLINED = {
    "status": "grid_error",
    "reason": "ValueError: no",
    "settings": {"BLOCK": 256},
    "index": 0,
}

KERNEL_FILE = """\
from __future__ import annotations
import phobos.lang as ph

@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[256, 512])
def add(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N], alpha: ph.f32):
    out[ph.ctx.block.x * BLOCK : +BLOCK] = alpha * x[ph.ctx.block.x * BLOCK : +BLOCK]
"""


class TuneTest(Case):
    def test_a_launch_with_a_reference_tunes_once(self):
        seen = []

        def reference(x, out, alpha):
            seen.append((x.copy(), out.dtype, alpha))
            x[:] = 0  # may be changed
            return {"out": np.full_like(out, 3)}

        add = make(reference)
        add._described()
        fake.warn("add: left out BLOCK=1024: wrong_result: out[3]: got 1, want 2")
        with contextlib.redirect_stderr(io.StringIO()) as err:
            add[blocks](self.x, self.out, 0.5)
            add[blocks](self.x, self.out, 0.5)
        self.assertEqual(len(seen), 1)
        np.testing.assert_array_equal(seen[0][0], np.arange(1024, dtype=np.float32))
        np.testing.assert_array_equal(self.x, np.arange(1024, dtype=np.float32))
        self.assertEqual((seen[0][1], seen[0][2], type(seen[0][2])), (np.float32, 0.5, np.float32))
        self.assertEqual(fake.expected_names(), ["out"])
        self.assertEqual(fake.expected_bytes(4096), np.full(1024, 3, np.float32).tobytes())
        self.assertEqual(
            err.getvalue(),
            "phobos: add: left out BLOCK=1024: wrong_result: out[3]: got 1, want 2\n",
        )

    def test_tune_gives_the_result_and_passes_the_options(self):
        add = make(rtol=1e-3, flush_l2=False)
        result = add.tune(
            blocks, self.x, self.out, alpha=0.5, reference=scaled, atol=0.25, force=True
        )
        self.assertEqual((result.winner, result.cached), ({"BLOCK": 512}, False))
        self.assertEqual(self.last()[:5], (1, 1024, 1, True, 3))
        self.assertEqual(self.last()[5:], (1e-3, 0.25))
        add.tune(blocks, self.x, self.out, 0.5, reference=scaled, rtol=0.5, flush_l2=True)
        self.assertEqual(self.last()[2:4] + self.last()[5:], (0, False, 0.5, None))

    def last(self):
        """What the request of the last call said: (extents, first, no flush, force, values, rtol,
        atol).
        """
        import ctypes

        fake._functions.fake_request.restype = ctypes.POINTER(_library.TuneRequest)
        said = fake._functions.fake_request().contents
        tolerance = [
            pointer.contents.value if pointer else None for pointer in (said.rtol, said.atol)
        ]
        first = ctypes.cast(said.extents, ctypes.POINTER(ctypes.c_int64))[0]
        return (
            said.extent_count,
            first,
            said.no_flush_l2,
            bool(said.force),
            said.value_count,
            *tolerance,
        )

    def test_tune_needs_a_reference(self):
        with self.assertRaisesRegex(ph.TuneError, "no reference"):
            make().tune(blocks, self.x, self.out, 0.5)

    def test_a_reference_that_raises_is_the_cause(self):
        def reference(x, out, alpha):
            return 1 // 0

        with self.assertRaises(ph.ReferenceFailedError) as caught:
            make().tune(blocks, self.x, self.out, 0.5, reference=reference)
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)
        self.assertIn("the reference raised ZeroDivisionError", str(caught.exception))
        self.assertIn("ZeroDivisionError", fake.reference_error())

    def test_an_exception_that_cannot_be_shown_is_named(self):
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError("no str")

        def reference(x, out, alpha):
            raise Mute

        with self.assertRaisesRegex(ph.ReferenceFailedError, "the reference raised Mute"):
            make().tune(blocks, self.x, self.out, 0.5, reference=reference)

    def test_a_wrong_answer_of_the_reference_says_what_is_wrong(self):
        with self.assertRaisesRegex(ph.ReferenceFailedError, r"out has shape \(3,\)") as caught:
            make().tune(
                blocks, self.x, self.out, 0.5, reference=lambda x, out, alpha: {"out": x[:3]}
            )
        self.assertIsNone(caught.exception.__cause__)  # it would say the same again
        with self.assertRaisesRegex(ph.ReferenceFailedError, "takes 0 positional arguments"):
            make().tune(blocks, self.x, self.out, 0.5, reference=lambda: {})

    def test_a_grid_that_raises_costs_its_variants(self):
        def grid(meta):
            if meta["BLOCK"] == 256:
                raise ValueError("no")
            return 1

        make().tune(grid, self.x, self.out, 0.5, reference=scaled)
        self.assertEqual(fake.grid_errors(), ["ValueError: no"])

    def test_a_reference_that_waits_for_a_launch_of_its_own_kernel_is_told(self):
        def in_a_thread(launch):
            raised = []

            def catching():
                try:
                    launch()
                except ph.PhobosError as error:
                    raised.append(error)

            thread = threading.Thread(target=catching)
            thread.start()
            thread.join()
            raise raised[0]

        def in_a_pool(launch):
            with futures.ThreadPoolExecutor(1) as pool:
                pool.submit(launch).result()

        def by_way_of_another(launch):
            in_a_thread(lambda: in_a_pool(launch))

        for run in (in_a_thread, in_a_pool, by_way_of_another, lambda launch: launch()):

            def reference(x, out, alpha):
                run(lambda: add[blocks](self.x, self.out, 0.5))

            add = make(reference)
            with self.assertRaises(ph.ReferenceFailedError) as caught:
                add[blocks](self.x, self.out, 0.5)
            self.assertIn("launch", str(caught.exception.__cause__))
            self.assertIn("Compute the reference", str(caught.exception.__cause__))

    def test_another_thread_s_launch_waits_for_a_slow_reference(self):
        def reference(x, out, alpha):
            entered.set()
            with futures.ThreadPoolExecutor(1) as pool:  # busy with something else
                pool.submit(time.sleep, 0.6).result()
            return {"out": alpha * x}

        entered, add = threading.Event(), make(reference)
        with futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(add[blocks], self.x, self.out, 0.5)
            self.assertTrue(entered.wait(5))
            add[blocks](self.x, self.out, 0.5)
            first.result()
        self.assertEqual(fake.counts()["launches"], 2)

    def test_variants_left_out_for_one_reason_share_a_line(self):
        declined = [{**DECLINED, "index": i, "settings": {"BLOCK": i}} for i in range(6)]
        fake.fail("tune", 9, "no_winner", "no variant passed", variants=declined)
        with self.assertRaisesRegex(
            ph.TuneError, "\n  BLOCK=0, BLOCK=1, BLOCK=2 and 3 more: grid_error: ValueError: no$"
        ):
            make().tune(blocks, self.x, self.out, 0.5, reference=scaled)

    def test_no_winner_lists_every_variant_and_chains_the_grid_s_exception(self):
        def grid(meta):
            if meta["BLOCK"] == 256:
                raise ValueError("no")
            return 1

        fake.fail("tune", 9, "no_winner", "no variant passed", variants=[DECLINED])
        fake.number("reference_runs", 0)
        with self.assertRaises(ph.TuneError) as caught:
            make().tune(grid, self.x, self.out, 0.5, reference=scaled)
        self.assertEqual(caught.exception.variants[0].status, "grid_error")
        self.assertIn("BLOCK=256: grid_error: ValueError: no", str(caught.exception))

    def test_listeners_hear_of_tunes_but_not_of_stored_results(self):
        heard = []
        stop = ph.on_tune(heard.append)
        add = make()
        result = add.tune(blocks, self.x, self.out, 0.5, reference=scaled)
        fake.result({**fake.RESULT, "cached": True})
        self.assertTrue(add.tune(blocks, self.x, self.out, 0.5, reference=scaled).cached)
        self.assertEqual(heard, [result])
        stop()
        fake.result(fake.RESULT)
        add.tune(blocks, self.x, self.out, 0.5, reference=scaled)
        self.assertEqual(len(heard), 1)

    def test_what_a_listener_raises_is_a_warning(self):
        heard = []
        self.addCleanup(ph.on_tune(lambda result: 1 // 0))
        self.addCleanup(ph.on_tune(heard.append))
        with self.assertWarnsRegex(ph.PhobosWarning, "on_tune raised:(.|\n)*ZeroDivision") as told:
            result = make().tune(blocks, self.x, self.out, 0.5, reference=scaled)
        self.assertEqual(told.filename, __file__)
        self.assertEqual(heard, [result])

        def leaves(result):
            raise SystemExit(3)

        self.addCleanup(ph.on_tune(leaves))
        with self.assertRaises(SystemExit), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make().tune(blocks, self.x, self.out, 0.5, reference=scaled)

    def test_a_folder_whose_name_is_no_utf8(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.fsdecode(os.path.join(os.fsencode(folder), b"\xff.py"))
            with open(path, "w") as file:
                file.write(KERNEL_FILE)
            names = {"__name__": "odd"}
            exec(compile(KERNEL_FILE, path, "exec"), names)
            names["add"][blocks](self.x, self.out, 0.5)
        self.assertEqual(fake.counts()["launches"], 1)

    def test_a_listener_may_launch_what_was_tuned(self):
        add, heard = make(scaled), []

        def listener(result):
            heard.append(result)
            add[blocks](self.x, self.out, 0.5)

        signal.alarm(20)  # a deadlock ends the test
        self.addCleanup(signal.alarm, 0)
        self.addCleanup(ph.on_tune(listener))
        add[blocks](self.x, self.out, 0.5)
        self.assertEqual((len(heard), fake.counts()["launches"]), (1, 2))
        self.assertEqual(fake.counts()["prepares"], 1)

    def test_a_reference_that_launches_its_own_kernel_is_told_so(self):
        def reference(x, out, alpha):
            add[blocks](self.x, self.out, 0.5)
            return {"out": x}

        add = make(reference)
        signal.alarm(20)  # a deadlock ends the test
        self.addCleanup(signal.alarm, 0)
        for _ in range(2):
            with self.assertRaises(ph.PhobosError) as caught:
                add[blocks](self.x, self.out, 0.5)
            self.assertIsInstance(caught.exception.__cause__, ph.LaunchError)
            self.assertIn("launched it at the same extents", str(caught.exception.__cause__))
        self.assertEqual(len(add._turns), 0)

    def test_handles_are_freed_whatever_is_raised(self):
        add = make(scaled)
        add._described()
        library = _library.library()
        freed = []
        with contextlib.ExitStack() as stack:
            for name in ("free_plan", "free_result"):
                real = getattr(library, name)
                stack.enter_context(mock.patch.object(
                    library, name, lambda handle, real=real, name=name: (
                        freed.append(name), real(handle))
                ))  # fmt: skip
            with mock.patch.object(library, "take_text", side_effect=MemoryError):
                with self.assertRaises(MemoryError):
                    add[blocks](self.x, self.out, 0.5)
                with self.assertRaises(MemoryError):
                    add.tune(blocks, self.x, self.out, 0.5)
            gc.collect()
        self.assertEqual(sorted(freed), ["free_plan", "free_result", "free_result"])

    def test_result_by_key(self):
        add = make()
        self.assertEqual(add.result(N=7).winner, {"BLOCK": 512})
        self.assertIsNone(add.result(N=8))
        with self.assertRaisesRegex(ph.ArgumentError, "'N' is missing"):
            add.result()
        with self.assertRaisesRegex(ph.ArgumentError, "'M' is no extent"):
            add.result(M=7, N=7)

    def test_warm_and_adopt(self):
        add = make()
        self.assertIsNone(add.warm(blocks, self.x, self.out, 0.5, reference=scaled))
        fake.fail("adopt", 12, "", "not in this version")
        with self.assertRaisesRegex(ph.UnsupportedError, "not in this version"):
            add.adopt(ph.Result(fake.RESULT, b"1234"))


class TerminalTest(Case):
    def test_a_tune_draws_a_line_and_wipes_it(self):
        fake.number("ticks", 3)
        ours, theirs = os.openpty()
        with open(theirs, "w") as terminal, contextlib.redirect_stderr(terminal):
            with mock.patch.dict(os.environ, {"TERM": "xterm", "PHOBOS_PROGRESS": "1"}):
                make().tune(blocks, self.x, self.out, 0.5, reference=scaled)
        drawn = b""
        with contextlib.suppress(OSError):  # the end of a terminal that is closed
            while part := os.read(ours, 4096):
                drawn += part
        drawn = drawn.decode()
        os.close(ours)
        self.assertIn(
            "tuning add N=1024  timing  [..........] 0 of 3  held up  best 8.10 ms BLOCK=512",
            drawn,
        )
        self.assertTrue(drawn.endswith("\r\x1b[K"))


class InterruptTest(Case):
    def test_ctrl_c_during_a_tune_cancels_it_and_is_raised_once_it_ended(self):
        fake.number("ticks", 1000)
        sent = []

        def reference(x, out, alpha):
            threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            sent.append(1)
            return {"out": x}

        fake.number("ticks", 2**31 - 1)
        before = signal.getsignal(signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            make().tune(blocks, self.x, self.out, 0.5, reference=reference)
        self.assertEqual(sent, [1])
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    def test_ctrl_c_inside_the_reference_is_prompt(self):
        def reference(x, out, alpha):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)

        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            make().tune(blocks, self.x, self.out, 0.5, reference=reference)
        self.assertLess(time.monotonic() - began, 5)

    def test_who_gives_up_waiting_leaves_the_turn_to_the_others(self):
        began, go_on = threading.Event(), threading.Event()

        def reference(x, out, alpha):
            began.set()
            go_on.wait(20)
            return {"out": x}

        add = make(reference)
        first = threading.Thread(target=lambda: add[blocks](self.x, self.out, 0.5))
        first.start()
        try:
            self.assertTrue(began.wait(20))
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            with self.assertRaises(KeyboardInterrupt):
                add[blocks](self.x, self.out, 0.5)
            self.assertEqual(len(add._turns), 1)
        finally:
            go_on.set()
            first.join()
        self.assertEqual(len(add._turns), 0)

    def test_a_program_s_own_handler_is_called(self):
        calls = []
        before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
        try:
            fake.number("ticks", 2**31 - 1)
            ended = threading.Event()

            def press():  # again and again: the first may come before the tune began
                while not ended.wait(0.05):
                    os.kill(os.getpid(), signal.SIGINT)

            thread = threading.Thread(target=press)
            thread.start()
            with self.assertRaises(ph.TuneCancelledError):
                make().tune(blocks, self.x, self.out, 0.5, reference=scaled)
        finally:
            ended.set()
            thread.join()
            signal.signal(signal.SIGINT, before)
        self.assertEqual(set(calls), {signal.SIGINT})

    def test_system_exit_in_a_reference_ends_the_tune(self):
        def reference(x, out, alpha):
            raise SystemExit(3)

        with self.assertRaises(SystemExit):
            make().tune(blocks, self.x, self.out, 0.5, reference=reference)


if __name__ == "__main__":
    warnings.simplefilter("error", ph.PhobosWarning)
    unittest.main()
