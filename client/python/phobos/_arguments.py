# SPDX-License-Identifier: Apache-2.0
"""From a call's arguments to what a launch needs: addresses, scalar bits, extents.

`Signature.bind` checks everything and explains what is wrong. The fast path of a launch
(_kernel.py) does the same work unchecked for arguments that look like ones that `bind` has
accepted. Options of a kernel and of a tune are checked here too: `tolerance` and what follows it.
"""

import functools
import math
import operator
import struct
import sys

from ._errors import argument_error, said, type_of
from ._types import DTYPES

# struct codes of memoryview formats, native sizes on the platforms that we run on.
_FORMATS = {
    "e": "f16", "f": "f32", "d": "f64", "b": "i8", "h": "i16", "i": "i32", "l": "i64", "q": "i64",
    "B": "u8", "H": "u16", "I": "u32", "L": "u64", "Q": "u64", "?": "bool",
}  # fmt: skip


class Parameter:
    """One parameter of a kernel, as phobos-compile describes it."""

    __slots__ = ("name", "dtype", "is_tensor", "dims", "is_read", "is_written")

    def __init__(self, record):
        self.name = record["name"]
        self.dtype = DTYPES[record["dtype"]]
        self.is_tensor = record.get("is_tensor", False)
        self.dims = [
            one.get("extent") or int(one.get("literal", 0)) for one in record.get("dims", ())
        ]
        self.is_read = record.get("is_read", False)
        self.is_written = record.get("is_written", False)

    def __repr__(self):
        if self.is_tensor:
            return f"{self.name}: ph.tensor[{self.dtype!r}][{', '.join(map(str, self.dims))}]"
        return f"{self.name}: {self.dtype!r}"


class Binding:
    """Arguments that fit. `values` are what a launch takes; `kept` must outlive the launch.

    shapes: one a parameter, () for a scalar. card, stream: as Signature.bind was given them.
    device: the card's uuid, "" for the host chip.
    """

    __slots__ = ("values", "extents", "shapes", "kept", "card", "stream", "device")

    def __init__(self, values, extents, shapes, kept, card, stream):
        self.values = values
        self.extents = extents
        self.shapes = shapes
        self.kept = kept
        self.card = card
        self.stream = stream
        self.device = ""

    @property
    def place(self):
        return self.device, self.extents


class Tensor:
    """What an array argument says of itself."""

    __slots__ = ("address", "shape", "type_name", "strides", "is_readonly", "kept")

    def __init__(self, address, shape, type_name, strides, is_readonly, kept):
        self.address = address
        self.shape = shape
        # The language's name where it has one, else the array's own.
        self.type_name = type_name
        self.strides = strides  # bytes; None when C-contiguous
        self.is_readonly = is_readonly
        self.kept = kept


