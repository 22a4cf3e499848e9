# SPDX-License-Identifier: Apache-2.0
"""What a reference gets, and what is made of its answer."""

import ctypes
import importlib.util
import mmap
import os
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np

import fake
import phobos.lang as ph
from phobos import _reference
from phobos._arguments import Parameter, Signature


def lay_over(address, file, size):
    """What the library does for large arguments: a file's pages there, copy on write."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    map_fixed = 0x10
    both = mmap.PROT_READ | mmap.PROT_WRITE
    if libc.mmap(address, size, both, mmap.MAP_PRIVATE | map_fixed, file, 0) != address:
        raise OSError("mmap")


def parameters(*records):
    return [Parameter(one) for one in records]


class CopiesTest(unittest.TestCase):
    def test_arrays_are_copies_of_their_own(self):
        x = np.arange(6, dtype=np.int16).reshape(2, 3)
        (copy,) = _reference.copies(
            parameters(fake.tensor("x", "i16", ("M", "N"))), [(2, 3)], [x.ctypes.data]
        )
        np.testing.assert_array_equal(copy, x)
        self.assertEqual(copy.dtype, np.int16)
        copy[0, 0] = 99
        self.assertEqual(x[0, 0], 0)
        self.assertTrue(copy.flags.writeable and copy.flags.owndata or copy.base.flags.owndata)

    def test_what_the_library_filled_is_taken_as_it_is(self):
        given = _reference.Memory(24)
        self.assertEqual(given.address % mmap.PAGESIZE, 0)
        given.array(np.float32, 6)[:] = np.arange(6)
        y = np.ones(6, np.float32)
        taken, copy = _reference.copies(
            parameters(fake.tensor("x"), fake.tensor("y")),
            [(6,), (6,)],
            [given.address, y.ctypes.data],
            {0: given, 1: _reference.Memory(24)},
        )
        self.assertEqual(taken.tolist(), [0, 1, 2, 3, 4, 5])
        self.assertTrue(np.shares_memory(taken, given.array(np.float32, 6)))
        self.assertTrue(taken.flags.writeable)
        self.assertFalse(np.shares_memory(copy, y))

    def test_what_is_kept_has_pages_of_its_own(self):
        size = 3 * mmap.PAGESIZE
        with tempfile.TemporaryFile() as file:
            file.write(b"a" * size)
            file.flush()
            given = _reference.Memory(size)
            lay_over(given.address, file.fileno(), size)
            kept = given.array("uint8", size)
            kept[0] = ord("b")
            given.close()
            file.seek(0)
            file.write(b"c" * size)
            file.flush()
        self.assertEqual(kept.tobytes(), b"b" + b"a" * (size - 1))

    def test_a_forked_child_has_pages_of_its_own(self):
        size = 3 * mmap.PAGESIZE
        told, tell = os.pipe()
        with tempfile.TemporaryFile() as file:
            file.write(b"a" * size)
            file.flush()
            given = _reference.Memory(size)
            lay_over(given.address, file.fileno(), size)
            seen = given.array("uint8", size)
            child = os.fork()
            if child == 0:
                os.read(told, 1)
                os._exit(0 if seen.tobytes() == b"a" * size else 1)
            file.seek(0)
            file.write(b"c" * size)
            file.flush()
        os.write(tell, b"x")
        os.close(tell)
        os.close(told)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_thread_may_go_on_writing_what_is_kept(self):
        given = _reference.Memory(1 << 24)
        counts = given.array("uint8", 1 << 24)[:: mmap.PAGESIZE]
        added, is_over = 0, threading.Event()

        def count():
            nonlocal added
            while not is_over.is_set():
                np.add(counts, 1, out=counts)
                added += 1

        thread = threading.Thread(target=count)
        thread.start()
        for _ in range(300):
            given.close()
        is_over.set()
        thread.join()
        self.assertEqual(np.unique(counts).tolist(), [added % 256])

    def test_what_is_not_kept_is_gone(self):
        given = _reference.Memory(1 << 20)
        given.array("uint8", 1 << 20)[:] = 1
        given.close()
        with open("/proc/self/maps") as maps:
            starts = [line.split("-")[0] for line in maps]
        self.assertNotIn(f"{given.address:x}", starts)

    def test_scalars_are_numpy_scalars_of_the_declared_type(self):
        a, b = np.float32(0.25), np.array([True])
        got = _reference.copies(
            parameters(fake.scalar("a", "f32"), fake.scalar("b", "bool")), [(), ()],
            [np.array([a]).ctypes.data, b.ctypes.data],
        )  # fmt: skip
        self.assertEqual((got[0], type(got[0])), (a, np.float32))
        self.assertEqual((got[1], type(got[1])), (True, np.bool_))

    def test_bf16_is_seen_as_f32(self):
        bits = np.array([0x3F80, 0xC000, 0x7F80], np.uint16)
        with mock.patch.dict(sys.modules, {"ml_dtypes": None}):
            tensor, scalar = _reference.copies(
                parameters(fake.tensor("x", "bf16"), fake.scalar("s", "bf16")),
                [(3,), ()],
                [bits.ctypes.data] * 2,
            )
        self.assertEqual((tensor.dtype, tensor.tolist()), (np.float32, [1.0, -2.0, np.inf]))
        self.assertEqual((scalar, type(scalar)), (1.0, np.float32))

    @unittest.skipUnless(importlib.util.find_spec("ml_dtypes"), "ml_dtypes is not installed")
    def test_with_ml_dtypes_bf16_is_its_type(self):
        import ml_dtypes

        x = np.array([1.0, -2.0], ml_dtypes.bfloat16)
        one = parameters(fake.tensor("x", "bf16", is_written=True))
        binding = Signature("add", one, ["N"]).bind((x,))
        (copy,) = _reference.copies(one, binding.shapes, binding.values)
        self.assertEqual((copy.dtype, copy.tolist()), (x.dtype, [1.0, -2.0]))
        answer = _reference.expected({"x": copy + copy}, one, binding.shapes, "add")
        self.assertEqual(answer["x"].tolist(), [0x4000, 0xC080])

    def test_an_empty_tensor(self):
        (copy,) = _reference.copies(parameters(fake.tensor("x", dims=("M", "N"))), [(0, 3)], [0])
        self.assertEqual(copy.shape, (0, 3))

    def test_numpy_missing_is_said(self):
        with mock.patch.dict(sys.modules, {"numpy": None}):
            with self.assertRaisesRegex(ph.ReferenceFailedError, "numpy is not installed"):
                _reference.copies([], [], [])


class ExpectedTest(unittest.TestCase):
    def setUp(self):
        self.parameters = parameters(
            fake.tensor("x"),
            fake.tensor("out", is_written=True),
            fake.tensor("half", "bf16", is_written=True),
        )
        self.answer = {"out": np.ones(4, np.float32), "half": np.ones(4, np.float32)}

    def expected(self, answer):
        return _reference.expected(answer, self.parameters, [(4,)] * 3, "add")

    def test_bytes_of_every_written_tensor(self):
        self.answer["out"] = np.arange(8, dtype=np.float32)[::2]
        got = self.expected(self.answer)
        self.assertEqual(sorted(got), ["half", "out"])
        self.assertEqual(got["out"].tobytes(), np.array([0, 2, 4, 6], np.float32).tobytes())
        self.assertEqual(got["half"].tobytes(), b"\x80\x3f" * 4)

    def test_wrong_answers(self):
        out = self.answer["out"]
        for change, pattern in (
            ({"y": out}, "returned 'y', which is no tensor that the kernel writes: it writes out, half"),
            ({"x": out}, "returned 'x', which is no tensor that the kernel writes"),
            ({"out": out[:3]}, r"out has shape \(3,\); the argument has \(4,\)"),
            ({"out": np.float32(1)}, r"out has shape \(\)"),
            (
                {"out": out.astype(np.float64)},
                r'out is float64; the kernel writes float32\nAdd .astype\("float32"\)',
            ),
            ({"half": out.astype(np.float64)}, "half is float64, not float32"),
            ({"out": np.ma.array(out)}, r"out is a masked array.*\nReturn out.filled\(value\)"),
        ):
            with self.assertRaisesRegex(ph.ReferenceFailedError, pattern):
                self.expected({**self.answer, **change})
        with self.assertRaisesRegex(ph.ReferenceFailedError, "returned nothing for half"):
            self.expected({"out": out})
        with self.assertRaisesRegex(
            ph.ReferenceFailedError, "returned a ndarray\nIt must return a dict"
        ):
            self.expected(out)
        self.parameters = parameters(fake.tensor("x"))
        with self.assertRaisesRegex(ph.ReferenceFailedError, "kernel writes: it writes none"):
            _reference.expected({"x": out}, self.parameters, [(4,)], "add")


class Bf16Test(unittest.TestCase):
    def test_round_trip_and_rounding(self):
        values = np.array(
            [1.0, 1.00390625, 1.01171875, -3.3895e38, 3.4e38, 1e-40, np.inf, np.nan], np.float32
        )
        bits = ph.to_bf16(values)
        self.assertEqual(bits.dtype, np.uint16)
        self.assertEqual(bits[:3].tolist(), [0x3F80, 0x3F80, 0x3F82])
        back = ph.from_bf16(bits)
        self.assertEqual(back[4], np.inf)
        self.assertTrue(np.isnan(back[7]))
        np.testing.assert_array_equal(ph.to_bf16(back[:7]), bits[:7])

    def test_all_nans_stay_nans(self):
        every = np.array([0x7F800001, 0xFFFFFFFF, 0x7FC00000], np.uint32).view(np.float32)
        self.assertTrue(np.isnan(ph.from_bf16(ph.to_bf16(every))).all())


if __name__ == "__main__":
    unittest.main()
