# SPDX-License-Identifier: Apache-2.0
"""Kernels on arrays of GPUs, over the stand-in library: stand-ins of the frameworks' arrays tell
of memory that the library says is a card's.
"""

from __future__ import annotations

import collections
import ctypes
import sys
import types
import unittest
from unittest import mock

import numpy as np

import fake
import phobos.lang as ph
from phobos._gpu import dlpack as _dlpack
from phobos._gpu import streams


def blocks(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


def scaled(x, out, alpha):
    return {"out": alpha * x}


def make(reference=None, dtype="f32"):
    fake.describe(
        "add",
        [
            fake.tensor("x", dtype),
            fake.tensor("out", dtype, is_written=True),
            fake.scalar("alpha"),
        ],
    )

    @ph.kernel(key=("N",), reference=reference)
    @ph.autotune(BLOCK=[256, 512])
    def add(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N], alpha: ph.f32):
        out[ph.ctx.block.x * BLOCK : +BLOCK] = alpha * x[ph.ctx.block.x * BLOCK : +BLOCK]

    return add


class Card:
    """Memory of a card: host memory that the stand-in library takes for it."""

    def __init__(self, ordinal, size=1 << 20):
        self.bytes = np.zeros(size, np.uint8)
        self.used = -self.bytes.ctypes.data % 256
        begin = self.bytes.ctypes.data
        fake.card(ordinal, begin, begin + size)
        self.ordinal = ordinal

    def array(self, values):
        values = np.asarray(values)
        view = self.bytes[self.used :][: values.nbytes].view(values.dtype).reshape(values.shape)
        view[...] = values
        self.used += -(-values.nbytes // 256) * 256
        return view


class Interface:
    """As CuPy's and numba's."""

    def __init__(self, view, stream=1, readonly=False, **changes):
        self.view, self.stream, self.asked = view, stream, 0
        self.changes = {"data": (view.ctypes.data, readonly), **changes}

    @property
    def dtype(self):
        return self.view.dtype

    @property
    def __cuda_array_interface__(self):
        self.asked += 1
        said = dict(self.view.__array_interface__, version=3, stream=self.stream)
        return {**said, **self.changes}


Device = collections.namedtuple("Device", "type index")


class Tensor:
    """As torch's."""

    def __init__(self, view, card=0, dtype=None, kind="cuda"):
        self.view = view
        self.shape = tuple(view.shape)
        self.dtype = dtype or f"torch.{view.dtype}"
        self.device = Device(kind, card)
        self.layout = "strided"

    def data_ptr(self):
        return self.view.ctypes.data

    def is_contiguous(self):
        return self.view.flags.c_contiguous

    def is_neg(self):
        return False

    def element_size(self):
        return self.view.itemsize

    def stride(self):
        return tuple(step // self.view.itemsize for step in self.view.strides)


class Packed:
    """As JAX's: DLPack alone."""

    def __init__(self, view, card=0, code=2, device=2):
        self.view, self.streams = view, []
        self.card, self.device = card, device
        self.shape = (ctypes.c_int64 * view.ndim)(*view.shape)
        self.strides = (ctypes.c_int64 * view.ndim)(*(s // view.itemsize for s in view.strides))
        self.tensor = _dlpack._DLTensor(
            view.ctypes.data, device, card, view.ndim, code, 8 * view.itemsize, 1,
            ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64)),
            ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64)), 0,
        )  # fmt: skip

    def __dlpack_device__(self):
        return self.device, self.card

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype = ctypes.py_object
        capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return capsule(ctypes.addressof(self.tensor), b"dltensor", None)


class Case(unittest.TestCase):
    def setUp(self):
        self.add = make()
        self.card = Card(0)
        self.x = self.card.array(np.arange(1024, dtype=np.float32))
        self.out = self.card.array(np.zeros(1024, np.float32))

    def tearDown(self):
        for ordinal in (0, 1):
            fake.card(ordinal, 0, 0)

    def addresses(self, *views):
        return [view.ctypes.data for view in views]

    def refused(self, pattern, *arguments, **options):
        with self.assertRaisesRegex(ph.ArgumentError, pattern) as caught:
            self.add[blocks](*arguments, **options)
        self.assertEqual(fake.counts()["launches"], 0)
        return caught.exception


