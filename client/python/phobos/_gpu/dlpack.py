# SPDX-License-Identifier: Apache-2.0
"""Arrays that tell of themselves by DLPack."""

import ctypes


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_KINDS = {0: "i", 1: "u", 2: "f", 4: "bf", 6: "bool"}


def describe(array, stream):
    """(address, shape, name of the element type, strides in bytes or None) of an array on a GPU.
    What is still being computed will be done before what is queued on `stream`.
    """
    # 1 is the default stream: 0 would be ambiguous, by DLPack's rules.
    capsule = array.__dlpack__(stream=stream or 1)
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _DLTensor.from_address(pointer_of(capsule, b"dltensor"))
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    # The array keeps its memory, so the capsule need not.
    return (tensor.data or 0) + tensor.byte_offset, shape, _name(tensor), _gaps(tensor, strides)


def _name(tensor):
    kind = _KINDS.get(tensor.code, f"of DLPack type {tensor.code}, ")
    name = kind if kind == "bool" else f"{kind}{tensor.bits}"
    return name if tensor.lanes == 1 else f"{name} by {tensor.lanes}"


def _gaps(tensor, strides):
    """The strides in bytes, or None where they are those of a C-contiguous array."""
    shape, step = tensor.shape[: tensor.ndim], 1
    if strides is None or 0 in shape:
        return None
    for side, stride in zip(reversed(shape), reversed(strides)):
        if side != 1 and stride != step:
            itemsize = tensor.bits * tensor.lanes // 8
            return tuple(stride * itemsize for stride in strides)
        step *= side
    return None
