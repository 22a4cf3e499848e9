# SPDX-License-Identifier: Apache-2.0
"""The requirements, through the Python package, against a daemon of each test's own."""

import os
import signal
import time
import unittest

from tuner import Tuner, finish, wait_until

QUICK = ("--rounds=3", "--warm-up=5ms")


class Case(unittest.TestCase):
    flags = QUICK

    def setUp(self):
        self.tuner = Tuner(*self.flags)
        self.addCleanup(self.tuner.close)

    def run_program(self, text, **environment):
        """What the program left, which must have ended well."""
        ended = self.tuner.run(text, **environment)
        self.assertEqual(ended.status, 0, ended)
        return ended


class AsPromisedTest(Case):
    flags = ()  # rounds and warm-up as documented

    def test_the_example_tunes_then_launches_and_the_next_process_only_launches(self):
        text = """
            x, y, out = arrays(1 << 20)
            tunes = []
            ph.on_tune(tunes.append)
            add[lambda meta: (-(-meta["N"] // meta["BLOCK"]),)](x, y, out)
            assert np.array_equal(out, x + y)
            found = add.result(N=1 << 20)
            say(
                tunes=len(tunes), winner=found.winner, generation=found.generation, time=found.time,
                record=found.record, table=repr(found),
                variants=[
                    [v.settings["BLOCK"], v.status, len(v.samples), v.best, v.median, v.spread,
                    v.reason] for v in found.variants
                ],
            )
            """
        first = self.run_program(text)
        self.assertEqual((first.tunes, first.generation), (1, 1))
        self.assertEqual([v[0] for v in first.variants], [256, 512, 1024, 2048, 4096])
        for _, status, samples, best, median, spread, reason in first.variants:
            self.assertEqual((status, samples, reason), ("timed", 20, ""))
            self.assertTrue(0 < best <= median)
            self.assertGreaterEqual(spread, 0)
        self.assertEqual(first.time, min(v[3] for v in first.variants))
        self.assertEqual(
            [v[0] for v in first.variants if v[3] == first.time][0], first.winner["BLOCK"]
        )
        self.assertGreaterEqual(first.record["split"]["warm_up_ns"], 300e6)
        self.assertIn("add at N=1048576", first.table)

        second = self.run_program(text)
        self.assertEqual(second.tunes, 0)
        second.record.pop("cached", None)
        first.record.pop("cached", None)
        self.assertEqual(second.record, first.record)


class SpaceTest(Case):
    def blocks(self, name):
        ended = self.run_program(f"""
            x, y, out = arrays(5000)
            result = {name}.tune(grid, x, y, out)
            say(blocks=[v.settings["BLOCK"] for v in result.variants])
            """)
        return ended.blocks

    def test_two_increasing_values_double_anything_else_is_a_list(self):
        self.assertEqual(self.blocks("add"), [256, 512, 1024, 2048, 4096])
        self.assertEqual(self.blocks("three"), [256, 1024, 4096])
        self.assertEqual(self.blocks("decreasing"), [4096, 256])