class InterfaceTest(Case):
    def test_a_launch_goes_to_the_arrays_card_and_stream(self):
        self.add[blocks](Interface(self.x, stream=0x7700), Interface(self.out, stream=0x7700), 0.5)
        self.assertEqual(fake.values(2), self.addresses(self.x, self.out))
        self.assertEqual(fake.device(), "GPU-0")
        self.assertEqual(fake.stream(), 0x7700)
        self.assertEqual(fake.grid(), (4, 1, 1))

    def test_later_launches_read_each_array_once_and_ask_nobody(self):
        x, out = Interface(self.x), Interface(self.out)
        self.add[blocks](x, out, 0.5)
        x.asked = out.asked = 0
        with mock.patch("phobos._library.Library.call", side_effect=AssertionError):
            for _ in range(3):
                self.add[blocks](x, out, 0.5)
        self.assertEqual((x.asked, out.asked), (3, 3))
        self.assertEqual(fake.counts(), {"launches": 4, "prepares": 1, "tunes": 0})
        self.assertEqual(fake.stream(), 0)  # 1 is the default stream

    def test_both_names_of_the_default_stream_are_one(self):
        self.add[blocks](Interface(self.x, stream=None), Interface(self.out, stream=1), 0.5)
        self.assertEqual(fake.stream(), 0)

    def test_arrays_of_several_streams_need_one_said(self):
        x, out = Interface(self.x, stream=0x10), Interface(self.out, stream=0x20)
        self.assertIn("stream=", str(self.refused("2 streams .0x10, 0x20.", x, out, 0.5)))
        for _ in range(2):
            self.add[blocks](x, out, 0.5, stream=0x30)
            self.assertEqual(fake.stream(), 0x30)

    def test_the_host_is_not_the_card(self):
        host = np.zeros(1024, np.float32)
        error = self.refused(
            r"out is in host memory \(a numpy.ndarray\), and other arguments are on card 0",
            Interface(self.x), host, 0.5,
        )  # fmt: skip
        self.assertEqual(error.remedy, "Copy it to that card.")
        self.refused("x is in host memory", host, Interface(self.out), 0.5)
        self.refused("x is a list, which is no array", [1.0], Interface(self.out), 0.5)
        self.refused(
            "x is in the memory of no GPU that this process sees",
            Interface(np.zeros(1024, np.float32)), host, 0.5,
        )  # fmt: skip

    def test_each_card_has_its_own_plan(self):
        other = Card(1)
        x, out = other.array(self.x), other.array(self.out)
        self.add[blocks](Interface(self.x), Interface(self.out), 0.5)
        # The library says of another card's arrays that they are not of the plan's.
        with mock.patch.object(self.add, "_run", return_value=3):
            self.add[blocks](Interface(x), Interface(out), 0.5)
            self.assertEqual(fake.device(), "GPU-1")
            self.assertEqual(fake.values(2), self.addresses(x, out))
            self.assertEqual(fake.counts()["prepares"], 2)
            with self.assertRaisesRegex(ph.ArgumentError, "out is on card 0, and other arguments"):
                self.add[blocks](Interface(x), Interface(self.out), 0.5)

    def test_gaps_read_only_and_types(self):
        gaps = self.card.array(np.zeros(2048, np.float32))[::2]
        error = self.refused(
            r"x is not contiguous .* shape \(1024,\), strides \(8,\) bytes",
            Interface(gaps), Interface(self.out), 0.5,
        )  # fmt: skip
        self.assertIn("cupy.ascontiguousarray(x)", error.remedy)
        self.refused("read-only", Interface(self.x), Interface(self.out, readonly=True), 0.5)
        self.refused(
            "x is ph.f32 in the kernel and i32", Interface(self.x.view("i4")), Interface(self.out), 1
        )

    def test_types_by_their_names(self):
        for name, view in (
            ("bool", np.zeros(64, bool)), ("i8", np.zeros(64, np.int8)),
            ("f16", np.zeros(64, np.float16)), ("bf16", np.zeros(64, np.uint16)),
            ("f64", np.zeros(64)), ("u64", np.zeros(64, np.uint64)),
        ):  # fmt: skip
            add, x = make(dtype=name), self.card.array(view)
            add[blocks](Interface(x), Interface(x), 1)
            self.assertEqual(fake.counts()["launches"], 1, name)

    def test_arrays_without_elements(self):
        empty = np.zeros(0, np.float32)
        said = Interface(empty, data=(0, False))
        self.add[(0,)](said, said, 0.5)
        self.assertEqual(fake.counts()["launches"], 0)


