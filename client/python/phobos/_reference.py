# SPDX-License-Identifier: Apache-2.0
"""Runs the user's reference on copies of the arguments, and turns its answer into bytes.

NumPy is imported here and nowhere else in the package. bf16: the reference sees ml_dtypes' type
where ml_dtypes is installed, else f32 arrays that hold bf16 values; its answer is rounded once.
"""

import ctypes
import mmap
import os
import sys
import threading
import weakref

from ._arguments import is_masked
from ._errors import ReferenceFailedError, argument_error, said


def _numpy(kernel=""):
    try:
        import numpy
    except ImportError:
        raise ReferenceFailedError(
            "a reference gets its arguments as NumPy arrays, and numpy is not installed",
            kernel=kernel, reason="reference_failed", remedy="Install numpy.",
        ) from None  # fmt: skip
    return numpy


def _bfloat16():
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        return None
    return bfloat16


def to_bf16(array):
    """f32 numbers rounded to bf16 (nearest even), as a NumPy uint16 array of their bits."""
    numpy = _numpy()
    try:
        with numpy.errstate(over="ignore"):  # what is too large becomes an infinity
            bits = numpy.array(array, dtype=numpy.float32, order="C").view(numpy.uint32)
    except (OverflowError, TypeError, ValueError):
        raise argument_error(f"ph.to_bf16 takes numbers, not {said(array)}") from None
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return numpy.where(is_nan, (bits >> 16) | 0x40, rounded).astype(numpy.uint16)


def from_bf16(bits):
    """The f32 values of bf16 bits: an array of uint16, or of ml_dtypes.bfloat16."""
    numpy = _numpy()
    bits = numpy.asarray(bits)
    if str(bits.dtype) == "bfloat16":
        return bits.astype(numpy.float32)
    if bits.dtype != numpy.uint16:
        raise argument_error(
            f"ph.from_bf16 takes an array of uint16 or of ml_dtypes.bfloat16, not of {bits.dtype}"
        )
    return (bits.astype(numpy.uint32) << numpy.uint32(16)).view(numpy.float32)


def _dtype_of(parameter, numpy):
    if parameter.dtype.name == "bf16":
        return numpy.dtype(numpy.uint16)
    return numpy.dtype(parameter.dtype.typestr)


_WORTH_HUGE_PAGES = 4 << 20
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE, since Linux 5.14

_in_use = weakref.WeakValueDictionary()  # every Memory that is not closed, by its id


class Memory:
    """Where the library puts one argument of the reference; whole pages of this process alone.

    The library may lay pages over it that are good until the tune ends. A forked child has its own.
    """

    def __init__(self, size):
        self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.address = _numpy().frombuffer(self._map, "uint8").ctypes.data
        if size >= _WORTH_HUGE_PAGES:
            try:
                self._map.madvise(mmap.MADV_HUGEPAGE)
            except (AttributeError, OSError):
                pass  # small pages do, too
        _in_use[id(self)] = self

    def array(self, dtype, count):
        return _numpy().frombuffer(self._map, dtype, count)

    def close(self):
        """To be called before the reference's answer is given. Arrays may live on."""
        try:
            self._map.close()
        except BufferError:  # somebody keeps an array
            self.copy_pages()
        _in_use.pop(id(self), None)

    def copy_pages(self):
        """Makes all pages copies of their own. Changes no byte, also while a thread writes."""
        try:
            self._map.madvise(_POPULATE_WRITE)
        except OSError:  # an older system: who writes the first byte of a page meanwhile may lose it
            pages = _numpy().frombuffer(self._map, "uint8")[:: mmap.PAGESIZE]
            pages |= 0
        except ValueError:
            pass  # another thread closed it


def _copy_pages_in_use():
    # The child may read them for longer than this tune takes.
    for reference in _in_use.valuerefs():
        memory = reference()
        if memory is not None:
            memory.copy_pages()


os.register_at_fork(before=_copy_pages_in_use)


