# SPDX-License-Identifier: Apache-2.0
"""The stand-in library (fake_phobos.c) as the tests steer it."""

import ctypes
import json
import os

PATH = os.path.abspath(os.environ["PHOBOS_LIBRARY"])
os.environ["PHOBOS_LIBRARY"] = PATH

_functions = ctypes.CDLL(PATH)
_functions.fake_values.restype = ctypes.POINTER(ctypes.c_uint64)
_functions.fake_grid.restype = ctypes.POINTER(ctypes.c_int64)
_functions.fake_counts.restype = ctypes.POINTER(ctypes.c_int64)
_functions.fake_stream.restype = _functions.fake_tune_stream.restype = ctypes.c_uint64
_functions.fake_set_card.argtypes = (ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64)
_functions.fake_opened_device.restype = ctypes.c_char_p
for _name in ("fake_expected_names", "fake_grid_errors", "fake_reference_error"):
    getattr(_functions, _name).restype = ctypes.c_char_p


def tensor(name, dtype="f32", dims=("N",), **more):
    dims = [{"extent": d} if isinstance(d, str) else {"literal": d} for d in dims]
    return {"name": name, "dtype": dtype, "is_tensor": True, "dims": dims, "is_read": True, **more}


def scalar(name, dtype="f32"):
    return {"name": name, "dtype": dtype}


def describe(kernel, parameters, extents=("N",), key=("N",), blocks=(256, 512)):
    """From now on every kernel is this one, and a plan is its first variant."""
    reset()
    variants = [{"index": i, "settings": {"BLOCK": block}} for i, block in enumerate(blocks)]
    description = {
        "kernel": kernel,
        "parameters": parameters,
        "extents": list(extents),
        "key": list(key),
    }
    _functions.fake_set(b"description", json.dumps({**description, "variants": variants}).encode())
    _functions.fake_set(
        b"plan", json.dumps({"variant": 0, "settings": {"BLOCK": blocks[0]}}).encode()
    )
    _functions.fake_set(b"result", json.dumps(RESULT).encode())
    number("value_count", len(parameters))
    number("scalars", sum(1 << i for i, p in enumerate(parameters) if not p.get("is_tensor")))


def reset():
    _functions.fake_reset()


def number(name, value):
    _functions.fake_set_number(name.encode(), value)


def result(record):
    _functions.fake_set(b"result", json.dumps(record).encode())


def fail(function, code, reason="", message="no", remedy="", variants=()):
    _functions.fake_fail(
        function.encode(),
        code,
        reason.encode(),
        message.encode(),
        remedy.encode(),
        json.dumps(list(variants)).encode(),
    )


def warn(text):
    _functions.fake_warn(text.encode())


def values(count):
    return _functions.fake_values()[:count]


def grid():
    return tuple(_functions.fake_grid()[:3])


def card(ordinal, begin, end):
    """From now on these addresses are the memory of that card, GPU-0 or GPU-1."""
    _functions.fake_set_card(ordinal, begin, end)


def device():
    """Where the last kernel was opened; "" for the host chip."""
    return _functions.fake_opened_device().decode()


def stream():
    """Of the last launch."""
    return _functions.fake_stream()


def tune_stream():
    """Of the last request to prepare or tune."""
    return _functions.fake_tune_stream()


def counts():
    return dict(zip(("launches", "prepares", "tunes"), _functions.fake_counts()[:3]))


def expected_names():
    return _functions.fake_expected_names().decode().split()


def expected_bytes(size):
    _functions.fake_expected_bytes.restype = ctypes.POINTER(ctypes.c_uint8)
    return bytes(_functions.fake_expected_bytes()[:size])


def grid_errors():
    return _functions.fake_grid_errors().decode().splitlines()


def reference_error():
    return _functions.fake_reference_error().decode()


RESULT = {
    "kernel": "add",
    "key": {"N": 16777216},
    "extents": {"N": 16777216},
    "device": {"uuid": "host", "card_name": "Test CPU, 2 threads", "chip": "x86-64-v3"},
    "winner": 1,
    "winner_settings": {"BLOCK": 512},
    "best_ns": 8120000,
    "ties": [1],
    "variants": [
        {
            "index": 0, "settings": {"BLOCK": 256}, "status": "timed",
            "samples_ns": [9100000, 9000000, 9900000],
            "best_ns": 9000000, "median_ns": 9100000, "spread": 0.1, "interquartile_ns": 400000,
            "grid": {"x": 65536, "y": 1, "z": 1},
        },
        {
            "index": 1, "settings": {"BLOCK": 512}, "status": "timed",
            "samples_ns": [8120000, 8300000, 8400000],
            "best_ns": 8120000, "median_ns": 8300000, "spread": 0.0345, "interquartile_ns": 100000,
        },
        {
            "index": 2, "settings": {"BLOCK": 1024}, "status": "wrong_result",
            "reason": "out[3]: got 1, want 2\nlargest error 1, 7 elements differ",
        },
    ],
    "split": {"queue_ns": 40000, "upload_ns": 12400000, "compile_ns": 8000000,
    "timing_ns": 500000000, "total_ns": 903000000},
    "rounds": 20,
    "generation": 3,
}  # fmt: skip