class LaunchTest(Case):
    def test_without_a_reference_a_launch_takes_first_choices_until_tune_ran(self):
        ended = self.run_program("""
            x, y, out = arrays(5000)
            plain[grid](x, y, out)
            first = float(out[0] - (x + y)[0])
            before = plain.result(N=5000)
            result = plain.tune(grid, x, y, out, reference=reference)
            untouched = float(out[0] - (x + y)[0])
            plain[grid](x, y, out)
            say(
                first=first, before=before is None, untouched=untouched, winner=result.winner,
                then=bool(np.array_equal(out, x + y)), statuses=[v.status for v in result.variants],
                reason=result.variants[0].reason,
            )
            """)
        self.assertEqual((ended.first, ended.before, ended.untouched), (1.0, True, 1.0))
        self.assertEqual(ended.winner, {"BLOCK": 1024, "WRONG_BY": 0.0})
        self.assertTrue(ended.then)
        self.assertEqual(ended.statuses, ["wrong_result", "timed"])
        self.assertIn("out", ended.reason)

    def test_first_choices_give_way_to_a_winner_that_another_process_found(self):
        ended = self.run_program("""
            import subprocess
            x, y, out = arrays(5000)
            plain[grid](x, y, out)
            first = float(out[0] - (x + y)[0])
            child = os.fork()
            if child == 0:
                plain.tune(grid, x, y, out, reference=reference)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            end = time.monotonic() + 10
            while not np.array_equal(out, x + y) and time.monotonic() < end:
                plain[grid](x, y, out)
            say(first=first, right=bool(np.array_equal(out, x + y)))
            """)
        self.assertEqual((ended.first, ended.right), (1.0, True))

    def test_another_value_of_the_key_tunes_again_and_compiles_nothing(self):
        text = """
            x, y, out = arrays(int(sys.argv[1]) if len(sys.argv) > 1 else N)
            tunes = []
            ph.on_tune(tunes.append)
            add[grid](x, y, out)
            say(tunes=len(tunes), compiling=tunes[0].split.get("compile", 0), key=tunes[0].key)
            """
        first = self.run_program(text.replace("N)", "5000)", 1))
        compiled = self.tuner.artifacts()
        self.assertGreaterEqual(len(compiled), 5)
        second = self.run_program(text.replace("N)", "7001)", 1))
        self.assertEqual((first.key, second.key), ({"N": 5000}, {"N": 7001}))
        self.assertEqual(self.tuner.artifacts(), compiled)
        self.assertLess(second.compiling, first.compiling)

    def test_sizes_around_the_tiles_and_none(self):
        text = """
            for n in {sizes}:
                x, y, out = arrays(n)
                add[grid](x, y, out)
                assert np.array_equal(out, x + y), n
            assert add.result(N=0) is None
            """
        sizes = (0, 1, 7, 255, 256, 257, 4093, 4096, 4097)
        self.run_program(text.format(sizes=sizes), PHOBOS_TUNE="off")
        self.run_program(text.format(sizes=(0, 1, 257)))

    def test_left_out_variants_are_told_once(self):
        text = """
            x, y, out = arrays(5000)
            checked[grid](x, y, out)
            checked[grid](x, y, out)
            assert np.array_equal(out, x + y)
            """
        first, second = self.run_program(text), self.run_program(text)
        self.assertEqual(first.err.count("left out"), 1, first)
        self.assertRegex(first.err, r"phobos: checked: left out .*WRONG_BY=1.0: wrong_result: out\[0\]")
        self.assertEqual(second.err, "")

    def test_no_variant_left_is_an_error_with_every_reason(self):
        ended = self.run_program("""
            x, y, out = arrays(5000)
            try:
                hopeless[grid](x, y, out)
            except ph.TuneError as error:
                say(text=str(error), statuses=[v.status for v in error.variants], key=error.key)
            assert hopeless.result(N=5000) is None
            """)
        self.assertEqual(ended.statuses, ["wrong_result"] * 2)
        self.assertEqual(ended.key, "N=5000")
        self.assertIn("hopeless", ended.text)

    def test_what_is_not_proved_free_of_races_is_warned_of_once(self):
        ended = self.run_program("""
            x, y, out = arrays(256)
            for _ in range(3):
                squares[grid](x, out)
            assert np.array_equal(out, x)
            """)
        self.assertEqual(ended.err.count("PhobosWarning"), 1, ended)
        self.assertIn("races", ended.err)

    def test_in_place(self):
        self.run_program("""
            x = arrays(5000)[0]
            double[grid](x)
            double[grid](x)
            assert np.array_equal(x, 4 * arrays(5000)[0])
            """)

    def test_what_a_launch_refuses(self):
        ended = self.run_program("""
            said = {}
            def attempt(name, function):
                try:
                    function()
                except ph.PhobosError as error:
                    said[name] = [type(error).__name__, str(error), error.remedy]
            x, y, out = arrays(5000)
            attempt("overlap", lambda: add[grid](x, y, x))
            attempt("race", lambda: racing[grid](x, out))
            from misspelt import misspelt
            attempt("source", lambda: misspelt[grid](x, out))
            attempt("length", lambda: add[grid](x, y[:3], out))
            say(said=said)
            """)
        kind, text, _ = ended.said["overlap"]
        self.assertEqual(kind, "ArgumentError")
        self.assertRegex(text, r"out.*x|x.*out")
        kind, text, remedy = ended.said["race"]
        self.assertEqual(kind, "LaunchError")
        self.assertRegex(text, "(?i)race")
        self.assertIn("ph.atomic_add", remedy)
        kind, text, _ = ended.said["source"]
        self.assertEqual(kind, "KernelSourceError")
        self.assertIn("BLOCKS", text)
        self.assertIn("^", text)
        self.assertIn("misspelt.py:12:", text)
        self.assertEqual(ended.said["length"][0], "ArgumentError")