class TuneTest(Case):
    def test_the_reference_gets_copies_and_the_stream_is_told(self):
        add = make(scaled)
        result = add.tune(blocks, Interface(self.x), Interface(self.out), 2.0, stream=0x50)
        self.assertEqual(result.winner, {"BLOCK": 512})
        self.assertEqual(fake.tune_stream(), 0x50)
        self.assertEqual(fake.expected_names(), ["out"])
        self.assertEqual(fake.device(), "GPU-0")

    def test_a_first_launch_tunes_on_the_arrays_stream(self):
        add = make(scaled)
        add[blocks](Interface(self.x, stream=0x60), Interface(self.out, stream=0x60), 2.0)
        self.assertEqual(fake.expected_names(), ["out"])
        self.assertEqual(fake.tune_stream(), 0x60)

    def test_without_a_reference_the_stream_is_told_too(self):
        self.add[blocks](Interface(self.x), Interface(self.out), 2.0, stream=0x70)
        self.assertEqual(fake.tune_stream(), 0x70)
        self.assertEqual(fake.counts()["prepares"], 1)

    def test_results_are_of_the_card_last_used(self):
        add = make(scaled)
        add[blocks](Interface(self.x), Interface(self.out), 2.0)
        add.result(N=7)
        self.assertEqual(fake.device(), "GPU-0")
        self.assertEqual(list(add._handles), ["GPU-0"])

    def test_what_a_capture_says_is_raised(self):
        fake.fail("prepare", 9, "", "the stream is being captured, and nothing is loaded for N=7")
        with self.assertRaisesRegex(ph.LaunchError, "being captured"):
            self.add[blocks](Interface(self.x), Interface(self.out), 2.0)


class TorchTest(Case):
    def setUp(self):
        super().setUp()
        self.current = []
        torch = types.ModuleType("torch")
        torch.Tensor, torch.strided = Tensor, "strided"
        torch._C = types.SimpleNamespace(
            _cuda_getCurrentRawStream=lambda card: self.current.append(card) or 0x90 + card
        )
        streams.torch_stream.cache_clear()
        patch = mock.patch.dict(sys.modules, torch=torch)
        patch.start()
        self.addCleanup(patch.stop)

    def test_tensors_are_read_by_their_own_attributes(self):
        x, out = Tensor(self.x), Tensor(self.out)
        for _ in range(3):
            self.add[blocks](x, out, 0.5)
        self.assertEqual(fake.values(2), self.addresses(self.x, self.out))
        self.assertEqual(fake.stream(), 0x90)
        self.assertEqual(fake.counts(), {"launches": 3, "prepares": 1, "tunes": 0})

    def test_types_by_their_names(self):
        for name, own in (("bf16", "torch.bfloat16"), ("f16", "torch.float16"),
                          ("bool", "torch.bool"), ("u16", "torch.uint16")):  # fmt: skip
            size = 1 if name == "bool" else 2
            view = self.card.array(np.zeros(64, f"u{size}"))
            add = make(dtype=name)
            add[blocks](Tensor(view, dtype=own), Tensor(view, dtype=own), 1)
            self.assertEqual(fake.counts()["launches"], 1, name)

    def test_what_is_wrong_is_said_in_torchs_words(self):
        error = self.refused(
            "x is ph.f32 in the kernel and f64",
            Tensor(self.card.array(np.zeros(1024))), Tensor(self.out), 1,
        )  # fmt: skip
        self.assertEqual(error.remedy, "Pass x.to(torch.float32).")
        gaps = self.card.array(np.zeros((32, 64), np.float32))[:, ::2]
        error = self.refused("rank 2", Tensor(gaps.T.copy()), Tensor(self.out), 1)
        gaps = self.card.array(np.zeros(2048, np.float32))[::2]
        error = self.refused(r"strides \(8,\) bytes", Tensor(gaps), Tensor(self.out), 1)
        self.assertEqual(error.remedy, "Pass x.contiguous().")
        self.refused(
            "out is in host memory", Tensor(self.x), Tensor(self.out, kind="cpu"), 1
        )
        self.refused("out is on card 1", Tensor(self.x), Tensor(self.out, card=1), 1)

    def test_a_stream_that_is_given_is_taken(self):
        for _ in range(2):
            self.add[blocks](
                Tensor(self.x), Tensor(self.out), 1, stream=types.SimpleNamespace(cuda_stream=0x40)
            )
            self.assertEqual(fake.stream(), 0x40)


