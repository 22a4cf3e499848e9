# SPDX-License-Identifier: Apache-2.0
"""The names of the language and the decorators, as Python sees them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

import phobos.lang as ph

# Every name of the language's pages that a kernel may write after `ph.`.
NAMES = """
f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool tensor tile let var ctx inf nan
kernel autotune launch index_bits aligned constraint fast_math fn assume range cast bitcast load
store finfo iinfo exp exp2 expm1 log log2 log1p pow sqrt rsqrt sin cos tanh erf sigmoid abs floor
ceil round minimum maximum clip fma where isnan isinf mulhi iota zeros full reshape transpose join
interleave sum max min prod mean argmax argmin any all rowsum rowmax cumsum dot dot_t atomic_add
atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_cas extent cdiv assert_ print
random_u32
""".split()


def run(text, *flags):
    """Runs a program of its own; gives (exit status, stdout, stderr)."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        done = subprocess.run([sys.executable, *flags, path], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr


class NamesTest(unittest.TestCase):
    def test_every_name_of_the_language_exists(self):
        self.assertEqual([name for name in NAMES if not hasattr(ph, name)], [])

    def test_a_name_that_is_not_there_is_python_s_own_error(self):
        class OfPython39(AttributeError):
            def __init__(self, *positional):  # takes nothing by name
                super().__init__(*positional)

        with mock.patch.object(ph, "AttributeError", OfPython39, create=True):
            with self.assertRaisesRegex(AttributeError, "has no 'float32'; write ph.f32"):
                ph.float32
            with self.assertRaisesRegex(AttributeError, "has no 'arange'; write ph.iota$"):
                ph.arange
            # Asked for by `from phobos.lang import f32`.
            self.assertFalse(hasattr(ph, "__path__"))

    def test_a_star_import_leaves_python_its_own_names(self):
        names = {}
        exec("from phobos.lang import *", names)
        import builtins

        self.assertEqual({name for name in names if hasattr(builtins, name)} - {"__doc__"}, set())
        self.assertIs(names["f32"], ph.f32)
        self.assertIs(names["kernel"], ph.kernel)
        self.assertEqual(set(NAMES) - names.keys(), {name for name in NAMES if hasattr(builtins, name)})

    def test_dtypes_print_and_pickle_as_written(self):
        self.assertEqual(repr(ph.bf16), "ph.bf16")
        self.assertEqual(repr(ph.tensor[ph.f32][16, "N"]), "ph.tensor[ph.f32][16, N]")
        self.assertIs(pickle.loads(pickle.dumps(ph.bool)), ph.bool)

    def test_a_builtin_called_by_python_says_where_it_belongs(self):
        with self.assertRaises(ph.NotInKernelError) as caught:
            ph.exp(1.0)
        self.assertIn("ph.exp was called by Python", str(caught.exception))
        self.assertIn("NumPy", caught.exception.remedy)
        self.assertIsInstance(caught.exception, TypeError)
        with self.assertRaises(ph.NotInKernelError):
            ph.ctx.block.x

    def test_a_function_under_fn_is_not_python_s(self):
        @ph.fn
        def twice(v):
            return v + v

        with self.assertRaisesRegex(ph.NotInKernelError, "twice was called by Python"):
            twice(1)
        self.assertEqual(twice.__wrapped__(2), 4)

    def test_every_class_of_errors_has_a_reason_and_a_remedy(self):
        classes = [kind for kind in vars(ph).values() if isinstance(kind, type) and issubclass(kind, ph.PhobosError)]
        self.assertGreater(len(classes), 9)
        for kind in classes:
            error = kind("no")
            self.assertRegex(error.reason, "^[a-z_]+$", kind)
            self.assertRegex(error.remedy, r"^[A-Z].*\.$", kind)
            self.assertEqual(str(error), "no")
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((str(again), again.reason, again.remedy), ("no", error.reason, error.remedy))

    def test_errors_carry_their_parts_and_pickle(self):
        error = ph.LaunchError("no", kernel="add", key="N=7", reason="race", remedy="Do so.")
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual(str(again), "add at N=7: no\nDo so.")
        self.assertEqual((again.kernel, again.key, again.reason), ("add", "N=7", "race"))
        self.assertEqual(
            f"{type(again).__module__}.{type(again).__name__}", "phobos.lang.LaunchError"
        )
        for name in (
            "KernelSourceError",
            "ArgumentError",
            "TuneError",
            "DaemonError",
            "ReferenceFailedError",
        ):
            self.assertTrue(issubclass(getattr(ph, name), ph.PhobosError), name)

    def test_the_package_alone_says_where_the_language_is(self):
        import phobos

        with self.assertRaisesRegex(AttributeError, "no 'kernel'; .* `import phobos.lang as ph`"):
            phobos.kernel
        self.assertFalse(hasattr(phobos, "sys"))

    def test_an_old_python_is_told_which_it_must_be(self):
        _, _, err = run("import sys; sys.version_info = (3, 8, 10); import phobos.lang")
        self.assertIn("ImportError: phobos needs Python 3.9 or newer, and this is 3.8", err)

    def test_import_needs_neither_numpy_nor_the_library(self):
        status, out, err = run(
            """
            from __future__ import annotations
            import sys
            import phobos.lang
            phobos.lang.kernel
            slow = {"numpy", "json", "inspect", "dataclasses", "typing", "linecache", "difflib"}
            with open("/proc/self/maps") as maps:
                print(sorted(slow & set(sys.modules)) + (["library"] if "phobos.so" in maps.read() else []))
            # What a launch needs of the package is there: the first one loads the library alone.
            before = set(sys.modules)
            from phobos import _library, _reference, _result, _tuning
            assert set(sys.modules) == before, set(sys.modules) - before
            """,
            "-S",
        )
        self.assertEqual((status, out), (0, "[]\n"), err)


