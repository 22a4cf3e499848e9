# SPDX-License-Identifier: Apache-2.0
"""phobos-compile as a process: exit codes, what it prints and writes, the same answer with any number of jobs."""

import ctypes
import hashlib
import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

COMPILER = os.path.abspath(sys.argv.pop(1))
CONTRACT = os.path.abspath(sys.argv.pop(1))

# The example of the user's requirements, to the letter.
REQUIRED = """from __future__ import annotations

import phobos.lang as ph


def reference(x, y, out):
    return {"out": x + y}


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
"""

ADD = """from __future__ import annotations
import phobos.lang as ph

@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[32, 256], T=[16, 128])
@ph.launch("T")
@ph.constraint("BLOCK >= T")
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
"""

# Wrong in the variants where a literal does not fit its type.
HALF_WRONG = """import phobos.lang as ph
@ph.kernel
@ph.autotune(A=[100, 200, 1])
def k(x: ph.tensor[ph.u8][N], out: ph.tensor[ph.i8][N]):
    out[ph.ctx.block.x] = A
"""

ALL_WRONG = """import phobos.lang as ph
@ph.kernel
@ph.autotune(A=[1, 2, 3])
def k(out: ph.tensor[ph.i8][N]):
    out[0] = "text"
"""


# Some kernels of this file are wrong, each in another stage; `good` is not, and calls nothing that is.
SEVERAL = """import phobos.lang as ph
SIZE = make()
@ph.fn
def half(v):
    return v @ 2
@ph.fn
def twice(v):
    return v * tow
@ph.kernel
def grammar(out: ph.tensor[ph.f32][N]):
    out[0] = [x for x in out]
@ph.kernel
@ph.autotune(B=[])
def space(out: ph.tensor[ph.f32][N]):
    out[0] = B
@ph.kernel
def good(out: ph.tensor[ph.f32][N]):
    out[ph.ctx.block.x] = 1.0
@ph.kernel
def calls_half(out: ph.tensor[ph.f32][N]):
    out[0] = half(out[0])
@ph.kernel
def calls_twice(out: ph.tensor[ph.f32][N]):
    out[0] = twice(out[0])
@ph.kernel
def calls_twice_too(out: ph.tensor[ph.f32][N]):
    out[0] = twice(out[0])
@ph.kernel
def sized(out: ph.tensor[ph.f32][N]):
    out[0] = SIZE
@ph.kernel
def good(out: ph.tensor[ph.f32][N]):
    out[ph.ctx.block.x] = 2.0
"""


HEAD = """import phobos.lang as ph
@ph.kernel
def k(out: ph.tensor[ph.f32][N]):
    b: ph.let = ph.ctx.block.x * 100000
"""


# Block b writes elements b * A .. b * A + 7: they overlap where A < 8.
OVERLAP = """import phobos.lang as ph
@ph.kernel
@ph.autotune(A=[8, 4])
def k(x: ph.tensor[ph.f32][N], i: ph.tensor[ph.i32][N], out: ph.tensor[ph.f32][N], other: ph.tensor[ph.f32][N]):
    out[ph.ctx.block.x * A:+8] = x[ph.ctx.block.x * A:+8]
"""


