# SPDX-License-Identifier: Apache-2.0
"""libphobos.so through ctypes: the calls of client/c/phobos.h, errors as this package's exceptions.

The library is loaded, and the process's one client opened, when the first kernel is used. Any
thread; a forked child may go on using everything here.
"""

import ctypes
import os
import signal
import threading
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t
from ctypes import c_uint64, c_void_p

from . import _errors

# Codes of client/c/phobos.h.
OK = 0
CANCELLED = 1
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
UNIMPLEMENTED = 12
UNAVAILABLE = 14
MISS = 100
LOOK_AGAIN = 101

InterruptedFunction = CFUNCTYPE(c_int, c_void_p)
WarnFunction = CFUNCTYPE(None, c_void_p, c_char_p)


class Error(ctypes.Structure):
    _fields_ = [("code", c_int32)] + [
        (name, c_char_p)
        for name in ("reason", "message", "kernel", "key", "remedy", "variants_json")
    ]


class ClientOptions(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("socket", c_char_p),
        ("daemon", c_char_p),
        ("client_name", c_char_p),
        ("no_autostart", c_int32),
        ("threads", c_int32),
        ("interrupted", InterruptedFunction),
        ("warn", WarnFunction),
        ("user", c_void_p),
    ]


class ProgressReport(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("phase", c_char_p),
        ("done", c_int32),
        ("total", c_int32),
        ("best_ns", c_int64),
        ("best_variant", c_int32),
        ("queue_position", c_int32),
        ("estimate_ms", c_int64),
        ("elapsed_ms", c_int64),
        ("leads", c_int32),
        ("note", c_char_p),
    ]


GridFunction = CFUNCTYPE(c_int, c_void_p, c_int32, c_char_p, POINTER(c_int64), c_void_p)
ReferenceFunction = CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p), c_void_p, c_void_p)
ProgressFunction = CFUNCTYPE(c_int, c_void_p, POINTER(ProgressReport))
MemoryFunction = CFUNCTYPE(c_void_p, c_void_p, c_int32, c_size_t)


class TuneRequest(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("extents", c_void_p),
        ("extent_count", c_int32),
        ("value_count", c_int32),
        ("values", c_char_p),
        ("grid", GridFunction),
        ("reference", ReferenceFunction),
        ("progress", ProgressFunction),
        ("user", c_void_p),
        ("rtol", POINTER(c_double)),
        ("atol", POINTER(c_double)),
        ("no_flush_l2", c_int32),
        ("tie_break", c_int32),
        ("force", c_int32),
        ("queue_timeout_ms", c_int64),
        ("run_timeout_ms", c_int64),
        ("upload_timeout_ms", c_int64),
        ("reference_timeout_ms", c_int64),
        ("stream", c_void_p),
        ("memory", MemoryFunction),
    ]


_HANDLE, _ERROR, _OUT = c_void_p, POINTER(POINTER(Error)), POINTER(c_void_p)

# Arguments of each function that returns a phobos_code; the error pointer that ends them all is
# added below.
_CALLS = {
    "phobos_client_open": (POINTER(ClientOptions), _OUT),
    "phobos_client_hello_json": (_HANDLE, _OUT),
    "phobos_kernel_open": (_HANDLE, c_char_p, c_size_t, c_char_p, c_char_p, c_char_p, _OUT),
    "phobos_kernel_describe_json": (_HANDLE, _OUT),
    "phobos_card_of": (_HANDLE, c_uint64, POINTER(c_int32)),
    "phobos_card_uuid": (_HANDLE, c_int32, _OUT),
    "phobos_plan_launch": (_HANDLE, c_char_p, c_char_p, c_void_p),
    "phobos_plan_json": (_HANDLE, _OUT),
    "phobos_result_json": (_HANDLE, _OUT),
    "phobos_result_bytes": (_HANDLE, _OUT, POINTER(c_size_t)),
    "phobos_kernel_tune": (_HANDLE, POINTER(TuneRequest), _OUT, _OUT),
    "phobos_kernel_warm": (_HANDLE, POINTER(TuneRequest)),
    "phobos_kernel_prepare": (
        _HANDLE,
        c_void_p,
        c_int32,
        c_char_p,
        POINTER(TuneRequest),
        _OUT,
        _OUT,
    ),
    "phobos_kernel_result": (_HANDLE, c_void_p, c_int32, _OUT),
    "phobos_kernel_adopt": (_HANDLE, c_char_p, c_size_t),
}
_RELEASES = (
    "phobos_error_free",
    "phobos_text_free",
    "phobos_kernel_free",
    "phobos_plan_free",
    "phobos_result_free",
)