class DecoratorsTest(unittest.TestCase):
    def refused(self, pattern):
        return self.assertRaisesRegex(ph.KernelSourceError, pattern)

    def test_key_must_be_a_tuple_of_names(self):
        with self.refused("with the comma"):
            ph.kernel(key="N")
        with self.refused("names of extents"):
            ph.kernel(key=(1,))

    def test_kernel_needs_no_parentheses_but_a_function(self):
        @ph.kernel
        def bare(x: ph.tensor[ph.f32][4]):
            pass

        self.assertEqual((bare.__name__, repr(bare)), ("bare", repr(ph.kernel()(bare.__wrapped__))))
        with self.refused("above a function"):
            ph.kernel()(3)
        with self.refused("above a function"):
            ph.kernel(print)
        with self.refused("not both"):
            ph.kernel(bare.__wrapped__, rtol=1e-3)

    def test_the_other_decorators_stand_below(self):
        with self.refused("stands above @ph.kernel"):

            @ph.autotune(BLOCK=[1, 2])
            @ph.kernel()
            def above(x: ph.tensor[ph.f32][4]):
                pass

    def test_plain_slips_are_refused(self):
        with self.refused("at least one constant"):
            ph.autotune()
        with self.refused("BLOCK must be a list"):
            ph.autotune(BLOCK=4)
        with self.refused("takes strings"):
            ph.constraint(True)
        with self.assertRaisesRegex(ph.ArgumentError, "reference must be a function, not 3"):
            ph.kernel(reference=3)

    def test_all_of_them_together(self):
        @ph.kernel(key=("N",), rtol=1e-3, atol=1e-3, flush_l2=False)
        @ph.autotune(BLOCK=[256, 4096], THREADS=[64, 512], BITS=[32, 64], limit=10000)
        @ph.launch("THREADS", min_blocks=2)
        @ph.index_bits("BITS")
        @ph.aligned(x=16, N=4)
        @ph.constraint("BLOCK % THREADS == 0")
        @ph.fast_math
        def everything(x: ph.tensor[ph.f32][N]):
            """What it does."""

        self.assertEqual(everything.__name__, "everything")
        self.assertEqual(everything.__doc__, "What it does.")
        self.assertEqual(everything.key, ("N",))
        self.assertIn("phobos kernel", repr(everything))


