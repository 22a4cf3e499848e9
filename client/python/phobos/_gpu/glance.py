# SPDX-License-Identifier: Apache-2.0
"""What a launch's arguments say of themselves, as fast as it can be had: (a key, the values of a
launch, the stream or None for the host chip). Whatever is wrong raises, and is explained by the
checked way of a launch.
"""

from . import is_torch, prefers_dlpack
from .streams import torch_stream


def host(arguments, kinds):
    """Of arrays in the host's memory."""
    known, values = [], []
    for argument, is_tensor in zip(arguments, kinds):
        if is_tensor:
            said = argument.__array_interface__
            address, is_readonly = said["data"]
            values.append(address)
            shape, strides = said["shape"], said["strides"]
            known.append((type(argument), shape, said["typestr"], is_readonly, strides))
        else:
            values.append(argument)
    return tuple(known), values, None


def torch(arguments, kinds):
    """Of torch tensors on a GPU."""
    known, values, card = [], [], None
    for argument, is_tensor in zip(arguments, kinds):
        if is_tensor:
            card = argument.device
            values.append(argument.data_ptr())
            known.append((argument.shape, argument.dtype, card, argument.is_contiguous()))
        else:
            values.append(argument)
    return tuple(known), values, torch_stream()(card.index)


def interface(arguments, kinds):
    """Of arrays with __cuda_array_interface__."""
    known, values, streams = [], [], set()
    for argument, is_tensor in zip(arguments, kinds):
        if is_tensor:
            said = argument.__cuda_array_interface__
            address, is_readonly = said["data"]
            values.append(address)
            known.append((said["shape"], said["typestr"], is_readonly, said.get("strides")))
            stream = said.get("stream")
            if stream is not None:
                streams.add(stream)
        else:
            values.append(argument)
    if not streams:
        return tuple(known), values, 0
    (stream,) = streams
    return tuple(known), values, 0 if stream == 1 else stream


def on_gpu(arguments, kinds):
    """The function here for such arguments, or None."""
    tensors = [argument for argument, is_tensor in zip(arguments, kinds) if is_tensor]
    if not tensors:
        return None
    if all(map(is_torch, tensors)):
        return torch
    if any(is_torch(tensor) or prefers_dlpack(tensor) for tensor in tensors):
        return None
    if all(hasattr(tensor, "__cuda_array_interface__") for tensor in tensors):
        return interface
    return None