class Library:
    """The loaded library and this process's client."""

    def __init__(self, path, daemon):
        self.path = path
        try:
            self._functions = ctypes.CDLL(path)
        except OSError as error:
            raise _errors.DaemonError(
                f"cannot load {path}: {error}", reason="no_library", remedy=_REMEDY
            ) from None
        try:
            self._declare()
        except AttributeError as error:
            raise _errors.DaemonError(
                f"{path} is not the library of this package: {error}",
                reason="no_library",
                remedy=_REMEDY,
            ) from None
        # Bare, for the fast path: gives the code and raises nothing.
        self.launch = self._functions.phobos_plan_launch
        self.say = self._functions.phobos_sink_say
        self.expect = self._functions.phobos_expected_set
        self._local = threading.local()
        self._client = self._open_client(daemon)

    def _declare(self):
        types = {name: ((*arguments, _ERROR), c_int32) for name, arguments in _CALLS.items()}
        types.update({name: ((c_void_p,), None) for name in _RELEASES})
        types["phobos_version"] = ((), c_char_p)
        types["phobos_sink_say"] = ((c_void_p, c_char_p), None)
        types["phobos_expected_set"] = ((c_void_p, c_char_p, c_void_p, c_size_t), c_int32)
        for name, (arguments, result) in types.items():
            function = getattr(self._functions, name)
            function.argtypes, function.restype = arguments, result

    def _open_client(self, daemon):
        options = ClientOptions(struct_bytes=ctypes.sizeof(ClientOptions))
        options.client_name = b"python " + (self._functions.phobos_version() or b"")
        options.daemon = os.fsencode(daemon) if daemon else None
        options.interrupted = self._interrupted = InterruptedFunction(
            lambda user: 1 if self.is_interrupted() else 0
        )
        options.warn = self._warn = WarnFunction(self._note)
        client = c_void_p()
        self.call("phobos_client_open", ctypes.byref(options), ctypes.byref(client))
        return client

    def _note(self, user, text):
        notes = getattr(self._local, "notes", None)
        if notes is None:
            notes = self._local.notes = []
        notes.append(text.decode(errors="replace"))

    def take_notes(self):
        """What the library asked to tell the user in calls of this thread since the last time."""
        notes, self._local.notes = getattr(self._local, "notes", None) or [], []
        return notes

    def is_interrupted(self):
        """Whether a call of this thread should end: SIGINT came, or a callback of ours raised."""
        guard = getattr(self._local, "guard", None)
        return guard is not None and guard.is_set

    def call(self, name, *arguments):
        """Calls a function of the C face: gives OK, MISS or LOOK_AGAIN, raises for other codes."""
        error = POINTER(Error)()
        code = getattr(self._functions, name)(*arguments, ctypes.byref(error))
        if code in (OK, MISS, LOOK_AGAIN):
            return code
        raise self._exception(code, error)

    def waiting_call(self, name, *arguments, hopeless=None):
        """As call, for what may wait for the daemon: Ctrl-C ends it, and is raised then.

        So does an error that hopeless() gives, which is asked now and then.
        """
        outer = getattr(self._local, "guard", None)
        with InterruptGuard(hopeless) as guard:
            self._local.guard = guard
            try:
                return self.call(name, *arguments)
            finally:
                self._local.guard = outer

    def guard(self):
        """The InterruptGuard of this thread's waiting call."""
        return self._local.guard

    def _exception(self, code, error):
        if not error:
            return _errors.DaemonError(
                f"libphobos.so gave code {code} without an error", reason="internal"
            )
        try:
            fields = {
                name: getattr(error.contents, name).decode(errors="replace")
                for name, _ in Error._fields_[1:]
            }
        finally:
            self._functions.phobos_error_free(error)
        return make_exception(code, fields)

    def take_text(self, name, handle):
        """The JSON that a function of the C face gives out, parsed."""
        import json

        text = c_void_p()
        self.waiting_call(name, handle, ctypes.byref(text))
        try:
            return json.loads(ctypes.string_at(text))
        finally:
            self._functions.phobos_text_free(text)

    def card_of(self, address):
        """The card whose memory an address is, or None: it is the host's."""
        ordinal = c_int32()
        self.call("phobos_card_of", self._client, address, ctypes.byref(ordinal))
        return None if ordinal.value < 0 else ordinal.value

    def card_uuid(self, card):
        """What a daemon calls a card."""
        text = c_void_p()
        self.call("phobos_card_uuid", self._client, card, ctypes.byref(text))
        try:
            return ctypes.string_at(text).decode()
        finally:
            self._functions.phobos_text_free(text)

    def open_kernel(self, source, path, name, device):
        text = source.encode()
        kernel = c_void_p()
        self.call(
            "phobos_kernel_open",
            self._client,
            text,
            len(text),
            path.encode(errors="backslashreplace"),  # a file's name need not be UTF-8
            name.encode(),
            device.encode() if device else None,
            ctypes.byref(kernel),
        )
        return kernel

    def free_plan(self, plan):
        self._functions.phobos_plan_free(plan)

    def free_result(self, result):
        self._functions.phobos_result_free(result)

    def free_kernel(self, kernel):
        self._functions.phobos_kernel_free(kernel)

    def read_result(self, result):
        """(parsed JSON, protobuf bytes) of a result handle."""
        record = self.take_text("phobos_result_json", result)
        address, size = c_void_p(), c_size_t()
        self.call("phobos_result_bytes", result, ctypes.byref(address), ctypes.byref(size))
        return record, ctypes.string_at(address, size.value)


