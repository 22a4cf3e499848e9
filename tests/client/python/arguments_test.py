# SPDX-License-Identifier: Apache-2.0
"""Binding of arguments: what is accepted, what is refused and how it is explained."""

import array
import ctypes
import math
import random
import struct
import unittest

import numpy as np

import fake
import phobos.lang as ph
from phobos._arguments import Parameter, Signature, bf16_bits, describe


def signature(*parameters, extents=("N",)):
    return Signature("add", [Parameter(one) for one in parameters], list(extents))


class TensorsTest(unittest.TestCase):
    def setUp(self):
        self.pair = signature(fake.tensor("x"), fake.tensor("out", is_written=True))

    def refused(self, pattern):
        return self.assertRaisesRegex(ph.ArgumentError, pattern)

    def test_numpy_arrays_bind_by_address(self):
        x, out = np.ones(5, np.float32), np.zeros(5, np.float32)
        binding = self.pair.bind((x, out))
        self.assertEqual(binding.values, [x.ctypes.data, out.ctypes.data])
        self.assertEqual((binding.extents, binding.shapes), ((5,), [(5,), (5,)]))

    def test_every_dtype_by_numpy_and_by_buffers(self):
        for name, dtype, code in (
            ("f16", "float16", None), ("f32", "float32", "f"), ("f64", "float64", "d"),
            ("i8", "int8", "b"),
            ("i16", "int16", "h"), ("i32", "int32", "i"), ("i64", "int64", "q"),
            ("u8", "uint8", "B"),
            ("u16", "uint16", "H"), ("u32", "uint32", "I"), ("u64", "uint64", "Q"),
            ("bool", "bool", None),
        ):  # fmt: skip
            one = signature(fake.tensor("x", name))
            self.assertEqual(one.bind((np.zeros(3, dtype),)).extents, (3,), name)
            if code:
                self.assertEqual(one.bind((array.array(code, [1, 2]),)).extents, (2,), name)
            with self.refused("x is ph." + name):
                one.bind((np.zeros(3, "complex64"),))

    def test_long_is_i64(self):
        self.assertEqual(
            signature(fake.tensor("x", "i64")).bind((array.array("l", [1]),)).extents, (1,)
        )

    def test_buffers_bind_by_address(self):
        one = signature(fake.tensor("x", "u8"))
        memory = (ctypes.c_uint8 * 6)()
        self.assertEqual(one.bind((memory,)).values, [ctypes.addressof(memory)])
        data = bytearray(b"abc")
        view = memoryview(data)
        address = ctypes.addressof((ctypes.c_char * 3).from_buffer(data))
        self.assertEqual(one.bind((data,)).values, [address])
        self.assertEqual(one.bind((view[1:],)).values, [address + 1])
        self.assertEqual(one.bind((b"xyz",)).extents, (3,))

    def test_a_bytearray_stays_put_while_it_is_bound(self):
        data = bytearray(8)
        binding = signature(fake.tensor("x", "u8")).bind((data,))
        with self.assertRaises(BufferError):
            data.extend(b"more")
        del binding
        data.extend(b"more")

    def test_dtype_must_match_exactly(self):
        with self.refused(
            r'x is ph.f32 in the kernel and f64 in the array\nPass x.astype\("float32"\)'
        ):
            self.pair.bind((np.zeros(5), np.zeros(5, np.float32)))
        with self.refused("and >f4 in the array|and float32|>f4"):
            self.pair.bind((np.zeros(5, ">f4"), np.zeros(5, np.float32)))

    def test_explicit_strides_of_row_major_order_are_contiguous(self):
        class Exporter:
            def __init__(self, array, strides):
                said = dict(array.__array_interface__)
                self.__array_interface__ = {**said, "strides": strides}
                self.kept = array

        array = np.zeros((4, 1, 8), np.float32)
        for strides, wanted in (
            ((32, 32, 4), None), ((32, 999, 4), None), ((4, 4, 16), (4, 4, 16)), (None, None),
        ):  # fmt: skip
            self.assertEqual(describe(Exporter(array, strides)).strides, wanted)
        empty = np.zeros((0, 8), np.float32)
        self.assertIsNone(describe(Exporter(empty, (999, 4))).strides)
        dates = np.zeros(8, "datetime64[ns]")[::2]
        self.assertEqual(describe(dates).strides, (16,))

    def test_strides_are_told(self):
        x = np.zeros((8, 8), np.float32)
        square = signature(fake.tensor("x", dims=("M", "N")), extents=("M", "N"))
        with self.refused(
            r"x is not contiguous in row-major order: shape \(8, 8\), strides \(4, 32\) bytes"
        ):
            square.bind((x.T,))
        with self.refused(r"strides \(8,\) bytes\nPass numpy.ascontiguousarray\(x\)"):
            self.pair.bind((x.reshape(64)[::2], np.zeros(32, np.float32)))
        with self.refused(r"strides \(2,\) bytes"):
            signature(fake.tensor("x", "u8")).bind((memoryview(bytearray(8))[::2],))
        self.assertEqual(square.bind((x[2:4],)).extents, (2, 8))
        self.assertEqual(square.bind((x[:1].T[:8],)).extents, (8, 1))

    def test_read_only_arrays_are_for_reading(self):
        x, out = np.zeros(5, np.float32), np.zeros(5, np.float32)
        x.flags.writeable = False
        self.pair.bind((x, out))
        with self.refused("out is written by the kernel, and the array is read-only"):
            self.pair.bind((out, x))
        with self.refused("read-only"):
            signature(fake.tensor("x", "u8", is_written=True)).bind((b"abc",))

    def test_one_name_has_one_value(self):
        with self.refused(r"N is 5 by x.shape\[0\] and 6 by out.shape\[0\]"):
            self.pair.bind((np.zeros(5, np.float32), np.zeros(6, np.float32)))
        with self.refused(r"x.shape\[1\] is 4; the kernel declares x: ph.tensor\[ph.f32\]\[N, 3\]"):
            signature(fake.tensor("x", dims=("N", 3))).bind((np.zeros((5, 4), np.float32),))
        with self.refused(r"x has rank 2, shape \(5, 1\)"):
            self.pair.bind((np.zeros((5, 1), np.float32), np.zeros(5, np.float32)))

    def test_extents_come_in_the_order_of_the_description(self):
        two = signature(
            fake.tensor("x", dims=("M", "N")),
            fake.tensor("y", dims=("K",)),
            extents=("K", "M", "N"),
        )
        self.assertEqual(
            two.bind((np.zeros((2, 3), np.float32), np.zeros(7, np.float32))).extents, (7, 2, 3)
        )

    def test_empty_arrays_bind(self):
        self.assertEqual(
            self.pair.bind((np.zeros(0, np.float32), np.zeros(0, np.float32))).extents, (0,)
        )
        self.assertEqual(signature(fake.tensor("x", "u8")).bind((bytearray(),)).extents, (0,))

    def test_an_address_between_elements_is_refused(self):
        odd = np.frombuffer(bytearray(41), np.uint8)[1:].view(np.float32)
        with self.refused("no multiple of 4"):
            self.pair.bind((odd, np.zeros(10, np.float32)))

    def test_what_is_no_array(self):
        for argument, pattern in (
            ([1.0, 2.0], "x is a list, which is no array"),
            (3.0, "x is a float, which is no array"),
            (None, "x is a NoneType"),
            (type("Torch", (), {"numpy": None})(), r"Pass x.numpy\(\)"),
            (type("Cuda", (), {"__cuda_array_interface__": None})(), "of no GPU that this"),
        ):
            with self.refused(pattern):
                self.pair.bind((argument, np.zeros(5, np.float32)))

    def test_bf16_is_taken_as_bits(self):
        one = signature(fake.tensor("x", "bf16"))
        self.assertEqual(one.bind((np.zeros(3, np.uint16),)).extents, (3,))
        with self.refused(r"Pass ph.to_bf16\(x\)"):
            one.bind((np.zeros(3, np.float32),))

    def test_arguments_by_name(self):
        self.assertEqual(self.pair.ordered((1,), {"out": 2}), (1, 2))
        for positional, named, pattern in (
            ((1,), {}, "lacks out; its parameters are x, out"),
            ((1, 2, 3), {}, r"takes 2 arguments \(x, out\), got 3"),
            ((1,), {"y": 2}, "has no parameter 'y'"),
            ((1,), {"x": 2}, "got 'x' twice"),
        ):
            with self.refused(pattern):
                self.pair.ordered(positional, named)


