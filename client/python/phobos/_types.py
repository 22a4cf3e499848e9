# SPDX-License-Identifier: Apache-2.0
"""Element types, and the objects that kernel annotations are made of.

Under `from __future__ import annotations` Python never evaluates the annotations; without it these
objects are what they evaluate to. Nothing here is read by the compiler, which parses the source
text.
"""

from ._errors import NotInKernelError


class DType:
    """An element type of the kernel language."""

    __slots__ = ("name", "itemsize", "typestr", "pack")

    def __init__(self, name, itemsize, typestr, pack):
        self.name = name
        self.itemsize = itemsize  # bytes
        self.typestr = typestr  # of NumPy's array interface
        self.pack = pack  # struct codes that make an 8-byte slot of a scalar

    def __repr__(self):
        return "ph." + self.name

    def __call__(self, *values):
        raise NotInKernelError(
            f"{self!r} is a type, and is not called",
            reason="not_in_kernel",
            remedy=f"In a kernel write ph.cast(v, {self!r}); outside, use NumPy's types.",
        )

    def __reduce__(self):
        return _dtype, (self.name,)


def _dtype(name):
    return DTYPES[name]


# bf16 is packed from its bits, which NumPy without ml_dtypes calls uint16.
DTYPES = {
    dtype.name: dtype
    for dtype in (
        DType("f16", 2, "<f2", "e6x"),
        DType("bf16", 2, "<u2", "H6x"),
        DType("f32", 4, "<f4", "f4x"),
        DType("f64", 8, "<f8", "d"),
        DType("i8", 1, "|i1", "b7x"),
        DType("i16", 2, "<i2", "h6x"),
        DType("i32", 4, "<i4", "i4x"),
        DType("i64", 8, "<i8", "q"),
        DType("u8", 1, "|u1", "B7x"),
        DType("u16", 2, "<u2", "H6x"),
        DType("u32", 4, "<u4", "I4x"),
        DType("u64", 8, "<u8", "Q"),
        DType("bool", 1, "|b1", "?7x"),
    )
}


class Shaped:
    """`ph.tensor[T][d0, d1]` or `ph.tile[T][c0, c1]`."""

    __slots__ = ("kind", "dtype", "shape")

    def __init__(self, kind, dtype, shape):
        self.kind, self.dtype, self.shape = kind, dtype, shape

    def __repr__(self):
        return f"ph.{self.kind}[{self.dtype!r}][{', '.join(map(str, self.shape))}]"


class _Element:
    """`ph.tensor[T]`, waiting for its shape."""

    __slots__ = ("kind", "dtype")

    def __init__(self, kind, dtype):
        self.kind, self.dtype = kind, dtype

    def __getitem__(self, shape):
        return Shaped(self.kind, self.dtype, shape if isinstance(shape, tuple) else (shape,))

    def __repr__(self):
        return f"ph.{self.kind}[{self.dtype!r}]"


class Maker:
    """`ph.tensor` and `ph.tile`."""

    __slots__ = ("kind",)

    def __init__(self, kind):
        self.kind = kind

    def __getitem__(self, dtype):
        return _Element(self.kind, dtype)

    def __call__(self, *values):
        raise NotInKernelError(
            f"{self!r} is not called", reason="not_in_kernel", remedy=f"Write {self!r}[ph.f32][N]."
        )

    def __repr__(self):
        return "ph." + self.kind


class Marker:
    """`ph.let` and `ph.var`."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __call__(self, *values):
        raise NotInKernelError(
            f"{self!r} is not called", reason="not_in_kernel", remedy=f"Write x: {self!r} = value."
        )

    def __repr__(self):
        return "ph." + self.name
