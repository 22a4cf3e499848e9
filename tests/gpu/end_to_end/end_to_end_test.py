# SPDX-License-Identifier: Apache-2.0
"""Tunes on a GPU, end to end: daemon, worker, real PTX, and the stand-in driver of tests/gpu/fake_driver, which runs
each kernel's host twin and does what a script says."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
CARD = "GPU-f0f1f2f3-f4f5-f6f7-f0f1-f2f3f4f5f600"
L2_BYTES = 65536
N = 5000
# Of launches whose inputs come from memory; those that find them in the cache are WARM_NS faster.
TIMES = {256: 9000, 512: 6000, 1024: 7000, 2048: 8000}
WARM_NS = 3500
BASE = f"l2_bytes {L2_BYTES}\nwarm_ns {WARM_NS}\n" + "".join(
    f"kernel BLOCK={block} times {ns}\n" for block, ns in TIMES.items())
QUICK = ("--rounds=4", "--warm-up=20ms")
LOOK_HOLDS = 1.1  # seconds after which the daemon looks at a card anew


def found(variable):
    return os.path.abspath(os.environ[variable])


class Variant:
    def __init__(self, line):
        _, settings, self.status, best, registers, self.reason = line.split(" ", 5)
        self.block = int(settings.split("=")[1])
        self.best_ns = int(best)
        self.registers = int(registers)


class Outcome:
    """What tune_on_card printed."""

    def __init__(self, text):
        self.text = text
        lines = text.splitlines()
        self.variants = {v.block: v for v in (Variant(l) for l in lines if l.startswith("variant "))}
        self.winner = next((int(l.split("=")[1]) for l in lines if l.startswith("winner ")), None)
        self.facts = {}
        for line in lines:
            if line.startswith("result "):
                self.facts = {k: int(v) for k, v in (word.split("=") for word in line.split()[1:])}

    def statuses(self):
        return {block: variant.status for block, variant in self.variants.items()}


class Bench(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="phobos-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.twins = self.path("twins")
        os.mkdir(self.twins)
        self.daemon = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, script=BASE, flags=QUICK, **environment):
        with open(self.path("script"), "w") as file:
            file.write(script)
        self.environment = {
            **os.environ,
            "HOME": self.folder,
            "PHOBOS_SOCKET": self.path("s"),
            "PHOBOS_AUTOSTART": "0",
            "PHOBOS_CUDA_LIBRARY": found("FAKE_CUDA"),
            "PHOBOS_NVML_LIBRARY": found("FAKE_NVML"),
            "PHOBOS_FAKE_CUDA_SCRIPT": self.path("script"),
            "PHOBOS_FAKE_CUDA_TRACE": self.path("trace"),
            "PHOBOS_FAKE_COMPILER": found("PHOBOS_COMPILER"),
            "PHOBOS_FAKE_TWINS": self.twins,
            **environment,
        }
        read, write = os.pipe()
        self.daemon = subprocess.Popen(
            [found("PHOBOS_DAEMON"), "--private", "--socket=" + self.path("s"), "--cache-dir=" + self.path("cache"),
             "--compiler=" + found("FAKE_COMPILER"), f"--ready-fd={write}", *flags],
            pass_fds=[write], env=self.environment, stdin=subprocess.DEVNULL)
        self.addCleanup(self.stop)
        os.close(write)
        with os.fdopen(read) as ready:
            self.assertIn("ready", ready.readline())

    def stop(self):
        if self.daemon is not None and self.daemon.poll() is None:
            self.daemon.send_signal(signal.SIGTERM)
            self.daemon.wait(30)

    def tune(self, kernel="add", n=N, *more):
        done = subprocess.run(
            [found("TUNE_ON_CARD"), os.path.join(HERE, "kernels.py"), kernel, str(n), CARD, *more],
            env=self.environment, capture_output=True, text=True, timeout=120)
        return Outcome(done.stdout + done.stderr)

    def status(self, *flags):
        return subprocess.run([found("PHOBOSCTL"), "status", *flags], env=self.environment, capture_output=True,
                              text=True, check=True).stdout

    def trace(self):
        """The driver's calls, without the number of the process."""
        with open(self.path("trace")) as file:
            return [line.split(" ", 1)[1].rstrip("\n") for line in file]

    def timed_calls(self, kernel, rounds):
        """The calls from the restore or flush before the first timed launch to the last event, and the blocks launched.

        Timed launches are those with a fill right before their start event.
        """
        calls = self.trace()
        launch = re.compile(rf"cuLaunchKernel // phobos-tuner: {kernel} BLOCK=(\d+)")
        timed = [i for i, call in enumerate(calls) if launch.match(call) and calls[i - 2].startswith("cuMemsetD32Async")]
        blocks = [int(launch.match(calls[i]).group(1)) for i in timed]
        self.assertEqual(len(timed) % rounds, 0)
        return calls[timed[0] - 2:timed[-1] + 2], blocks


