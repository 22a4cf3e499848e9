# SPDX-License-Identifier: Apache-2.0
"""Wrong values, everywhere that the package takes one: each is accepted, or refused by an error of
the package that says what was wrong. Over the stand-in library.
"""

from __future__ import annotations

import math
import unittest

import numpy as np

import fake
import phobos.lang as ph


class Odd:
    """An object of no use here, whose repr fails too."""

    def __repr__(self):
        raise RuntimeError("no repr")


VALUES = (
    None, "a", b"a", "", -1, 0, 300, 2**70, 10**400, 10**5000, 1.5, 1e300, math.nan, math.inf, True,
    1j, Odd(), object, [1], [], (), {}, np.int64(300), np.int64(-1), np.float32(2), np.array(3),
    np.zeros(3), np.zeros(3, "M8[s]"), np.zeros((2, 2), np.float32),
)  # fmt: skip

SCALARS = ("f16", "bf16", "f32", "f64", "i8", "i64", "u32", "u64", "bool")


def blocks(meta):
    return (1,)


def doubled(x, out, *scalars):
    return {"out": 2 * x}


class Case(unittest.TestCase):
    def setUp(self):
        scalars = [fake.scalar(name, name) for name in SCALARS]
        fake.describe("add", [fake.tensor("x"), fake.tensor("out", is_written=True), *scalars])
        self.arrays = np.ones(8, np.float32), np.zeros(8, np.float32)
        self.scalars = dict.fromkeys(SCALARS, 1)

        @ph.kernel(key=("N",), reference=doubled)
        @ph.autotune(BLOCK=[256, 512])
        def add(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
            pass

        self.add = add

    def tune(self, grid=blocks, **options):
        return self.add.tune(grid, *self.arrays, **self.scalars, **options)

    def outcome(self, call, value):
        """What the call raised, or None. Fails where that is not an error of the package."""
        try:
            call(value)
        except ph.PhobosError as error:
            self.assertTrue(error.message)
            self.assertRegex(error.reason, "^[a-z_]+$")
            self.assertRegex(error.remedy, "^[A-Z].*[.:)]$")
            self.assertLess(len(str(error)), 500)
            return error
        except Exception as error:
            self.fail(f"{type(error).__name__} for a {type(value).__name__}: {error}")
        return None


class EverywhereTest(Case):
    def places(self):
        add, (x, out), scalars = self.add, self.arrays, self.scalars
        result = self.tune()
        for name in SCALARS:
            yield f"scalar {name}", lambda v, n=name: add[blocks](x, out, **{**scalars, n: v})
        yield "x", lambda v: add[blocks](v, out, **scalars)
        yield "out", lambda v: add[blocks](x, v, **scalars)
        yield "grid", lambda v: add[v](x, out, **scalars)
        yield "stream", lambda v: add[blocks](x, out, **scalars, stream=v)
        yield "a parameter", lambda v: add[blocks](x, out, v)
        yield "a call", lambda v: add(v)
        yield "tune grid", lambda v: self.tune(v)
        yield "warm grid", lambda v: add.warm(v, x, out, **scalars)
        for name in ("reference", "rtol", "atol", "flush_l2", "force"):
            yield f"tune {name}", lambda v, n=name: self.tune(**{n: v})
        yield "result by position", lambda v: add.result(v)
        yield "result", lambda v: add.result(N=v)
        yield "result of another extent", lambda v: add.result(N=1, M=v)
        yield "adopt", lambda v: add.adopt(v)
        yield "from_json", lambda v: ph.Result.from_json(v)
        yield "Result", lambda v: ph.Result(v)
        yield "table sort", lambda v: result.table(sort=v)
        yield "table limit", lambda v: result.table(limit=v)
        for name in ("key", "reference", "rtol", "atol", "flush_l2"):
            yield f"kernel {name}", lambda v, n=name: ph.kernel(**{n: v})
        yield "autotune", lambda v: ph.autotune(BLOCK=v)
        yield "autotune value", lambda v: ph.autotune(BLOCK=[v])
        yield "autotune limit", lambda v: ph.autotune(limit=v, BLOCK=[1])
        for name in ("launch", "index_bits", "constraint", "fast_math", "fn"):
            yield name, getattr(ph, name)
        yield "aligned", lambda v: ph.aligned(x=v)
        for name in ("kernel", "launch", "index_bits", "aligned", "constraint", "autotune"):
            made = (
                ph.autotune(A=[1])
                if name == "autotune"
                else (getattr(ph, name)(*([32] if name in ("launch", "index_bits") else [])))
            )
            yield f"below {name}", made
        yield "on_tune", lambda v: ph.on_tune(v)()
        yield "to_bf16", ph.to_bf16
        yield "from_bf16", ph.from_bf16
        for name in ("exp", "range", "f32", "tensor", "let"):
            yield f"a call of {name}", getattr(ph, name)

    def test_only_errors_of_the_package(self):
        for place, call in self.places():
            refused = 0
            for i, value in enumerate(VALUES):
                if value is object and place.endswith("grid"):
                    continue  # what a grid function raises is the caller's own
                with self.subTest(place, value=i):
                    refused += self.outcome(call, value) is not None
            if place not in ("autotune value", "autotune limit", "launch", "index_bits", "aligned"):
                self.assertGreater(refused, 0, place)  # those are the compiler's to refuse


class WordsTest(Case):
    def check(self, call, pattern, kind=ph.ArgumentError):
        with self.assertRaisesRegex(kind, pattern):
            call()

    def scalar(self, name, value):
        return lambda: self.add[blocks](*self.arrays, **{**self.scalars, name: value})

    def test_scalars(self):
        for name, value, pattern in (
            ("f16", 1e5, r"f16 = 100000.0 does not fit ph.f16 \(-65504 to 65504\)$"),
            ("f16", 70000, r"does not fit ph.f16 \(-65504 to 65504\)$"),
            ("bf16", 1e39, r"does not fit ph.bf16 \(-3.3895e38 to 3.3895e38\)$"),
            ("f32", 2**200, r"does not fit ph.f32 \(-3.4028e38 to 3.4028e38\)$"),
            ("f64", 10**400, r"does not fit ph.f64 \(-1.7977e308 to 1.7977e308\)$"),
            ("i8", np.int64(300), r"i8 = 300 does not fit ph.i8 \(-128 to 127\)$"),
            ("u32", -1, r"u32 = -1 does not fit ph.u32 \(0 to 4294967295\)$"),
            ("i64", 1.5, r"it takes an integer, not 1.5\nPass int\(i64\).$"),
            ("i64", math.nan, r"it takes an integer, not nan$"),
            ("bf16", "1", r"it takes a number, not '1'$"),
            ("bool", 2, r"it takes True or False, not 2$"),
        ):
            self.check(self.scalar(name, value), pattern)

    def test_arrays(self):
        (x, out), scalars, add = self.arrays, self.scalars, self.add
        wide = np.zeros(16, np.float32)
        for given, pattern in (
            ((b"\0" * 32, out), r'u8 in the array\nPass numpy.frombuffer\(x, "float32"\).$'),
            ((x, bytearray(32)), r'Pass numpy.frombuffer\(out, "float32"\).$'),
            ((x, b"\0" * 32), r'Make out an array of "float32" from the start: the kernel writes'),
            ((x, out.astype(float)), r'Make out an array of "float32" from the start'),
            ((x.astype(float), out), r'Pass x.astype\("float32"\).$'),
            (([1.0], out), r'x is a list, .*\nPass numpy.array\(x, "float32"\).$'),
            ((wide[::2], out), r"Pass numpy.ascontiguousarray\(x\).$"),
            ((x, wide[::2]), r"copy = numpy.ascontiguousarray\(out\), .* out\[...\] = copy.$"),
        ):
            self.check(lambda: add[blocks](*given, **scalars), pattern)

    def test_options(self):
        for call, pattern in (
            (lambda: ph.kernel(reference=3), "^reference must be a function, not 3"),
            (lambda: ph.kernel(rtol="a"), "^rtol must be a finite number"),
            (lambda: ph.kernel(flush_l2="no"), "^flush_l2 must be True or False, not 'no'"),
            (lambda: self.tune(rtol="a"), "^add: rtol must be a finite number .*, not 'a'"),
            (lambda: self.tune(atol=-1), "^add: atol must be .* not negative, or None, not -1"),
            (lambda: self.tune(force="no"), "^add: force must be True or False"),
            (lambda: self.tune(reference=3), "^add: reference must be a function"),
            (lambda: self.add.result(1024), r"by name\nWrite add.result\(N=1024\)"),
            (lambda: self.add.result(N="a"), "N is an extent, a whole number .*, not 'a'"),
            (lambda: self.add.result(N=-1), "N is an extent, a whole number .*, not -1"),
            (lambda: self.add.result(N=1, M=2), "'M' is no extent of the kernel"),
            (lambda: self.add.adopt(None), "^add: adopt takes a Result, not None\n"),
            (lambda: ph.on_tune(None), "takes a function that gets a Result, not None"),
            (lambda: ph.from_bf16(np.ones(2, np.float32)), "takes an array of uint16"),
            (lambda: ph.to_bf16("a"), "takes numbers, not 'a'"),
            (lambda: self.tune().table(limit=-1), "limit must be a number of variants"),
        ):
            self.check(call, pattern)
        self.check(lambda: ph.kernel(key=3), "a tuple of names", ph.KernelSourceError)
        self.check(lambda: ph.f32(3), r"write ph.cast\(v, ph.f32\)", ph.NotInKernelError)

    def test_a_result_of_another_kernel_is_not_adopted(self):
        other = ph.Result({**fake.RESULT, "kernel": "other"})
        self.check(lambda: self.add.adopt(other), "the Result is of the kernel other")

    def test_texts_that_are_no_result(self):
        for text in (
            "not json", "3", "[]", "{}", '{"phobos_result": 2}', '{"phobos_result": 1}',
            '{"phobos_result": 1, "result": {}, "message": ""}',
            '{"phobos_result": 1, "result": {"kernel": "a", "key": 3}, "message": ""}',
            '{"phobos_result": 1, "result": {"kernel": "a"}, "message": "\u00e9"}',
        ):  # fmt: skip
            self.check(lambda: ph.Result.from_json(text), "no (record of a )?Result")

    def test_a_listener_ends_once(self):
        heard = []
        stops = [ph.on_tune(heard.append), ph.on_tune(heard.append)]
        stops[0](), stops[0]()
        self.tune()
        self.assertEqual(len(heard), 1)
        stops[1]()

    def test_names_of_other_languages(self):
        for name, right in (
            ("float32", "f32"),
            ("uint8", "u8"),
            ("bfloat16", "bf16"),
            ("maximun", "maximum"),
        ):
            with self.assertRaisesRegex(AttributeError, f"no '{name}'; write ph.{right}$"):
                getattr(ph, name)

    def test_rank_0_stays_rank_0(self):
        self.assertEqual(ph.to_bf16(1.5).shape, ())
        self.assertEqual(ph.to_bf16(np.float32(1.5)).shape, ())


if __name__ == "__main__":
    unittest.main()