class TuneTest(Case):
    def test_a_stored_result_answers_unless_options_differ_or_force(self):
        ended = self.run_program("""
            x, y, out = arrays(5000)
            results = []
            def tune(**options):
                results.append(add.tune(grid, x, y, out, **options))
            tune()
            tune()
            tune(flush_l2=False)
            tune(flush_l2=False)
            tune(rtol=1e-3, atol=1e-3)
            tune(force=True, rtol=1e-3, atol=1e-3)
            say(seen=[[r.generation, r.cached, r.contended] for r in results])
            """)
        newest, was_contended = 0, False
        for (generation, cached, contended), stored in zip(ended.seen, (0, 1, 0, 1, 0, 0)):
            # One that was contended is made again as soon as the device is quiet.
            self.assertTrue(cached == bool(stored) or was_contended, ended.seen)
            self.assertEqual(generation, newest if cached else newest + 1, ended.seen)
            newest, was_contended = generation, contended

    def test_a_tolerance_that_narrows_is_refused(self):
        ended = self.tuner.run("add.tune(grid, *arrays(5000), rtol=1e-12)")
        self.assertEqual(ended.status, 1)
        self.assertIn("rtol", ended.err)

    def test_what_this_version_lacks_says_so(self):
        ended = self.run_program("""
            said = []
            x, y, out = arrays(5000)
            result = add.tune(grid, x, y, out)
            for call in (
                lambda: add.warm(grid, x, y, out),
                lambda: add.adopt(ph.Result.from_json(result.to_json())),
            ):
                try:
                    call()
                except ph.UnsupportedError as error:
                    said.append(error.message)
            say(said=said)
            """)
        self.assertEqual(len(ended.said), 2, ended)
        for text, verb in zip(ended.said, ("Warm", "Adopt")):
            self.assertIn(verb + " is not available in this version", text)

    def test_wrong_references_are_errors_before_anything_runs(self):
        ended = self.run_program("""
            x, y, out = arrays(5000)
            said = []
            for answer in (
                lambda x, y, out: {"out": x[:3]},
                lambda x, y, out: {"out": (x + y).astype(np.float64)},
                lambda x, y, out: {"sum": x + y},
                lambda x, y, out: {},
                lambda x, y, out: x + y,
                lambda x, y, out: 1 // 0,
            ):
                try:
                    add.tune(grid, x, y, out, reference=answer)
                except ph.ReferenceFailedError as error:
                    said.append([str(error), type(error.__cause__).__name__])
            assert add.result(N=5000) is None
            add.tune(grid, x, y, out)
            say(said=said)
            """)
        self.assertEqual(len(ended.said), 6, ended)
        for (text, _), part in zip(
            ended.said,
            ("shape (3,)", "float64", "'sum'", "nothing for out", "dict", "ZeroDivision"),
        ):
            self.assertIn(part, text)
        self.assertEqual(ended.said[5][1], "ZeroDivisionError")

    def test_a_kernel_that_does_not_compile_is_told_before_its_reference(self):
        ended = self.run_program("""
            @ph.kernel(key=("N",))
            @ph.autotune(BLOCK=[256, 512])
            def idle(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
                i: ph.let = ph.ctx.block.x * BLOCK
                x[i:+BLOCK] * 2.0
            try:
                idle.tune(grid, *arrays(5000), reference=lambda x, y, out: {"out": x * 2})
            except ph.TuneError as error:
                say(kind=type(error).__name__, text=str(error), cause=str(error.__cause__),
                    variants=len(error.variants))
            """)
        self.assertIn("does nothing with its value", ended.text)
        self.assertEqual((ended.kind, ended.cause, ended.variants), ("TuneError", "None", 2))

    def test_a_grid_that_raises_costs_its_variant(self):
        ended = self.run_program("""
            x, y, out = arrays(5000)
            def picky(meta):
                if meta["BLOCK"] in (256, 1024):
                    raise ValueError(f"not {meta['BLOCK']}")
                return grid(meta)
            result = add.tune(picky, x, y, out)
            say(statuses=[v.status for v in result.variants], reason=result.variants[2].reason)
            def never_any(meta):
                raise ValueError("not any")
            try:
                add.tune(never_any, *arrays(5001))
            except ValueError as error:
                say(text=str(error))
            """)
        self.assertEqual(ended.statuses, ["grid_error", "timed"] * 2 + ["timed"])
        self.assertIn("not 1024", ended.reason)
        self.assertEqual("not any", ended.text)

    def test_a_reference_that_launches_the_kernel_it_is_for_is_told(self):
        ended = self.run_program("""
            x, y, out = arrays(5000)
            def launching(x, y, out):
                add[grid](x, y, out)
            def in_a_thread(x, y, out):
                raised = []
                def catching():
                    try:
                        add[grid](x, y, out)
                    except ph.PhobosError as error:
                        raised.append(str(error))
                thread = threading.Thread(target=catching)
                thread.start()
                thread.join()
                raise RuntimeError(raised)
            said = []
            for wrong in launching, in_a_thread:
                try:
                    add.tune(grid, x, y, out, reference=wrong)
                except ph.ReferenceFailedError as error:
                    said.append(str(error))
            add[grid](x, y, out)
            say(said=said)
            """)
        for text in ended.said:
            self.assertIn("waits for this launch of the same kernel", text)
        self.assertEqual(len(ended.said), 2)

    def test_the_reference_gets_copies_and_scalars_of_their_type(self):
        ended = self.run_program("""
            x, y, out = arrays(5000)
            def spoiling(x, y, out):
                answer = {"out": x + y}
                x[:] = 9
                y[:] = 9
                out[:] = 9
                return answer
            add.tune(grid, x, y, out, reference=spoiling)
            assert np.array_equal(x, arrays(5000)[0]) and np.array_equal(y, arrays(5000)[1])
            assert not out.any()
            """)
        self.assertEqual(ended.err, "")

    def test_what_a_reference_keeps_stays_as_it_was(self):
        text = """
            kept = []
            def keeping(*arguments):
                kept.append(arguments)
                answer = {"out": arguments[0] + arguments[1]}
                arguments[0][:7] = 1
                return answer
            size = 1 << 20
            x, y, out = arrays(size)
            add.tune(grid, x, y, out, reference=keeping)
            a, b = arrays(size)[:2]
            add.tune(grid, a + 5, b + 6, out, reference=keeping, force=True)
            first, second = kept
            assert (first[0][:7] == 1).all() and np.array_equal(first[0][7:], x[7:])
            assert np.array_equal(first[1], y) and np.array_equal(second[1], b + 6)
            first[1][:] = 3
            assert np.array_equal(second[1], b + 6)
            say(times=len(kept))
            """
        self.assertEqual(self.run_program(text).times, 2)

    def test_an_answer_that_is_there_already_proves_nothing(self):
        self.run_program("""
            x, y, _ = arrays(5000)
            result = checked.tune(grid, x, y, x + y + 1)
            assert result.winner["WRONG_BY"] == 0.0
            result = checked.tune(grid, *arrays(5001)[:2], arrays(5001)[0] + arrays(5001)[1])
            assert [v.status for v in result.variants] == ["wrong_result", "timed"]
            """)