class TuneTest(Bench):
    def test_a_tune_on_the_card(self):
        self.start(flags=("--rounds=8", "--warm-up=300ms"))
        outcome = self.tune()
        self.assertEqual(outcome.winner, 512, outcome.text)
        self.assertEqual({b: v.best_ns for b, v in outcome.variants.items()}, TIMES)
        self.assertEqual({v.registers for v in outcome.variants.values()}, {32})
        self.assertGreater(outcome.facts["warm_up_launches"], 100)
        self.assertRegex(outcome.text, r"state clock=1980/1980 temperature=40/40 power=120000/120000 floor=\d+ resolution=[1-9]")
        self.assertEqual(outcome.facts["contended"], 0)
        kernels = os.listdir(os.path.join(self.path("cache"), "sm_90", "kernels"))
        self.assertEqual(sorted(name.rsplit(".", 1)[1] for name in kernels), ["cubin"] * 4 + ["ptx"] * 4)
        self.assertTrue(os.path.exists(os.path.join(self.path("cache"), "sm_90", "autotune", "results.db")))
        links = self.trace().count("cuLinkComplete")
        self.assertEqual(links, 4)
        # Another key value: nothing is compiled or linked.
        self.assertEqual(self.tune(n=777).winner, 512)
        self.assertEqual(self.trace().count("cuLinkComplete"), links)
        for n in (0, 1, 7, 65537):
            with self.subTest(n=n):
                self.assertEqual(self.tune(n=n).winner if n else 512, 512)

    def test_between_samples_there_is_nothing_but_flush_events_and_launch(self):
        rounds = 4
        self.start()
        self.assertEqual(self.tune().winner, 512)
        calls, blocks = self.timed_calls("add", rounds)
        self.assertEqual(len(blocks), 4 * rounds)
        # Looking at the canaries after a round copies; nothing allocates, frees, loads or links.
        self.assertEqual({call.split(" ")[0] for call in calls} - {"cuMemcpyAsync"},
                         {"cuLaunchKernel", "cuEventRecord", "cuEventElapsedTime", "cuMemsetD32Async",
                          "cuStreamWriteValue32_v2", "cuStreamWaitValue32_v2"})

    def test_flush_is_twice_the_cache_before_each_launch(self):
        self.start()
        outcome = self.tune()
        # A launch that found its inputs in the cache would have been WARM_NS faster.
        self.assertEqual(outcome.variants[512].best_ns, TIMES[512], outcome.text)
        calls, _ = self.timed_calls("add", 4)
        fills = [call for call in calls if call.startswith("cuMemsetD32Async")]
        self.assertEqual(set(fills), {f"cuMemsetD32Async {2 * L2_BYTES}"})
        self.assertEqual(len(fills), 16)

    def test_a_card_that_tells_of_no_cache_is_tuned_without_a_flush(self):
        self.start(BASE.replace(f"l2_bytes {L2_BYTES}", "l2_bytes 0"))
        outcome = self.tune()
        self.assertEqual(outcome.winner, 512, outcome.text)
        self.assertNotIn("cuMemsetD32Async", self.trace())

    def test_restore_before_each_launch_of_what_changes_in_place(self):
        self.start()
        outcome = self.tune("accumulate")
        self.assertEqual(outcome.winner, 512, outcome.text)
        calls = self.trace()
        launches = [i for i, call in enumerate(calls)
                    if call.startswith("cuLaunchKernel // phobos-tuner: accumulate") and
                    calls[i - 2].startswith("cuMemsetD32Async")]
        self.assertEqual(len(launches), 8)
        for i in launches:
            self.assertEqual(calls[i - 3], f"cuMemcpyAsync {4 * N}")

    def test_the_first_of_a_round_rotates(self):
        self.start()
        self.assertEqual(self.tune().winner, 512)
        _, blocks = self.timed_calls("add", 4)
        order = list(TIMES)
        for number in range(4):
            self.assertEqual(blocks[4 * number:4 * number + 4], order[number:] + order[:number])

    def test_a_clock_that_ramps_is_warm_before_round_1(self):
        # Twice the time at first, its own after 250 ms of launches.
        self.start(BASE + "ramp_ms 250\n", ("--rounds=4", "--warm-up=300ms"))
        outcome = self.tune()
        self.assertEqual({b: v.best_ns for b, v in outcome.variants.items()}, TIMES, outcome.text)

    def test_throttled_for_ever_is_contended(self):
        self.start(BASE + "throttled 1 1000000 64\n")
        outcome = self.tune()
        self.assertEqual(outcome.winner, 512, outcome.text)
        self.assertEqual(outcome.facts["contended"], 1)
        self.assertEqual(outcome.facts["repeated"], 56)

    def test_a_contended_result_is_replaced_when_the_card_is_quiet(self):
        # The worker reads the script once, at its start; who looks at the card is a process of its own.
        self.start(BASE + "throttled 1 1000000 64\n")
        self.assertEqual(self.tune().facts["generation"], 1)
        self.assertEqual(self.tune().facts["generation"], 1)
        with open(self.path("script"), "w") as file:
            file.write(BASE + "foreign 1 1000000 50\n")
        time.sleep(LOOK_HOLDS)
        self.assertEqual(self.tune().facts["generation"], 1)
        with open(self.path("script"), "w") as file:
            file.write(BASE + "foreign 1 1000000 4\n")
        time.sleep(LOOK_HOLDS)
        self.assertEqual(self.tune().facts["generation"], 2)