class ScalarsTest(unittest.TestCase):
    def slot(self, dtype, value):
        one = signature(fake.scalar("s", dtype), extents=())
        packed = one.pack(one.bind((value,)).values)
        self.assertEqual(len(packed), 8)
        return packed

    def test_values_fill_slots_of_eight_bytes(self):
        for dtype, value, code in (
            ("f16", 1.5, "e"), ("f32", 0.1, "f"), ("f64", 0.1, "d"), ("i8", -3, "b"),
            ("i16", -3, "h"), ("i32", -3, "i"),
            ("i64", -3, "q"), ("u8", 200, "B"), ("u16", 60000, "H"), ("u32", 1 << 31, "I"),
            ("u64", 1 << 63, "Q"),
            ("bool", True, "?"), ("f32", math.inf, "f"), ("f32", 3, "f"),
        ):  # fmt: skip
            wanted = struct.pack("<" + code, value)
            self.assertEqual(self.slot(dtype, value), wanted + bytes(8 - len(wanted)), dtype)

    def test_numpy_scalars(self):
        self.assertEqual(self.slot("f32", np.float64(0.5)), self.slot("f32", 0.5))
        self.assertEqual(self.slot("i32", np.int64(-7)), self.slot("i32", -7))
        self.assertEqual(self.slot("bool", np.bool_(True)), self.slot("bool", 1))

    def test_what_does_not_fit_is_refused(self):
        for dtype, value, pattern in (
            ("i8", 128, r"s = 128 does not fit ph.i8 \(-128 to 127\)"),
            ("u32", -1, r"s = -1 does not fit ph.u32 \(0 to 4294967295\)"),
            ("i32", 1 << 31, "does not fit ph.i32"),
            ("f32", 1e39, "does not fit ph.f32"),
            ("f16", 70000.0, "does not fit ph.f16"),
            ("bf16", 1e39, "does not fit ph.bf16"),
            ("f64", 10**400, "does not fit ph.f64"),
            ("i32", 2.0, "s is ph.i32: it takes an integer, not 2.0"),
            ("f32", "2", "s is ph.f32: it takes a number, not '2'"),
            ("bf16", None, "s is ph.bf16: it takes a number"),
            ("bool", 2, "s is ph.bool: it takes True or False, not 2"),
            ("bool", "no", "it takes True or False"),
            ("f32", np.zeros(3, np.float32), "it takes a number"),
        ):
            with self.subTest(dtype=dtype, value=str(value)):
                with self.assertRaisesRegex(ph.ArgumentError, pattern):
                    self.slot(dtype, value)

    def test_bf16_rounds_once_to_nearest_even(self):
        numbers = random.Random(7)
        cases = [
            0.0,
            -0.0,
            1.0,
            1.00390625,
            1.01171875,
            3.3895e38,
            -3.3895e38,
            1e-40,
            9.2e-41,
            4.5e-41,
            1e-45,
            math.inf,
            -math.inf,
        ]
        cases += [numbers.uniform(-1, 1) * 2.0 ** numbers.randint(-140, 127) for _ in range(2000)]
        for value in cases:
            bits = bf16_bits(value)
            got = struct.unpack("<f", struct.pack("<I", bits << 16))[0]
            if math.isinf(value):
                self.assertEqual(got, value)
                continue
            self.assertEqual(math.copysign(1, got), math.copysign(1, value))
            for step in (-1, 1):
                if not 0 <= (bits & 0x7FFF) + step < 0x7F80:
                    continue
                other = struct.unpack("<f", struct.pack("<I", (bits + step) << 16))[0]
                near, far = abs(got - value), abs(other - value)
                self.assertTrue(near < far or (near == far and bits % 2 == 0), (value, got, other))
        self.assertEqual(bf16_bits(math.nan), 0x7FC0)
        self.assertEqual(bf16_bits(1 + 2**-8 + 2**-40), 0x3F81)  # f32 in between would round down
        with self.assertRaises(OverflowError):
            bf16_bits(3.4e38)


if __name__ == "__main__":
    unittest.main()