class PolicyTest(Case):
    def test_frozen_never_tunes(self):
        text = "x, y, out = arrays(5000)\nadd[grid](x, y, out)\nassert np.array_equal(out, x + y)\n"
        miss = self.tuner.run(text, PHOBOS_TUNE="frozen")
        self.assertEqual(miss.status, 1)
        self.assertIn("N=5000", miss.err)
        self.run_program(text)
        self.run_program("kernels.add.reference = never\n" + text, PHOBOS_TUNE="frozen")

    def test_off_without_a_daemon_says_what_it_is_wanted_for(self):
        self.tuner.stop()
        ended = self.tuner.run(
            """
            x, y, out = arrays(5000)
            try:
                plain[grid](x, y, out)
            except ph.DaemonError as error:
                say(text=str(error))
            """,
            PHOBOS_TUNE="off",
        )
        self.assertIn("PHOBOS_TUNE=off launches first choices, and it is the daemon that", ended.text)
        self.assertIn("PHOBOS_AUTOSTART=0 keeps this program from starting one: start", ended.text)
        self.tuner.start()

    def test_off_takes_first_choices_or_the_winner_that_is_there(self):
        text = """
            x, y, out = arrays(5000)
            checked.reference = never
            checked[grid](x, y, out)
            say(wrong_by=float(out[0] - (x + y)[0]))
            """
        self.assertEqual(self.run_program(text, PHOBOS_TUNE="off").wrong_by, 1.0)
        self.run_program("checked.tune(grid, *arrays(5000))")
        self.assertEqual(self.run_program(text, PHOBOS_TUNE="off").wrong_by, 0.0)

    def test_an_unknown_policy_is_an_error(self):
        ended = self.tuner.run("add[grid](*arrays(5000))", PHOBOS_TUNE="sometimes")
        self.assertEqual(ended.status, 1)
        self.assertIn("sometimes", ended.err)