class FaultTest(Bench):
    def check(self, faults, statuses, flags=QUICK):
        """Tunes with the faults, then again on the same daemon at another size."""
        self.start(BASE + faults, flags)
        outcome = self.tune()
        self.assertEqual(outcome.statuses(), statuses, outcome.text)
        self.assertEqual(outcome.variants[outcome.winner].status, "timed")
        again = self.tune(n=N + 1)
        self.assertEqual(again.statuses(), statuses, again.text)
        return outcome

    def test_sticky_errors_in_the_check(self):
        outcome = self.check("kernel BLOCK=256 lost 1 700\nkernel BLOCK=1024 lost 1 716\n",
                             {256: "crashed", 512: "timed", 1024: "crashed", 2048: "timed"})
        self.assertIn("CUDA_ERROR_ILLEGAL_ADDRESS", outcome.variants[256].reason)
        self.assertIn("CUDA_ERROR_MISALIGNED_ADDRESS", outcome.variants[1024].reason)

    def test_a_sticky_error_in_a_timed_launch(self):
        # In the check it is right; some launches later it breaks the card.
        self.check("kernel BLOCK=1024 lost 15 719\n", {256: "timed", 512: "timed", 1024: "crashed", 2048: "timed"})

    def test_one_sticky_error_is_forgiven(self):
        self.check(f"kernel BLOCK=512 lost 1 700 once {self.path('once')}\n", {b: "timed" for b in TIMES})

    def test_writes_one_byte_outside(self):
        outcome = self.check("kernel BLOCK=512 poke 2 -1\nkernel BLOCK=1024 poke 0 -4096\n",
                             {256: "timed", 512: "out_of_bounds", 1024: "out_of_bounds", 2048: "timed"})
        self.assertIn("wrote outside out", outcome.variants[512].reason)

    def test_writes_into_an_input_and_a_wrong_result(self):
        self.check("kernel BLOCK=512 poke 1 40\nkernel BLOCK=1024 poke 2 43\n",
                   {256: "timed", 512: "wrong_result", 1024: "wrong_result", 2048: "timed"})

    def test_what_cannot_be_linked_or_run(self):
        outcome = self.check("kernel BLOCK=256 link 218\nkernel BLOCK=512 link 222\nkernel BLOCK=1024 max_threads 32\n",
                             {256: "compile_error", 512: "unsupported", 1024: "unsupported", 2048: "timed"})
        self.assertIn("the script says so", outcome.variants[256].reason)
        self.assertIn("update the driver", outcome.variants[512].reason)
        self.assertIn("32 such threads", outcome.variants[1024].reason)

    def test_launches_that_are_refused(self):
        outcome = self.check("kernel BLOCK=256 refuse 1 701\nkernel BLOCK=512 refuse 1 2\nkernel BLOCK=1024 refuse 9 701\n",
                             {256: "unsupported", 512: "out_of_memory", 1024: "crashed", 2048: "timed"})
        self.assertIn("@ph.launch", outcome.variants[256].reason)

    def test_local_memory_that_the_card_does_not_have(self):
        # Drivers refuse the first launch as an invalid value. Without the local memory that means a lost card.
        outcome = self.check("kernel BLOCK=256 refuse 1 1\nkernel BLOCK=256 local 524000\nkernel BLOCK=512 refuse 1 1\n",
                             {256: "out_of_memory", 512: "crashed", 1024: "timed", 2048: "timed"})
        self.assertRegex(outcome.variants[256].reason, "524000 bytes of local memory a thread.*the card has 268435456")

    def test_a_launch_that_never_ends(self):
        outcome = self.check("kernel BLOCK=1024 hang 1\n", {256: "timed", 512: "timed", 1024: "timed_out", 2048: "timed"})
        self.assertIn("ran longer than", outcome.variants[1024].reason)

    def test_no_memory_on_the_card(self):
        self.start(BASE + "memory_bytes 200000\n")
        outcome = self.tune(n=100000)
        self.assertRegex(outcome.text, "error .*needs [0-9]+ bytes of the card's memory")
        self.assertEqual(self.tune(n=100).winner, 512)


class WithoutTest(Bench):
    def test_the_daemon_works_without_a_driver_and_says_why(self):
        self.start(PHOBOS_CUDA_LIBRARY="/nowhere/libcuda.so.1")
        self.assertRegex(self.status(), "not used +CUDA: no NVIDIA driver: .*/nowhere/libcuda.so.1")
        self.assertIn("x86-64-v", self.status())
        self.assertIn("no device", self.tune().text)

    def test_the_daemon_says_that_the_driver_is_too_old(self):
        self.start("version 11080\n")
        self.assertRegex(self.status(), "not used +CUDA: .*CUDA 11.8.*update")

    def test_the_daemon_shows_the_card(self):
        self.start()
        self.assertRegex(self.status(), f"{CARD} +sm_90 +Fake H200")
        self.assertNotIn("not used", self.status())

    def test_a_card_in_exclusive_use_is_said(self):
        self.start(BASE + "fail cuDevicePrimaryCtxRetain 0 46\n")
        self.assertIn("exclusive mode", self.tune().text)


if __name__ == "__main__":
    unittest.main()
