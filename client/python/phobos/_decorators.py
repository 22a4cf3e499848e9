# SPDX-License-Identifier: Apache-2.0
"""The decorators. The compiler reads what they say from the source text; here they only make the
Kernel object, and refuse at once what is plainly not meant.
"""

import sys

from . import _arguments
from ._builtins import KernelFunction
from ._errors import KernelSourceError, said
from ._kernel import Kernel
from ._source import check_annotations_deferred

_MARK = "__phobos__"  # attribute of a function: the names of the decorators below @ph.kernel


def kernel(key=(), reference=None, rtol=None, atol=None, flush_l2=True):
    """Makes the function below a kernel. The outermost decorator.

    key: names of the extents a winner holds for; without any, one winner serves all extents.
    reference: computes what the kernel should, from copies of the arguments as NumPy arrays and
        scalars; returns a dict from an output parameter's name to the expected array. With it, the
        first launch at a new key tunes.
    rtol, atol: widen the check's tolerances.
    flush_l2: time with inputs in memory (True) or in cache (False).
    """
    if callable(key):  # @ph.kernel, without parentheses
        if (reference, rtol, atol, flush_l2) != (None, None, None, True):
            raise KernelSourceError(
                "@ph.kernel takes a function or options, not both: @ph.kernel(reference=...)",
                reason="decorator",
            )
        check_annotations_deferred(sys._getframe(1))
        return _kernel_of(key, (), None, None, None, True)
    if isinstance(key, str):
        raise KernelSourceError(
            f"key must be a tuple of names: key=({key!r},), with the comma", reason="decorator"
        )
    if not isinstance(key, (tuple, list)) or not all(isinstance(name, str) for name in key):
        raise KernelSourceError(
            f"key must be a tuple of names of extents, not {said(key)}", reason="decorator"
        )
    _arguments.function(
        "reference", reference, remedy="Give the function itself, not what it returns."
    )
    rtol, atol = _arguments.tolerance("rtol", rtol), _arguments.tolerance("atol", atol)
    flush_l2 = _arguments.switch("flush_l2", flush_l2)
    check_annotations_deferred(sys._getframe(1))

    return lambda function: _kernel_of(function, tuple(key), reference, rtol, atol, flush_l2)


def _kernel_of(function, *options):
    if not hasattr(function, "__code__"):
        raise KernelSourceError("@ph.kernel goes above a function", reason="decorator")
    return Kernel(function, *options)


def autotune(limit=None, **constants):
    """Declares the constants that the kernel leaves open, and the values to search.

    Two increasing positive ints [a, b] are searched in doubling steps: a, 2a, 4a ... up to b.
    Anything else is a list.
    limit: the most variants that the space may have, 4096 without it.
    """
    if not constants:
        raise KernelSourceError(
            "@ph.autotune needs at least one constant: @ph.autotune(BLOCK=[256, 4096])",
            reason="decorator",
        )
    for name, values in constants.items():
        if not isinstance(values, (list, tuple)):
            raise KernelSourceError(
                f"@ph.autotune: {name} must be a list of values, not {said(values)}",
                reason="decorator",
            )
    return _marking("autotune", sys._getframe(1))


def launch(threads, min_blocks=None):
    """Threads of a block: a multiple of 32, at most 1024; or a constant's name, as a string."""
    return _marking("launch", sys._getframe(1))


def index_bits(bits):
    """Width of the generated offsets: 32, 64, or a constant's name, as a string."""
    return _marking("index_bits", sys._getframe(1))


def aligned(**multiples):
    """Promises that a tensor's address, in bytes, or an extent's value is a multiple of n."""
    return _marking("aligned", sys._getframe(1))


def constraint(*conditions):
    """Conditions over constants and extents, as strings; where one is false a variant is out."""
    for condition in conditions:
        if not isinstance(condition, str):
            raise KernelSourceError(
                f"@ph.constraint takes strings, not {said(condition)}",
                reason="decorator",
            )
    return _marking("constraint", sys._getframe(1))


def fast_math(function):
    """Lets the compiler contract into fma and use approximate division and built-ins."""
    return _marking("fast_math", sys._getframe(1))(function)


def fn(function):
    """Makes a function that kernels of the same file may call; it is inlined at every call."""
    if not hasattr(function, "__code__"):
        raise KernelSourceError("@ph.fn goes above a function", reason="decorator")
    return KernelFunction(function)


def _marking(name, frame):
    check_annotations_deferred(frame)

    def decorate(function):
        if isinstance(function, Kernel):
            raise KernelSourceError(
                f"@ph.{name} stands above @ph.kernel",
                kernel=function.__name__,
                reason="decorator",
                remedy="@ph.kernel must be the outermost decorator: put it first.",
            )
        if not hasattr(function, "__code__"):
            raise KernelSourceError(f"@ph.{name} goes above a function", reason="decorator")
        setattr(function, _MARK, getattr(function, _MARK, ()) + (name,))
        return function

    return decorate