class Signature:
    """A kernel's parameters and extents. Immutable; any thread."""

    def __init__(self, kernel, parameters, extents):
        self.kernel = kernel
        self.parameters = parameters
        self.extents = extents  # names, in the order of the tuner's lists
        self.names = [parameter.name for parameter in parameters]
        codes = ["Q" if parameter.is_tensor else parameter.dtype.pack for parameter in parameters]
        self.packer = struct.Struct("<" + "".join(codes))
        # Scalars that struct does not convert as the language does: (position, parameter).
        self.converted = [
            (i, p)
            for i, p in enumerate(parameters)
            if not p.is_tensor and p.dtype.name in ("bool", "bf16")
        ]

    def ordered(self, positional, named):
        """The arguments in the order of the parameters."""
        names = self.names
        if len(positional) > len(names):
            raise self._error(
                f"takes {len(names)} arguments ({', '.join(names)}), got {len(positional)}"
            )
        values = dict(zip(names, positional))
        for name, value in named.items():
            if name not in names:
                raise self._error(
                    f"has no parameter {name!r}; its parameters are {', '.join(names)}"
                )
            if name in values:
                raise self._error(f"got {name!r} twice")
            values[name] = value
        missing = [name for name in names if name not in values]
        if missing:
            raise self._error(f"lacks {', '.join(missing)}; its parameters are {', '.join(names)}")
        return tuple(values[name] for name in names)

    def bind(self, arguments, card=None, stream=0):
        """Checks every argument (in the order of the parameters). Raises ArgumentError.

        card: the GPU on which all tensors must be; None: they are in the host's memory.
        stream: on which they will be used.
        """
        values, shapes, kept = [], [], []
        bound = {}  # extent -> (value, who said so)
        for parameter, argument in zip(self.parameters, arguments):
            if not parameter.is_tensor:
                values.append(self.scalar(parameter, argument))
                shapes.append(())
                continue
            tensor = self._tensor(parameter, argument, card, stream)
            self._check_dims(parameter, tensor.shape, bound)
            values.append(tensor.address)
            shapes.append(tuple(tensor.shape))
            kept.append(tensor.kept)
        extents = tuple(bound[name][0] for name in self.extents)
        return Binding(values, extents, shapes, kept, card, stream)

    def pack(self, values):
        """The values of a binding as slots of 8 bytes."""
        return self.packer.pack(*values)

    def _error(self, message, remedy=""):
        return argument_error(message, self.kernel, remedy)

    def _tensor(self, parameter, argument, card, stream):
        name = parameter.name
        if card is None:
            tensor = describe(argument)
        else:
            tensor = self._tensor_on_card(parameter, argument, card, stream)
        if tensor is None:
            raise self._not_an_array(parameter, argument)
        if is_masked(argument):
            remedy = f"Pass {name}.data, which leaves the mask aside"
            raise self._error(
                f"{name} is a masked array, and a kernel knows nothing of masks",
                f"{remedy}." if parameter.is_written else f"{remedy}, or {name}.filled(value).",
            )
        if tensor.type_name != parameter.dtype.name:
            is_bits = parameter.dtype.name == "bf16" and tensor.type_name == "u16"
            if not is_bits:
                raise self._error(
                    f"{name} is {parameter.dtype!r} in the kernel and {tensor.type_name} in the"
                    " array",
                    _dtype_remedy(parameter, argument),
                )
        if tensor.strides is not None:
            raise self._error(
                f"{name} is not contiguous in row-major order: shape {tuple(tensor.shape)}, strides"
                f" {tuple(tensor.strides)} bytes",
                _copy_remedy(parameter, _contiguous(name, argument)),
            )
        if parameter.is_written and tensor.is_readonly:
            raise self._error(
                f"{name} is written by the kernel, and the array is read-only",
                _writable_remedy(argument),
            )
        if tensor.address % parameter.dtype.itemsize and 0 not in tensor.shape:
            raise self._error(
                f"{name} starts at an address that is no multiple of {parameter.dtype.itemsize},"
                " its element's size",
                _copy_remedy(parameter, f"numpy.array({name})"),
            )
        return tensor

    def _tensor_on_card(self, parameter, argument, card, stream):
        """The Tensor, or None for what is no array. Raises ArgumentError: it is elsewhere."""
        from . import _gpu

        own = _gpu.card_of(argument)
        if own == card or own == _gpu.ANY_CARD:
            return Tensor(*_gpu.describe(argument, stream))
        name, there = parameter.name, f"other arguments are on card {card}"
        if own is not None:
            raise self._error(f"{name} is on card {own}, and {there}", "Copy it to that card.")
        if hasattr(argument, "dtype") or describe(argument) is not None:
            raise self._error(
                f"{name} is in host memory (a {type_of(argument)}), and {there}",
                "Copy it to that card.",
            )
        return None

    def _not_an_array(self, parameter, argument):
        if hasattr(argument, "__cuda_array_interface__"):
            text, remedy = "is in the memory of no GPU that this process sees", ""
        elif hasattr(argument, "numpy"):
            text, remedy = f"is a {type_of(argument)}", f"Pass {parameter.name}.numpy()."
        else:
            text = f"is a {type_of(argument)}, which is no array"
            remedy = "Pass a NumPy array or an object with the buffer protocol."
            if isinstance(argument, (list, tuple)) and not parameter.is_written:
                remedy = f"Pass numpy.array({parameter.name}, {_numpy_name(parameter)})."
        return self._error(f"{parameter.name} {text}; the kernel declares {parameter!r}", remedy)

    def _check_dims(self, parameter, shape, bound):
        if len(shape) != len(parameter.dims):
            raise self._error(
                f"{parameter.name} has rank {len(shape)}, shape {tuple(shape)}; the kernel declares"
                f" {parameter!r}"
            )
        for axis, (dim, size) in enumerate(zip(parameter.dims, shape)):
            where = f"{parameter.name}.shape[{axis}]"
            if isinstance(dim, int):
                if size != dim:
                    raise self._error(f"{where} is {size}; the kernel declares {parameter!r}")
            elif bound.setdefault(dim, (size, where))[0] != size:
                raise self._error(
                    f"{dim} is {bound[dim][0]} by {bound[dim][1]} and {size} by {where}"
                )

    def scalar(self, parameter, value):
        """The value as struct packs it. Raises ArgumentError."""
        dtype = parameter.dtype
        try:
            if dtype.name == "bool":
                return as_bool(value)
            if dtype.name == "bf16":
                return bf16_bits(value)
            struct.pack("<" + dtype.pack, value)
        except (struct.error, OverflowError, TypeError, ValueError):
            raise self._no_scalar(parameter, value) from None
        return value

    def _no_scalar(self, parameter, value):
        dtype = parameter.dtype
        where = f"{parameter.name} is {dtype!r}: it takes"
        if dtype.name == "bool":
            return self._error(f"{where} True or False, not {said(value)}")
        is_float = dtype.name in _LARGEST
        number = as_number(value, is_float)
        if number is None:
            is_convertible = isinstance(value, float) and math.isfinite(value)
            return self._error(
                f"{where} {'a number' if is_float else 'an integer'}, not {said(value)}",
                f"Pass int({parameter.name})." if is_convertible else "",
            )
        limits = " to ".join(map(str, _limits(dtype)))
        return self._error(f"{parameter.name} = {said(number)} does not fit {dtype!r} ({limits})")