def make_exception(code, fields):
    """The exception for an error of the C face. fields: the texts of phobos_error by name."""
    import json

    from ._result import Variant

    reason = "" if fields["reason"] == "unspecified" else fields["reason"]
    words = {
        CANCELLED: "cancelled",
        INVALID_ARGUMENT: "bad_argument",
        DEADLINE_EXCEEDED: "timeout",
        NOT_FOUND: "not_found",
        PERMISSION_DENIED: "not_permitted",
        RESOURCE_EXHAUSTED: "limit",
        FAILED_PRECONDITION: "refused",
        UNIMPLEMENTED: "unsupported",
        UNAVAILABLE: "no_daemon",
    }
    reason = reason or words.get(code, "internal")
    kinds = {
        "bad_argument": _errors.ArgumentError,
        "bad_source": _errors.KernelSourceError,
        "cancelled": _errors.TuneCancelledError,
        "draining": _errors.DaemonError,
        "internal": _errors.DaemonError,
        "limit": _errors.DaemonError,
        "machine": _errors.DaemonError,
        "no_daemon": _errors.DaemonError,
        "no_device": _errors.DaemonError,
        "no_winner": _errors.TuneError,
        "not_found": _errors.DaemonError,
        "not_permitted": _errors.DaemonError,
        "out_of_memory": _errors.TuneError,
        "race": _errors.LaunchError,
        "reference_failed": _errors.ReferenceFailedError,
        "refused": _errors.LaunchError,
        "timeout": _errors.TuneCancelledError,
        "unknown_kernel": _errors.KernelSourceError,
        "unsupported": _errors.UnsupportedError,
    }
    # A reason of a later library goes by its code.
    kind = kinds.get(reason) or kinds[words.get(code, "internal")]
    variants = [Variant(record) for record in json.loads(fields["variants_json"] or "[]")]
    return kind(
        fields["message"] or f"code {code}",
        kernel=fields["kernel"],
        key=fields["key"],
        reason=reason,
        remedy=fields["remedy"],
        variants=variants,
    )


class InterruptGuard:
    """Holds SIGINT back while C waits, so that the call is cancelled before a handler runs.

    Python runs a signal's handler at the start of the next callback, where an exception would be
    lost. In the main thread the handler is swapped for one that takes a note; when the guard ends,
    the program's own handler is called. Elsewhere it only carries the exception that a callback
    raised.
    """

    def __init__(self, hopeless=None):
        # What a callback of ours raised, to be raised when the call has ended.
        self.exception = None
        self._hopeless = hopeless
        self._signal = None
        self._handler = None

    @property
    def is_set(self):
        if self._hopeless is not None and self.exception is None:
            self.exception = self._hopeless()
        return self._signal is not None or self.exception is not None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._take_note)
        return self

    def _take_note(self, number, frame):
        self._signal = (number, frame)

    def run(self, function, *arguments):
        """Runs the user's code in a callback, the program's own handler in force.

        Keeps what it raises that is no Exception, and raises it on.
        """
        try:
            if self._handler is None:
                return function(*arguments)
            signal.signal(signal.SIGINT, self._handler)
            try:
                return function(*arguments)
            finally:
                signal.signal(signal.SIGINT, self._take_note)
        except Exception:
            raise
        except BaseException as exception:
            self.exception = exception
            raise

    def __exit__(self, kind, exception, traceback):
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if self.exception is not None:
            raise self.exception from None
        if self._signal is not None:
            try:
                self._handler(*self._signal)
            except BaseException as raised:
                raise raised from None
        return False


_REMEDY = (
    "Set PHOBOS_LIBRARY to the path of libphobos.so, or build it in the checkout:"
    " bazel build //client/c:libphobos.so"
)


def _paths():
    """(libphobos.so, phobosd or None), by the rules of docs/python.md."""
    package = os.path.dirname(os.path.abspath(__file__))
    built = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(package))), "bazel-bin")
    given = os.environ.get("PHOBOS_LIBRARY")
    if given:
        return given, None
    beside = os.path.join(package, "libphobos.so")
    if os.path.exists(beside):
        return beside, None
    daemon = os.path.join(built, "daemon", "main", "phobosd")
    path = os.path.join(built, "client", "c", "libphobos.so")
    if not os.path.exists(path):
        raise _errors.DaemonError(
            f"no libphobos.so: neither {beside} nor {path}", reason="no_library", remedy=_REMEDY
        )
    return path, daemon if os.path.exists(daemon) and "PHOBOS_DAEMON" not in os.environ else None


_lock = threading.Lock()
_library = None


def library():
    """This process's Library, loaded at the first call."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = Library(*_paths())
    return _library


def _renew_lock():
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
