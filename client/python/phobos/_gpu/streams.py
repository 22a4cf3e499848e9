# SPDX-License-Identifier: Apache-2.0
"""Streams of GPUs, by the handles that the driver knows them by."""

import functools
import operator
import sys

from .._errors import argument_error, said
from . import is_torch, prefers_dlpack

_DEFAULT = (None, 0, 1)  # names of the default stream in the array interface


def handle_of(stream, kernel=""):
    """A stream that the user gives, as the driver's handle. Raises ArgumentError."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        value = (protocol() if callable(protocol) else protocol)[1]
    elif isinstance(stream, int):
        value = stream
    else:
        value = _first(stream, ("cuda_stream", "ptr", "handle"))
        value = getattr(value, "value", value) if value is not None else _index(stream)
        value = 0 if value is None and hasattr(stream, "handle") else value
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if isinstance(stream, bool) or not 0 <= number < 1 << 64:
        raise argument_error(
            f"stream is {said(stream)}, which is no CUDA stream",
            kernel,
            "Give a stream of torch, CuPy or numba, one with __cuda_stream__, or its handle.",
        )
    return 0 if number == 1 else number  # both are the default stream


def _first(thing, names):
    for name in names:
        value = getattr(thing, name, None)
        if value is not None:
            return value
    return None


def _index(thing):
    try:
        return operator.index(thing)
    except TypeError:
        return None


def stream_of(arguments, card, kernel=""):
    """The stream on which the arrays were written, by what their frameworks say. Raises
    ArgumentError where they name several.
    """
    found = {}  # handle -> the first argument that is said to be written on it
    for argument in arguments:
        if is_torch(argument):
            if argument.device.type == "cuda":
                found.setdefault(torch_stream()(card), argument)
        elif not prefers_dlpack(argument):
            interface = getattr(argument, "__cuda_array_interface__", None)
            if interface is not None and interface.get("stream") is not None:
                stream = interface["stream"]
                found.setdefault(0 if stream in _DEFAULT else stream, argument)
    if len(found) > 1:
        raise argument_error(
            f"the arrays belong to {len(found)} streams ({', '.join(map(hex, found))})",
            kernel,
            "Say on which one to launch, by stream=, and let it wait for the others.",
        )
    return next(iter(found), 0)


@functools.cache
def torch_stream():
    """A function that gives the handle of torch's current stream on a card."""
    torch = sys.modules["torch"]
    # Ten times faster than what is documented, and what torch's own compiled code calls.
    raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    return raw or (lambda card: torch.cuda.current_stream(card).cuda_stream)