class Description:
    """What phobos-compile says of a kernel, as far as this package needs it."""

    def __init__(self, record):
        self.kernel = record["kernel"]
        self.extents = list(record.get("extents", ()))
        self.key = list(record.get("key", ()))
        self.signature = Signature(
            self.kernel, [Parameter(one) for one in record.get("parameters", ())], self.extents
        )
        self.settings = {
            int(one.get("index", 0)): one.get("settings", {}) for one in record.get("variants", ())
        }


def is_masked(array):
    """Whether it is an array of numpy.ma, whose bytes do not tell which of them count."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(array, masked.MaskedArray)


def describe(argument):
    """What an array or buffer says of itself, or None for anything else."""
    interface = getattr(argument, "__array_interface__", None)
    if interface is not None and interface.get("data") is not None:
        address, is_readonly = interface["data"]
        return Tensor(
            address,
            interface["shape"],
            name_of(interface["typestr"], argument),
            unless_c_order(interface.get("strides"), interface["shape"], interface["typestr"]),
            is_readonly,
            argument,
        )
    try:
        view = memoryview(argument)
    except TypeError:
        return None
    strides = None if view.c_contiguous else view.strides
    code = view.format.lstrip("@=<") if view.format else "B"
    name = _FORMATS.get(code, f"of format {view.format!r}")
    address = _address_of(view) if strides is None else 0
    return Tensor(address, view.shape, name, strides, view.readonly, view)


def unless_c_order(strides, shape, typestr):
    """The strides, or None where they are those of a C-contiguous array."""
    if strides is None or 0 in shape:
        return None
    if not typestr[2:].isdigit():
        return strides
    step = int(typestr[2:])
    for side, stride in zip(reversed(shape), reversed(strides)):
        if side != 1 and stride != step:
            return strides
        step *= side
    return None


def name_of(typestr, argument):
    for dtype in DTYPES.values():
        if dtype.typestr == typestr and dtype.name != "bf16":
            return dtype.name
    own = str(getattr(argument, "dtype", typestr))
    return "bf16" if own == "bfloat16" else own


@functools.cache
def _buffer_type():
    """Py_buffer as far as its address is wanted; made once."""
    import ctypes

    class PyBuffer(ctypes.Structure):
        _fields_ = [("buf", ctypes.c_void_p), ("rest", ctypes.c_byte * 256)]

    return PyBuffer


def _address_of(view):
    import ctypes

    buffer = _buffer_type()()
    api = ctypes.pythonapi
    api.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), 0)
    address = buffer.buf or 0
    api.PyBuffer_Release(ctypes.byref(buffer))
    return address


def _numpy_name(parameter):
    """The name of the parameter's type for NumPy, in quotes; of its bits where NumPy has none."""
    if parameter.dtype.name == "bf16":
        return '"uint16"'
    kind = {"f": "float", "i": "int", "u": "uint"}.get(parameter.dtype.name[0])
    return f'"{kind}{8 * parameter.dtype.itemsize}"' if kind else '"bool"'


def _contiguous(name, argument):
    """An expression that makes a contiguous copy."""
    from . import _gpu

    if _gpu.is_torch(argument):
        return f"{name}.contiguous()"
    if hasattr(argument, "__cuda_array_interface__"):
        return f"cupy.ascontiguousarray({name})"
    return f"numpy.ascontiguousarray({name})"


def _writable_remedy(argument):
    if type(argument).__module__.partition(".")[0] in ("jax", "jaxlib"):
        return (
            "JAX's arrays never change: let the kernel write to an array of CuPy or torch, which"
            " jax.dlpack.from_dlpack makes one of JAX without copying."
        )
    return "Pass a writable array."


