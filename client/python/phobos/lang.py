# SPDX-License-Identifier: Apache-2.0
"""The kernel language's names, and what a program does with kernels.

    from __future__ import annotations
    import phobos.lang as ph

    @ph.kernel(key=("N",), reference=lambda x, y, out: {"out": x + y})
    @ph.autotune(BLOCK=[256, 4096])
    def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
        base: ph.let = ph.ctx.block.x * BLOCK
        out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]

    add[lambda meta: (-(-meta["N"] // meta["BLOCK"]),)](x, y, out)

docs/python.md is the guide. Importing this module neither imports NumPy nor loads libphobos.so.
"""

import builtins as _builtins_of_python

from ._builtins import BUILTINS, Builtin, Context
from ._decorators import aligned, autotune, constraint, fast_math, fn, index_bits, launch
from ._decorators import kernel as _kernel_decorator
from ._errors import (
    ArgumentError,
    DaemonError,
    KernelSourceError,
    LaunchError,
    NotInKernelError,
    PhobosError,
    PhobosWarning,
    ReferenceFailedError,
    TuneCancelledError,
    TuneError,
    UnsupportedError,
)
from ._kernel import on_tune
from ._result import Result
from ._source import check_annotations_deferred as _check_annotations_deferred
from ._types import DTYPES, Maker, Marker

f16, bf16, f32, f64 = (DTYPES[name] for name in ("f16", "bf16", "f32", "f64"))
i8, i16, i32, i64 = (DTYPES[name] for name in ("i8", "i16", "i32", "i64"))
u8, u16, u32, u64 = (DTYPES[name] for name in ("u8", "u16", "u32", "u64"))

tensor, tile = Maker("tensor"), Maker("tile")
let, var = Marker("let"), Marker("var")
ctx = Context()
inf, nan = float("inf"), float("nan")


def to_bf16(array):
    """f32 numbers as bf16 (nearest even): a NumPy uint16 array of bits, for a bf16 parameter."""
    from ._reference import to_bf16 as convert

    return convert(array)


def from_bf16(bits):
    """The f32 values of bf16 bits: a NumPy array of uint16, or of ml_dtypes.bfloat16."""
    from ._reference import from_bf16 as convert

    return convert(bits)


def __getattr__(name):
    # A bare @ph.kernel is called when Python has evaluated the annotations: what is wrong with them
    # is told when the decorator is looked up.
    import sys

    if name == "kernel":
        _check_annotations_deferred(sys._getframe(1))
        return _kernel_decorator
    import difflib  # takes milliseconds, which a program without mistakes need not spend

    # A name that is not here: ph.float32, ph.arange.
    theirs = {"arange": "iota", "program_id": "ctx.block.x", "num_programs": "ctx.grid.x"}
    like = {"float": "f", "int": "i", "uint": "u", "bfloat": "bf"}
    kind = name.rstrip("0123456789")
    short = like.get(kind, "") + name[len(kind) :]
    near = difflib.get_close_matches(name, __dir__(), 1)
    if name in theirs or short in globals():
        near = [theirs.get(name, short)]
    hint = f"; write ph.{near[0]}" if near and not near[0].startswith("_") else ""
    raise AttributeError(f"the kernel language has no {name!r}{hint}")


def __dir__():
    return [*globals(), "kernel"]


# These shadow Python's own names here (bool, range, max ...), so they come last.
globals().update({name: Builtin(name, doc) for name, doc in BUILTINS.items()})
bool = DTYPES["bool"]
del BUILTINS, Builtin, Context, DTYPES, Maker, Marker

# `from phobos.lang import *` leaves Python its print, range, max ...: they are ph.print here.
__all__ = sorted(
    name
    for name in __dir__()
    if not name.startswith("_") and not hasattr(_builtins_of_python, name)
)
