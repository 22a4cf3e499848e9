# SPDX-License-Identifier: Apache-2.0
"""Arrays of GPUs, as torch, CuPy, JAX, numba and others have them.

torch tensors are read by their own attributes, which is many times faster than their interface;
JAX arrays by DLPack; the rest by __cuda_array_interface__, else DLPack. Nothing here imports a
framework or copies an array. Cards are meant by their ordinals, as CUDA numbers those that this
process sees.
"""

import sys

ANY_CARD = -2  # of an array without bytes: it is nowhere
_CUDA_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged


def is_torch(argument):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(argument, getattr(torch, "Tensor", ()))


def card_of(argument):
    """The card that has the array; ANY_CARD; None: it is no array on a GPU."""
    if is_torch(argument):
        return argument.device.index if argument.device.type == "cuda" else None
    if prefers_dlpack(argument):
        return _dlpack_card(argument)
    interface = getattr(argument, "__cuda_array_interface__", None)
    if interface is None:
        return _dlpack_card(argument)
    address = interface["data"][0]
    if 0 in interface["shape"] or not address:
        return ANY_CARD
    from .._library import library

    return library().card_of(address)


def find(arguments):
    """The card of the first array on a GPU, or None; of arrays without bytes alone, the first."""
    found = None
    for argument in arguments:
        card = None if argument is None or type(argument) in _PLAIN else card_of(argument)
        if card == ANY_CARD:
            found = 0
        elif card is not None:
            return card
    return found


def where(arguments):
    """(card, its uuid) of the arrays; (None, "") where none is on a GPU."""
    found = find(arguments)
    if found is None:
        return None, ""
    from .._library import library

    return found, library().card_uuid(found)


_PLAIN = frozenset((int, float, bool, str, bytes, bytearray, memoryview, complex))


def prefers_dlpack(argument):
    return type(argument).__module__.partition(".")[0] in ("jax", "jaxlib")


def _dlpack_card(argument):
    # On the type: some classes make up attributes that they are asked for.
    if not hasattr(type(argument), "__dlpack_device__"):
        return None
    try:
        kind, card = argument.__dlpack_device__()
    except (AttributeError, BufferError, NotImplementedError, RuntimeError, TypeError):
        return None
    return int(card) if int(kind) in _CUDA_DEVICES else None


def describe(argument, stream):
    """(address, shape, name of the element type, strides in bytes or None, is read-only, kept), or
    None for what is no array on a GPU. What is still being computed will be done before what is
    queued on `stream`, where the framework sees to that.
    """
    if is_torch(argument):
        if argument.device.type != "cuda":
            return None
        return _describe_torch(argument)
    if not prefers_dlpack(argument):
        interface = getattr(argument, "__cuda_array_interface__", None)
        if interface is not None:
            return _describe_interface(argument, interface)
    if _dlpack_card(argument) is None:
        return None
    from .dlpack import describe as describe_dlpack

    return (*describe_dlpack(argument, stream), prefers_dlpack(argument), argument)


def _describe_torch(tensor):
    name = str(tensor.dtype).rpartition(".")[2]
    strides = None
    if not tensor.is_contiguous():
        strides = tuple(step * tensor.element_size() for step in tensor.stride())
    if tensor.layout is not sys.modules["torch"].strided or tensor.is_neg():
        name = f"a view of {name} that has no bytes of its own"
    return (
        tensor.data_ptr(), tuple(tensor.shape), _TORCH_NAMES.get(name, name), strides, False, tensor
    )  # fmt: skip


_TORCH_NAMES = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "bool": "bool",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def _describe_interface(argument, interface):
    from .._arguments import name_of, unless_c_order

    address, is_readonly = interface["data"]
    shape, typestr = interface["shape"], interface["typestr"]
    return (
        address or 0,
        shape,
        name_of(typestr, argument),
        unless_c_order(interface.get("strides"), shape, typestr),
        is_readonly,
        argument,
    )