def _dtype_remedy(parameter, argument):
    from . import _gpu

    if _gpu.is_torch(argument) and not parameter.is_written:
        return f"Pass {parameter.name}.to(torch.{_torch_name(parameter)})."
    name, wanted, is_bf16 = parameter.name, _numpy_name(parameter), parameter.dtype.name == "bf16"
    if isinstance(argument, bytearray) or isinstance(argument, bytes) and not parameter.is_written:
        return f"Pass numpy.frombuffer({name}, {wanted})."
    if parameter.is_written:
        return (
            f"Make {name} an array of {wanted}{' (the bits)' if is_bf16 else ''} from the start:"
            " the kernel writes it, and what it writes to a converted copy would be lost."
        )
    if is_bf16:
        return f"Pass ph.to_bf16({name}), or an array of ml_dtypes.bfloat16."
    if hasattr(argument, "astype"):
        return f"Pass {name}.astype({wanted})."
    return f"Pass numpy.array({name}, {wanted})."


def _torch_name(parameter):
    return "bfloat16" if parameter.dtype.name == "bf16" else _numpy_name(parameter).strip('"')


def _copy_remedy(parameter, copy):
    name = parameter.name
    if not parameter.is_written:
        return f"Pass {copy}."
    return f"The kernel writes {name}: pass copy = {copy}, and after the launch {name}[...] = copy."


# The largest finite number of each floating type.
_LARGEST = {"f16": "65504", "bf16": "3.3895e38", "f32": "3.4028e38", "f64": "1.7977e308"}


def _limits(dtype):
    """The smallest and the largest number of the type, for a message."""
    if dtype.name in _LARGEST:
        return "-" + _LARGEST[dtype.name], _LARGEST[dtype.name]
    bits = 8 * dtype.itemsize
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.name[0] == "i" else (0, (1 << bits) - 1)


def bf16_bits(value):
    """The bits of a number as bf16, rounded once to nearest even; OverflowError: too large."""
    number = struct.unpack("<d", struct.pack("<d", value))[0]  # float() would take texts too
    if number != number:
        return 0x7FC0
    magnitude = abs(number)
    if magnitude != math.inf:
        # bf16 has 8 significant bits and the exponents of f32: round the multiple of its unit, as
        # an integer.
        unit = max(math.frexp(magnitude)[1] - 8, -133)
        magnitude = math.ldexp(round(math.ldexp(magnitude, -unit)), unit)
    bits = struct.unpack("<I", struct.pack("<f", magnitude))[0] >> 16
    return bits | 0x8000 if math.copysign(1.0, number) < 0 else bits


def as_number(value, is_float):
    """The value as Python's own float or int (an int too where no float holds it), else None."""
    if isinstance(value, (str, bytes, bytearray)):
        return None
    try:
        if not is_float:
            return operator.index(value)
        return struct.unpack("<d", struct.pack("<d", value))[0]
    except (OverflowError, TypeError, ValueError, struct.error):
        return value if isinstance(value, int) else None


def as_bool(value):
    """The value as a bool. Raises ValueError: it is neither that nor 0 nor 1."""
    numpy = sys.modules.get("numpy")
    if isinstance(value, bool) or (numpy is not None and isinstance(value, numpy.bool_)):
        return bool(value)
    if isinstance(value, int) and value in (0, 1):
        return value == 1
    raise ValueError


def tolerance(name, value, kernel=""):
    """rtol or atol as a float, or None. Raises ArgumentError."""
    if value is None:
        return None
    number = None if isinstance(value, bool) else as_number(value, True)
    if number is not None and 0 <= number <= sys.float_info.max:
        return number
    raise argument_error(
        f"{name} must be a finite number that is not negative, or None, not {said(value)}", kernel
    )


def switch(name, value, kernel=""):
    """An option that is True or False. Raises ArgumentError."""
    try:
        return as_bool(value)
    except ValueError:
        raise argument_error(f"{name} must be True or False, not {said(value)}", kernel) from None


def function(name, value, kernel="", remedy=""):
    """A function that the user gives, or None. Raises ArgumentError."""
    if value is None or callable(value):
        return value
    raise argument_error(f"{name} must be a function, not {said(value)}", kernel, remedy)


def extent(name, value, kernel=""):
    """The value of an extent. Raises ArgumentError."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if 0 <= number < 1 << 63:
        return number
    raise argument_error(
        f"{name} is an extent, a whole number that is not negative, not {said(value)}", kernel
    )