class DLPackTest(Case):
    def test_an_array_waits_for_the_stream_of_the_launch(self):
        x, out = Packed(self.x), Packed(self.out)
        self.add[blocks](x, out, 0.5)
        self.assertEqual(fake.values(2), self.addresses(self.x, self.out))
        self.assertEqual(x.streams, [1])
        self.add[blocks](x, out, 0.5, stream=0x80)
        self.assertEqual(x.streams, [1, 0x80])
        self.assertEqual(fake.stream(), 0x80)

    def test_beside_arrays_with_a_stream(self):
        x = Packed(self.x)
        self.add[blocks](x, Interface(self.out, stream=0x88), 0.5)
        self.assertEqual((x.streams, fake.stream()), ([0x88], 0x88))

    def test_types_and_gaps(self):
        self.refused("ph.f32 in the kernel and i32", Packed(self.x, code=0), Packed(self.out), 1)
        gaps = self.card.array(np.zeros(2048, np.float32))[::2]
        self.refused(r"strides \(8,\) bytes", Packed(gaps), Packed(self.out), 1)
        self.refused("x is a .*Packed", Packed(self.x, device=1), [1.0], 1)

    def test_jax_arrays_are_only_read(self):
        kind = type("ArrayImpl", (Packed,), {"__module__": "jaxlib._jax"})
        error = self.refused("out is written .* read-only", kind(self.x), kind(self.out), 0.5)
        self.assertIn("jax.dlpack.from_dlpack", error.remedy)
        self.add[blocks](kind(self.x), Interface(self.out), 0.5)


class StreamTest(Case):
    def test_streams_of_every_kind(self):
        class Protocol:
            def __cuda_stream__(self):
                return (0, 0x21)

        numba = types.SimpleNamespace(handle=ctypes.c_void_p(0x24))
        default = types.SimpleNamespace(handle=ctypes.c_void_p(0))
        x, out = Interface(self.x), Interface(self.out)
        for given, handle in (
            (0x20, 0x20), (Protocol(), 0x21), (types.SimpleNamespace(cuda_stream=0x22), 0x22),
            (types.SimpleNamespace(ptr=0x23), 0x23), (numba, 0x24), (default, 0), (0, 0), (1, 0),
            (np.int64(0x25), 0x25),
        ):  # fmt: skip
            for _ in range(2):  # first the checked way, then the fast one
                self.add[blocks](x, out, 0.5, stream=given)
                self.assertIn(fake.stream(), (handle, 1) if given == 1 else (handle,))

    def test_what_is_no_stream(self):
        for given in (-1, 1.5, "0", object(), True, 1 << 64):
            self.refused("which is no CUDA stream", Interface(self.x), Interface(self.out), 1,
                         stream=given)  # fmt: skip

    def test_the_host_has_no_streams(self):
        host = np.zeros(1024, np.float32)
        self.refused("streams belong to GPUs", host, host.copy(), 0.5, stream=0)


if __name__ == "__main__":
    unittest.main()