class PhobosCompile(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, text, name="k.py"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_compiler(self, *arguments, stdin=None, stdout=subprocess.PIPE, preexec_fn=None):
        return subprocess.run([COMPILER, *arguments], input=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True,
                              timeout=120, preexec_fn=preexec_fn)

    def manifest(self, *arguments):
        done = self.run_compiler(*arguments, "--format", "json")
        self.assertEqual(done.stderr, "")
        return done.returncode, json.loads(done.stdout)

    def test_version_is_one_line_with_a_build(self):
        done = self.run_compiler("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^phobos-compile \d+\.\d+\.\d+ \(llvm [0-9.]+, .*, build [0-9a-f]{16}\)\n$")
        as_json = json.loads(self.run_compiler("--version", "--format", "json").stdout)
        self.assertEqual(as_json, {"compiler_fingerprint": done.stdout.strip()})

    def test_help_has_every_option(self):
        done = self.run_compiler("--help")
        self.assertEqual(done.returncode, 0)
        for option in ("--kernel", "--chip", "--all-variants", "--set", "--variants", "--check-races", "--describe",
                       "--out", "--jobs", "--format", "--version", "--print-ir", "--file-name"):
            self.assertIn(option, done.stdout)
        for status in ("\n  0  ", "\n  1  ", "\n  2  ", "\n  3  "):
            self.assertIn(status, done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.split("\n"))), 100)

    def test_a_wrong_command_line_is_2(self):
        path = self.write(ADD)
        for arguments in ([], [path, "--nonsense"], [path, "--kernel", "other"], [path, "--set", "BLOCK=3"],
                          [path, "--variants", "0-99"], [path, "--chip", "sm_70"], [path, "--chip", "pdp11"],
                          [os.path.join(self.folder, "none.py")], [self.folder]):
            done = self.run_compiler(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertTrue(done.stderr.startswith("phobos-compile: "), done.stderr)
            self.assertEqual(done.stdout, "")

    def test_a_wrong_source_is_1_and_shows_the_place(self):
        done = self.run_compiler("-", "--file-name", "cell.py", "--describe", stdin=ADD.replace("BLOCK]", "BLOK]"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr, "cell.py:10:15: error: 'BLOK' is not defined\n"
                         "    out[base:+BLOK] = x[base:+BLOK] + y[base:+BLOK]\n"
                         "              ^~~~\n"
                         "help: did you mean 'BLOCK'?\n")

    def test_a_disk_that_refuses_is_3_and_no_fault_of_the_source(self):
        path = self.write(ADD)
        out = os.path.join(path, "below-a-file")
        done = self.run_compiler(path, "--set", "T=32", "--out", out)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "", f"mkdir {out}: Not a directory\n"))

        def no_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        # ThreadSanitizer maps files of its own, and dies where they may not be so large.
        if os.environ.get("SANITIZER") != "tsan":
            out = os.path.join(self.folder, "small")
            done = self.run_compiler(path, "--set", "T=32", "--out", out, preexec_fn=no_room)
            self.assertEqual((done.returncode, done.stdout), (3, ""))
            self.assertRegex(done.stderr, r"\Awrite .*: File too large\n\Z")
            self.assertEqual(os.listdir(out), [])
        with open("/dev/full", "w") as full:
            done = self.run_compiler(path, "--describe", stdout=full)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"\Aphobos-compile: [^\n]+\n\Z")

    def test_a_machine_that_lacks_something_is_3_and_no_fault_of_the_source(self):
        path = self.write(ADD)

        def limited(what, most):
            out = os.path.join(self.folder, f"{what}-{most}")
            done = self.run_compiler(path, "--all-variants", "--jobs", "2", "--out", out,
                                     preexec_fn=lambda: resource.setrlimit(what, (most, most)))
            if done.returncode == 0:
                return done
            self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
            self.assertFalse(os.path.exists(os.path.join(out, "manifest.json")))
            return done

        for most in range(4, 24):
            done = limited(resource.RLIMIT_NOFILE, most)
            if done.returncode == 0:
                self.assertGreater(most, 5)
                break
            self.assertRegex(done.stderr, r"\A[a-z_0-9]+ .*: Too many open files\n\Z")
        self.assertEqual(limited(resource.RLIMIT_NOFILE, 24).returncode, 0)

    @unittest.skipIf(os.environ.get("SANITIZER"), "a sanitizer needs more address space than any limit here")
    def test_a_compiler_without_memory_ends_with_3(self):
        path = self.write(ADD)
        lacking = 0
        for megabytes in range(64, 512, 4):
            most = megabytes << 20
            done = self.run_compiler(path, "--all-variants", "--out", os.path.join(self.folder, "out"),
                                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)))
            if done.returncode == 127:  # the dynamic linker's: not even the program fits
                continue
            if done.returncode == 0:
                break
            self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
            self.assertRegex(done.stderr, r"\A.*: Cannot allocate memory\n\Z")
            lacking += 1
        self.assertEqual(done.returncode, 0)
        self.assertGreater(lacking, 0)

    def test_shared_memory_without_room_does_not_matter(self):
        path = self.write(ADD)
        script = "mount -t tmpfs -o size=4k none /dev/shm && cat /proc/self/exe >/dev/shm/full 2>/dev/null; exec \"$@\""
        inside = ["unshare", "--map-root-user", "--mount"]
        if subprocess.run([*inside, "mount", "-t", "tmpfs", "none", "/dev/shm"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("this machine lets nobody mount")
        done = subprocess.run([*inside, "sh", "-c", script, "sh", COMPILER, path, "--all-variants"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_wrong_kernel_is_no_fault_of_another(self):
        path = self.write(SEVERAL.rpartition("@ph.kernel")[0])
        self.assertEqual(self.manifest(path, "--kernel", "good")[0], 0)
        for kernel, place in (("grammar", "11:17"), ("space", "13:16"), ("calls_half", "5:14"),
                              ("calls_twice", "8:16"), ("calls_twice_too", "8:16"), ("sized", "30:14")):
            done = self.run_compiler(path, "--kernel", kernel)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertEqual(re.findall(r"^\S*k\.py:(\d+:\d+): error: ", done.stderr, re.MULTILINE), [place], done.stderr)
            self.assertNotIn("errors", done.stderr)
        done = self.run_compiler(path, "--kernel", "other")
        self.assertEqual(done.returncode, 2)
        self.assertIn("it has good, grammar, space, calls_half", done.stderr)

    def test_without_a_name_all_errors_are_shown_each_once(self):
        done = self.run_compiler(self.write(SEVERAL), "--describe")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(re.findall(r"^\S*k\.py:(\d+:\d+): error: ", done.stderr, re.MULTILINE),
                         ["5:14", "11:17", "13:16", "8:16", "30:14", "32:5"])
        self.assertTrue(done.stderr.endswith("\n6 errors\n"), done.stderr)
        # Of two kernels of one name none can be meant.
        done = self.run_compiler(self.write(SEVERAL), "--kernel", "good")
        self.assertEqual(done.returncode, 1)
        self.assertIn("'good' is defined twice", done.stderr)
        many = "import phobos.lang as ph\n" + "".join(f"@ph.kernel\ndef k{i}(x: ph.f3): pass\n" for i in range(30))
        done = self.run_compiler(self.write(many))
        self.assertEqual(done.stderr.count(": error: "), 20)
        self.assertTrue(done.stderr.endswith("\n30 errors, the first 20 are shown\n"), done.stderr)

    def test_description(self):
        text = self.run_compiler(self.write(ADD), "--describe")
        self.assertEqual(text.returncode, 0)
        self.assertIn("kernel add (", text.stdout)
        code, description = self.manifest(self.write(ADD), "--describe")
        self.assertEqual(code, 0)
        self.assertEqual(description["kernel"], "add")
        self.assertEqual(len(description["variants"]), 16)
        self.assertEqual(hashlib.sha256(description["canonical_source"].encode()).hexdigest(),
                         description["source_digest"])

    def test_the_contract_shows_what_the_compiler_says(self):
        with open(CONTRACT, encoding="utf-8") as file:
            shown = re.findall(r"```json\n(.*?)```", file.read(), re.DOTALL)
        _, description = self.manifest(self.write(REQUIRED), "--describe")
        del description["variants"][2:]
        self.assertEqual(json.loads(shown[0]), description)
        _, manifest = self.manifest(self.write(REQUIRED), "--all-variants", "--check-races")
        example = json.loads(shown[1])
        self.assertEqual(set(example), set(manifest))
        self.assertEqual(set(example["variants"][0]) - {"race_detail"}, set(manifest["variants"][0]) - {"race_detail"})
        self.assertEqual(set(example["variants"][0]["artifact"]), set(manifest["variants"][0]["artifact"]))
        self.assertEqual(example["slots"], manifest["slots"])

    def test_all_variants_are_written_whole(self):
        out = os.path.join(self.folder, "deep", "out")
        code, manifest = self.manifest(self.write(ADD), "--all-variants", "--out", out)
        self.assertEqual(code, 0)
        with open(os.path.join(out, "manifest.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), manifest)
        self.assertEqual(manifest["format"], 1)
        self.assertEqual(manifest["slots"], ["x", "y", "out", "extent:N"])
        self.assertNotEqual(manifest["chip"], "native")
        self.assertEqual(manifest["compiler_fingerprint"], self.run_compiler("--version").stdout.strip())
        self.assertEqual([v.get("index", 0) for v in manifest["variants"]], list(range(16)))
        files = {"manifest.json"}
        for variant in manifest["variants"]:
            settings = {s["name"]: int(s["int_value"]) for s in variant["settings"]}
            if settings["T"] == 16 or settings["BLOCK"] < settings["T"]:
                self.assertEqual(variant["status"], "VARIANT_STATUS_EXCLUDED")
                self.assertIn("threads" if settings["T"] == 16 else "BLOCK >= T", variant["reason"])
                continue
            self.assertEqual(variant["status"], "VARIANT_STATUS_COMPILED")
            artifact = variant["artifact"]
            path = os.path.join(out, artifact["file"])
            with open(path, "rb") as file:
                content = file.read()
            self.assertEqual(hashlib.sha256(content).hexdigest(), artifact["digest"])
            self.assertEqual(len(content), int(artifact["size_bytes"]))
            self.assertIsNotNone(getattr(ctypes.CDLL(path), artifact["entry"]))
            files.add(artifact["file"])
        self.assertEqual(set(os.listdir(out)), files)
        self.assertEqual(len(files), 10)

    def test_the_answer_does_not_depend_on_the_jobs(self):
        answers = []
        for jobs in ("1", "4"):
            out = os.path.join(self.folder, "out" + jobs)
            done = self.run_compiler(self.write(ADD), "--all-variants", "--jobs", jobs, "--out", out, "--format", "json")
            self.assertEqual(done.returncode, 0)
            answers.append(re.sub(r'"compile_ns": "\d+"', "", done.stdout))
        self.assertEqual(*answers)

    def test_selections(self):
        path = self.write(ADD)
        self.assertEqual([v.get("index", 0) for v in self.manifest(path, "--variants", "1-3")[1]["variants"]], [1, 2, 3])
        _, manifest = self.manifest(path, "--set", "BLOCK=256", "--set", "T=64")
        self.assertEqual([v["index"] for v in manifest["variants"]], [14])
        # Variant 0 is excluded here, and nothing else was asked for.
        code, manifest = self.manifest(path)
        self.assertEqual((code, manifest["variants"][0]["status"]), (1, "VARIANT_STATUS_EXCLUDED"))

    def test_a_variant_that_fails_leaves_the_others(self):
        code, manifest = self.manifest(self.write(HALF_WRONG), "--all-variants")
        self.assertEqual(code, 0)
        self.assertEqual([v["status"] for v in manifest["variants"]],
                         ["VARIANT_STATUS_COMPILED", "VARIANT_STATUS_COMPILE_ERROR", "VARIANT_STATUS_COMPILED"])
        reason = manifest["variants"][1]["reason"]
        self.assertRegex(reason, r"k\.py:5:\d+: error: ")
        self.assertIn("\n    out[ph.ctx.block.x] = A\n", reason)
        self.assertIn("^", reason)

    def test_every_variant_failing_is_1(self):
        out = os.path.join(self.folder, "out")
        done = self.run_compiler(self.write(ALL_WRONG), "--all-variants", "--out", out)
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 of 3 variants compiled", done.stdout)
        self.assertIn("variant 0 and 2 others:\n", done.stdout)
        self.assertEqual(os.listdir(out), ["manifest.json"])

    def test_a_kernel_that_is_too_large_is_unsupported_and_says_so(self):
        lines = "".join(f"    out[b + {8 * i}:+8] = 1.0\n" for i in range(3000))
        code, manifest = self.manifest(self.write(HEAD + lines))
        self.assertEqual((code, manifest["variants"][0]["status"]), (1, "VARIANT_STATUS_UNSUPPORTED"))
        self.assertRegex(manifest["variants"][0]["reason"], r"becomes \d+ pieces of code, and 10000 can be compiled")

    def test_progress_is_a_terminal_s_alone(self):
        lines = "".join(f"    out[b + {8 * i}:+8] = A\n" for i in range(150))
        path = self.write(HEAD.replace("def k", f"@ph.autotune(A={list(range(40))})\ndef k") + lines)
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        with subprocess.Popen([COMPILER, path, "--all-variants", "--jobs", "1"], stdout=subprocess.DEVNULL,
                              stderr=end) as compiler:
            os.close(end)
            shown = b""
            while True:
                try:
                    piece = os.read(terminal, 4096)
                except OSError:  # how Linux tells that the other side has gone
                    break
                if not piece:
                    break
                shown += piece
            self.assertEqual(compiler.wait(), 0)
        self.assertRegex(shown, rb"\r\x1b\[Kcompiling k: \d+ of 40 variants, \d+ s")
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)
        self.assertEqual(self.run_compiler(path, "--set", "A=0").stderr, "")

    def test_races(self):
        code, manifest = self.manifest(self.write(OVERLAP), "--all-variants", "--check-races")
        self.assertEqual(code, 0)
        free, race = manifest["variants"]
        self.assertEqual((free["status"], free["race_verdict"]), ("VARIANT_STATUS_COMPILED", "RACE_VERDICT_RACE_FREE"))
        self.assertEqual((race["status"], race["race_verdict"]), ("VARIANT_STATUS_RACE", "RACE_VERDICT_RACE"))
        self.assertNotIn("artifact", race)
        self.assertEqual(race["reason"], race["race_detail"])
        self.assertIn("out", race["reason"])
        _, unchecked = self.manifest(self.write(OVERLAP), "--all-variants")
        self.assertEqual([v["status"] for v in unchecked["variants"]], ["VARIANT_STATUS_COMPILED"] * 2)
        self.assertNotIn("races_checked", unchecked)
        unproven = OVERLAP.replace("out[ph.ctx.block.x * A:+8] =", "out[i[ph.ctx.block.x]:+8] =")
        _, manifest = self.manifest(self.write(unproven), "--check-races")
        self.assertEqual(manifest["variants"][0]["race_verdict"], "RACE_VERDICT_UNPROVEN")
        self.assertEqual(manifest["variants"][0]["status"], "VARIANT_STATUS_COMPILED")

    def test_print_ir(self):
        done = self.run_compiler(self.write(ADD), "--set", "BLOCK=128", "--print-ir")
        self.assertEqual(done.returncode, 0)
        self.assertIn("# variant 8 after lower\nkernel add(", done.stdout)
        self.assertIn("f32[128]", done.stdout)
        self.assertEqual(self.run_compiler(self.write(ADD), "--set", "BLOCK=128", "--print-ir=lower").stdout, done.stdout)

    def test_print_ir_after_a_stage(self):
        used_twice = ADD.replace("    out[", "    e: ph.let = ph.exp(x[base:+BLOCK])\n    x[base:+BLOCK] = e\n    out[")
        path = self.write(used_twice.replace("x[base:+BLOCK] + y", "e + y"))
        self.assertNotIn(" = stage ", self.run_compiler(path, "--print-ir").stdout)
        done = self.run_compiler(path, "--print-ir=stage", "--variants", "0-1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(" = stage ", done.stdout)
        self.assertIn("# variant 0 after stage\nkernel add(", done.stdout)
        self.assertIn("# variant 1 after stage\nkernel add(", done.stdout)

    def test_print_ir_after_a_stage_is_the_chips(self):
        path = self.write(ADD.replace("    out[", "    t: ph.let = x[base:+BLOCK]\n    y[0] = ph.sum(t)\n    out[")
                          .replace("x[base:+BLOCK] + y", "t + y"))
        # A GPU holds the load that the sum and the store need, in registers.
        for chip, held in (("x86-64-v3", 0), ("sm_90", 1)):
            done = self.run_compiler(path, "--chip", chip, "--print-ir=stage")
            self.assertEqual(done.stdout.count(" = stage "), held, done.stdout + done.stderr)

    def test_print_ir_after_a_stage_that_there_is_not(self):
        done = self.run_compiler(self.write(ADD), "--print-ir=stege")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn('there is no stage "stege"; the stages are, in their order: lower, stage; beside them: record\n', done.stderr)

    def test_a_file_that_is_too_long(self):
        done = self.run_compiler("-", stdin="#" * (17 << 20))
        self.assertEqual(done.returncode, 1)
        self.assertIn("the limit is", done.stderr)


if __name__ == "__main__":
    unittest.main()