class SharingTest(Case):
    def test_many_processes_at_once_tune_once_and_get_the_same_row(self):
        path = os.path.join(self.tuner.folder, "calls")
        programs = [self.tuner.begin(f"""
                x, y, out = arrays(50000)
                result = add.tune(grid, x, y, out, reference=count({path!r}))
                add[grid](x, y, out)
                assert np.array_equal(out, x + y)
                result.record.pop("cached", None)
                say(record=result.record)
                """) for _ in range(6)]
        ended = [finish(program) for program in programs]
        for one in ended:
            self.assertEqual(one.status, 0, one)
            self.assertEqual(one.record, ended[0].record)
        self.assertEqual(ended[0].record["generation"], 1)
        with open(path) as file:
            self.assertEqual(len(file.readlines()), 1)

    def test_threads_of_one_process_tune_once(self):
        ended = self.run_program("""
            calls, failures = [], []
            def counting(x, y, out):
                calls.append(1)
                return {"out": x + y}
            checked.reference = counting
            def work():
                try:
                    x, y, out = arrays(50000)
                    for _ in range(20):
                        checked[grid](x, y, out)
                    assert np.array_equal(out, x + y)
                except BaseException as error:
                    failures.append(repr(error))
            threads = [threading.Thread(target=work) for _ in range(8)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            say(calls=len(calls), failures=failures)
            """)
        self.assertEqual((ended.calls, ended.failures), (1, []))

    def test_a_forked_child_goes_on(self):
        self.run_program("""
            x, y, out = arrays(1 << 20)
            add[grid](x, y, out)
            children = []
            for n in (1 << 20, 5000):
                child = os.fork()
                if child == 0:
                    x, y, out = arrays(n)
                    add[grid](x, y, out)
                    os._exit(0 if np.array_equal(out, x + y) else 1)
                children.append(child)
            assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
            add[grid](x, y, out)
            assert add.result(N=5000) is not None
            """)

    def test_a_daemon_that_is_killed_and_started_again_has_the_winner(self):
        self.run_program("add[grid](*arrays(5000))")
        self.tuner.stop(signal.SIGKILL)
        self.tuner.start()
        self.run_program("add.reference = never\nadd[grid](*arrays(5000))")


class InterruptTest(Case):
    flags = ("--rounds=3", "--warm-up=4s")

    def is_warming_up(self):
        phases = [job["progress"].get("phase") for job in self.tuner.status().get("jobs", [])]
        return phases == ["PHASE_WARM_UP"]

    def test_ctrl_c_cancels_the_tune(self):
        gone = os.path.join(self.tuner.folder, "gone")
        # The program lives on: one that ends at once may be taken for lost, and its tune is finished.
        program = self.tuner.begin(f"""
            x, y, out = arrays(1 << 20)
            try:
                add[grid](x, y, out)
            except KeyboardInterrupt:
                say(interrupted=True)
            while not os.path.exists({gone!r}):
                time.sleep(0.01)
            """)
        self.assertTrue(wait_until(self.is_warming_up))
        began = time.monotonic()
        program.send_signal(signal.SIGINT)
        # Nobody waits for it any more, so it ends.
        self.assertTrue(wait_until(lambda: not self.tuner.status().get("jobs")))
        self.assertLess(time.monotonic() - began, 10)
        open(gone, "w").close()
        ended = finish(program)
        self.assertEqual(ended.status, 0, ended)
        self.assertTrue(ended.interrupted)
        self.assertEqual(ended.err, "")
        self.run_program("assert add.result(N=1 << 20) is None")


class LeavingTest(Case):
    flags = ("--rounds=3", "--warm-up=2s")

    def test_a_tune_goes_on_when_another_waits_for_it(self):
        text = """
            x, y, out = arrays(1 << 20)
            generation = add.tune(grid, x, y, out).generation
            say(generation=generation)
            """
        programs = [self.tuner.begin(text) for _ in range(2)]
        self.assertTrue(wait_until(lambda: len(self.tuner.artifacts()) >= 5))
        time.sleep(1)
        programs[0].send_signal(signal.SIGINT)
        self.assertNotEqual(finish(programs[0]).status, 0)
        self.assertEqual(finish(programs[1]).generation, 1)


if __name__ == "__main__":
    unittest.main()