def copies(parameters, shapes, addresses, given=(), kernel=""):
    """The arguments as the reference gets them, of memory of their own, by position.

    given: by position, the Memory that the address is of, if it is one.
    """
    numpy = _numpy(kernel)
    made = []
    for i, (parameter, shape, address) in enumerate(zip(parameters, shapes, addresses)):
        dtype = _dtype_of(parameter, numpy)
        count = 1
        for side in shape:
            count *= side
        if i in given and given[i].address == address:
            array = given[i].array(dtype, count).reshape(shape)
        else:
            held = (ctypes.c_char * (count * dtype.itemsize)).from_address(address) if count else b""
            array = numpy.frombuffer(held, dtype=dtype, count=count).reshape(shape).copy()
        if parameter.dtype.name == "bf16":
            array = array.view(_bfloat16()) if _bfloat16() else from_bf16(array)
        made.append(array if parameter.is_tensor else array.reshape(())[()])
    return made


def expected(answer, parameters, shapes, kernel):
    """What the reference returned as {name: contiguous array of the tensor's bytes}.

    Raises ReferenceFailedError, which says what is wrong with it.
    """
    numpy = _numpy(kernel)

    def wrong(message, remedy=""):
        return ReferenceFailedError(
            message, kernel=kernel, reason="reference_failed", remedy=remedy
        )

    if not isinstance(answer, dict):
        raise wrong(
            f"the reference returned a {type(answer).__name__}",
            "It must return a dict from an output parameter's name to the expected array: return"
            ' {"out": x + y}.',
        )
    written = {
        p.name: (p, shape) for p, shape in zip(parameters, shapes) if p.is_tensor and p.is_written
    }
    for name in answer:
        if name not in written:
            those = f"it writes {', '.join(written)}" if written else "it writes none"
            raise wrong(
                f"the reference returned {said(name)}, which is no tensor that the kernel writes:"
                f" {those}"
            )
    missing = [name for name in written if name not in answer]
    if missing:
        raise wrong(
            f"the reference returned nothing for {', '.join(missing)}, which the kernel writes"
        )
    arrays = {}
    for name, (parameter, shape) in written.items():
        if is_masked(answer[name]):
            raise wrong(
                f"the reference's {name} is a masked array, which does not say what all elements"
                " should be",
                f"Return {name}.filled(value).",
            )
        array = numpy.asarray(answer[name])
        if array.shape != tuple(shape):
            raise wrong(
                f"the reference's {name} has shape {array.shape}; the argument has {tuple(shape)}"
            )
        arrays[name] = _bytes_of(array, parameter, numpy, wrong)
    return arrays


def _bytes_of(array, parameter, numpy, wrong):
    name, dtype = parameter.name, _dtype_of(parameter, numpy)
    if parameter.dtype.name == "bf16":
        if str(array.dtype) == "bfloat16":
            return numpy.ascontiguousarray(array).view(numpy.uint16)
        if array.dtype == numpy.float32:
            return to_bf16(array)
        raise wrong(
            f"the reference's {name} is {array.dtype}, not float32 (rounded to bf16 once)",
            'Add .astype("float32").',
        )
    if array.dtype != dtype:
        raise wrong(
            f"the reference's {name} is {array.dtype}; the kernel writes {dtype}",
            f'Add .astype("{dtype}").',
        )
    return numpy.ascontiguousarray(array)


def waits_for(waiting, thread):
    """Whether one thread waits for another to end or for a future that it works on, also by way of
    others. Both by ident. Other ways to wait are not seen.
    """
    frames, seen = sys._current_frames(), set()
    while waiting is not None and waiting not in seen:
        seen.add(waiting)
        waiting = _awaited(frames.get(waiting), frames)
        if waiting == thread:
            return True
    return False


def _awaited(frame, frames):
    """The thread that the thread of this frame waits for, or None."""
    for name, own in _methods(frame):
        if name == "join" and isinstance(own, threading.Thread):
            return own.ident
        if name in ("result", "exception") and hasattr(own, "add_done_callback"):
            for ident, other in frames.items():
                if any(getattr(item, "future", None) is own for _, item in _methods(other)):
                    return ident
    return None


def _methods(frame):
    """(name, self) of the methods that a thread is in, the innermost first."""
    while frame is not None:
        if "self" in frame.f_code.co_varnames[:1]:
            yield frame.f_code.co_name, frame.f_locals.get("self")
        frame = frame.f_back