class SourceTest(unittest.TestCase):
    def test_annotations_evaluate_without_the_future_import_where_python_can(self):
        status, out, err = run("""
            from phobos import lang as ph
            N = 4

            @ph.kernel()
            @ph.autotune(BLOCK=[1, 2])
            def f(x: ph.tensor[ph.f32][16, N], scale: ph.f32, on: ph.bool, t: ph.tile[ph.i8][4]):
                pass
            print(f.__wrapped__.__annotations__["x"])
            """)
        self.assertEqual((status, out), (0, "ph.tensor[ph.f32][16, 4]\n"), err)

    @unittest.skipIf(sys.version_info >= (3, 14), "annotations are deferred")
    def test_an_extent_without_the_future_import_is_explained(self):
        status, _, err = run("""
            import phobos.lang as ph

            @ph.kernel(key=("ROWS",))
            @ph.autotune(BLOCK=[1, 2])
            def f(x: ph.tensor[ph.f32][ROWS]):
                pass
            """)
        self.assertEqual(status, 1)
        self.assertIn("f: 'ROWS' in the annotation of 'x' is an extent", err)
        self.assertIn("from __future__ import annotations", err)

    @unittest.skipIf(sys.version_info >= (3, 14), "annotations are deferred")
    def test_an_extent_below_a_bare_kernel_decorator_is_explained(self):
        for below in "autotune(BLOCK=[1, 2])", "launch(256)", "aligned(x=16)", "constraint('N > 1')":
            status, _, err = run(f"""
                import phobos.lang as ph

                @ph.kernel
                @ph.{below}
                def f(x: ph.tensor[ph.f32][N]):
                    pass
                """)
            self.assertEqual(status, 1, below)
            self.assertIn("f: 'N' in the annotation of 'x' is an extent", err, below)

    @unittest.skipIf(sys.version_info >= (3, 14), "annotations are deferred")
    def test_an_extent_below_a_bare_kernel_decorator_alone_is_explained(self):
        status, _, err = run("""
            import phobos.lang as ph
            again = ph.kernel  # harmless, and no decorator

            @ph.kernel
            def f(x: ph.tensor[ph.f32][N]):
                pass
            """)
        self.assertEqual(status, 1)
        self.assertIn("f: 'N' in the annotation of 'x' is an extent", err)
        self.assertNotIn("NameError", err)

    def test_kernel_is_a_name_like_others(self):
        self.assertIs(ph.kernel, ph.kernel)
        self.assertIn("kernel", dir(ph))
        self.assertIn("kernel", ph.__all__)
        with self.assertRaisesRegex(AttributeError, "no 'kernal'; write ph.kernel"):
            ph.kernal

    def test_a_kernel_without_text_says_so_when_used(self):
        names = {}
        exec(
            compile(
                "from __future__ import annotations\nimport phobos.lang as ph\n"
                "@ph.kernel()\ndef f(x: ph.tensor[ph.f32][N]):\n    pass\n",
                "<string>",
                "exec",
            ),
            names,
        )
        with self.assertRaises(ph.KernelSourceError) as caught:
            names["f"][(1,)](bytearray(4))
        self.assertIn("Put the kernel in a file", str(caught.exception))
        self.assertEqual(caught.exception.reason, "no_source")

    def test_a_cell_that_linecache_knows_is_a_source(self):
        import linecache

        text = (
            "from __future__ import annotations\nimport phobos.lang as ph\n"
            "@ph.kernel()\ndef f(x: ph.tensor[ph.f32][N]):\n    pass\n"
        )
        linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(True), "<cell 1>")
        names = {}
        exec(compile(text, "<cell 1>", "exec"), names)
        self.assertEqual(names["f"]._source, text)

    @staticmethod
    def source_of_last(*cells):
        """Of f, as it is bound when these cells have run."""
        import linecache

        names = {}
        for i, text in enumerate(cells):
            name = f"<cell of several {i}>"
            linecache.cache[name] = (len(text), None, text.splitlines(True), name)
            flags = __import__("__future__").annotations.compiler_flag
            exec(compile(text, name, "exec", flags), names)
        return names["f"]._source

    def test_what_earlier_cells_bind_is_part_of_a_cells_source(self):
        first = (
            "from __future__ import annotations\nimport phobos.lang as ph\nimport os\n"
            "WIDE, C, D, UNUSED, PARTS = 2.5, 4, 'a', 5, [1]\n"
        )
        cell = "C = 8\n@ph.kernel\ndef f(x: ph.tensor[ph.f32][N]):\n    x[C] = WIDE if D == 'a' else PARTS\n"
        self.assertEqual(
            self.source_of_last(first, cell), cell + "\nD = 'a'\nWIDE = 2.5\nimport phobos.lang as ph\n"
        )

    def test_a_kernels_own_names_are_not_those_of_earlier_cells(self):
        first = "import phobos.lang as ph\nn, B, N, M, C = 1000, 64, 1 << 20, 8, 4\n"
        cell = (
            "@ph.kernel(key=('N',))\n@ph.autotune(B=[16, 32])\n"
            "def f(x: ph.tensor[ph.f32][M, N], n: ph.i32):\n"
            "    for i in ph.range(0, N, B):\n        x[M - 1, i:+B] = n + C\n"
        )
        self.assertEqual(
            self.source_of_last(first, cell), cell + "\nC = 4\nimport phobos.lang as ph\n"
        )

    def test_a_file_over_the_limit_is_refused_when_used(self):
        status, _, err = run(
            "import phobos.lang as ph\n@ph.kernel()\ndef f(x: ph.tensor[ph.f32][4]):\n    pass\n"
            "f[(1,)](bytearray(4))\n" + "#" * (1 << 20)
        )
        self.assertEqual(status, 1)
        self.assertIn("larger than 1 MiB", err)


if __name__ == "__main__":
    unittest.main()
