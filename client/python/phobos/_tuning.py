# SPDX-License-Identifier: Apache-2.0
"""One request to tune: what the C face gets and calls back; errors of the user's functions."""

import ctypes
import operator
from types import MappingProxyType

from . import _display, _library, _progress, _reference
from ._errors import PhobosError, ReferenceFailedError, TuneError, argument_error, said, told


_LIMITS = (0x7FFFFFFF, 0xFFFF, 0xFFFF)  # blocks along x, y, z, on every chip


def sides_of(grid, meta, kernel):
    """The grid as three numbers. Raises ArgumentError, or what a grid function raises."""
    value = grid(meta) if callable(grid) else grid
    parts = value.tolist() if hasattr(value, "tolist") else value  # NumPy's and the like
    try:
        sides = tuple(map(operator.index, parts if isinstance(parts, (tuple, list)) else (parts,)))
    except TypeError:
        sides = ()
    if not 1 <= len(sides) <= 3 or min(sides) < 0:
        raise argument_error(
            f"a grid is 1 to 3 whole numbers of blocks, not {said(value)}",
            kernel,
            f"Write a tuple, {kernel}[(64,)](...), or a function of the constants and extents,"
            f' {kernel}[lambda meta: (-(-meta["N"] // meta["BLOCK"]),)](...).',
        )
    if any(side > limit for side, limit in zip(sides, _LIMITS)):
        raise argument_error(
            f"the grid {said(sides)} is too large: x may be {_LIMITS[0]} at most, y and z {_LIMITS[1]}",
            kernel,
            "Let each block do more, or use x.",
        )
    return (sides + (1, 1))[:3]


class _Meta(dict):
    def __missing__(self, name):
        raise KeyError(f"{name!r} is no constant or extent; there are {', '.join(self)}")


def meta_of(settings, extents, values):
    """What a grid function gets: constants and extents by name, read-only."""
    return MappingProxyType(_Meta(settings, **dict(zip(extents, values))))


def is_empty(grid, description, extents):
    """Whether the grid has no block, whichever variant is taken.

    Where no variant gets a grid, raises what is wrong with it or what the function raised, before a
    tune begins. A function may refuse some variants.
    """
    problem, saw_empty = None, False
    for settings in description.settings.values():
        try:
            meta = meta_of(settings, description.extents, extents)
            if 0 not in sides_of(grid, meta, description.kernel):
                return False
            saw_empty = True
        except Exception as error:
            problem = problem or error
    if problem is not None and not saw_empty:
        raise problem
    return saw_empty and problem is None


class Options:
    """Options of a tune. rtol, atol: None is the type's own."""

    __slots__ = ("rtol", "atol", "flush_l2", "force")

    def __init__(self, rtol, atol, flush_l2, force=False):
        self.rtol = rtol
        self.atol = atol
        self.flush_l2 = flush_l2
        self.force = force


class Tuning:
    """A phobos_tune_request and its callbacks. Used for one call, by the thread that made it."""

    def __init__(self, library, handle, description, binding, grid, reference, options, hopeless):
        self._library = library
        self.handle = handle  # of the kernel on the arguments' device
        # Gives the error for which waiting is in vain, or None.
        self._hopeless = hopeless
        self._description = description
        self._binding = binding
        self._grid = grid
        self._reference = reference
        self._errors = {}  # "grid", "reference" -> the first exception of the user's function
        self._bar = None
        self._given = {}  # the memory of what the reference gets, by position
        self._values = description.signature.pack(binding.values)
        self._extents = (ctypes.c_int64 * len(binding.extents))(*binding.extents)
        request = self.request = _library.TuneRequest()
        request.struct_bytes = ctypes.sizeof(request)
        request.extents = ctypes.addressof(self._extents)
        request.extent_count = len(binding.extents)
        request.values = self._values
        request.value_count = len(binding.values)
        request.grid = _library.GridFunction(self._on_grid)
        if reference is not None:
            request.reference = _library.ReferenceFunction(self._on_reference)
            request.memory = _library.MemoryFunction(self._on_memory)
        request.progress = _library.ProgressFunction(self._on_progress)
        if options.rtol is not None:
            request.rtol = ctypes.pointer(ctypes.c_double(options.rtol))
        if options.atol is not None:
            request.atol = ctypes.pointer(ctypes.c_double(options.atol))
        request.no_flush_l2 = not options.flush_l2
        request.force = bool(options.force)
        request.stream = binding.stream

    @property
    def extents(self):
        """(address, count), as the C face takes them."""
        return ctypes.addressof(self._extents), len(self._extents)

    def run(self, name, *arguments):
        """Makes the call, under a progress bar. What the user's functions raised is the cause."""
        label = f"tuning {self._description.kernel} {self._where()}".rstrip()
        with _progress.Bar(label) as self._bar:
            try:
                return self._library.waiting_call(name, *arguments, hopeless=self._hopeless)
            except PhobosError as error:
                cause = self._errors.get("reference") or self._errors.get("grid")
                # An answer that does not fit is told once; and where the kernel does not compile,
                # no reference is the cause.
                own = isinstance(cause, ReferenceFailedError) or error.reason == "no_winner"
                raise self._explained(error) from (None if own else cause)
            finally:
                self._break_cycles()

    def _break_cycles(self):
        self.request.grid = _library.GridFunction()
        self.request.reference = _library.ReferenceFunction()
        self.request.memory = _library.MemoryFunction()
        self.request.progress = _library.ProgressFunction()

    def _where(self):
        return _display.pairs_text(dict(zip(self._description.extents, self._binding.extents)))

    def _explained(self, error):
        raised = self._errors.get("reference")
        if raised is None or not isinstance(error, TuneError) or error.reason == "no_winner":
            return error
        if isinstance(raised, ReferenceFailedError):
            text, remedy = raised.message, raised._own_remedy
        else:
            text, remedy = f"the reference raised {told(raised)}", ""
            if isinstance(raised, TypeError) and "argument" in text:
                names = ", ".join(self._description.signature.names)
                remedy = f"It is called with the arguments of a launch, by position: ({names})."
        return ReferenceFailedError(
            text,
            kernel=error.kernel or self._description.kernel,
            key=error.key,
            reason="reference_failed",
            remedy=remedy,
        )

    def _guarded(self, what, sink, function, *arguments):
        """0, or 1 after telling the sink what the user's function raised."""
        try:
            self._library.guard().run(function, *arguments)
            return 0
        except BaseException as exception:
            # Nothing may pass through C. The guard has what is no Exception, and raises it later.
            if isinstance(exception, Exception):
                self._errors.setdefault(what, exception)
            text = exception.message if isinstance(exception, PhobosError) else told(exception)
            self._library.say(sink, text.encode(errors="replace"))
            return 1

    def _on_grid(self, user, variant, settings_json, grid, sink):
        return self._guarded("grid", sink, self._fill_grid, variant, grid)

    def _fill_grid(self, variant, grid):
        settings = self._description.settings[variant]
        meta = meta_of(settings, self._description.extents, self._binding.extents)
        grid[0], grid[1], grid[2] = sides_of(self._grid, meta, self._description.kernel)

    def _on_memory(self, user, parameter, size):
        try:
            given = _reference.Memory(size)
        except BaseException:  # nothing may pass through C, which has memory of its own
            return None
        self._given[parameter] = given
        return given.address

    def _on_reference(self, user, arguments, expected, sink):
        return self._guarded("reference", sink, self._fill_expected, arguments, expected)

    def _fill_expected(self, arguments, expected):
        parameters, shapes = self._description.signature.parameters, self._binding.shapes
        kernel = self._description.kernel
        addresses = arguments[: len(parameters)]
        given, self._given = self._given, {}
        try:
            copies = _reference.copies(parameters, shapes, addresses, given, kernel)
            self._tell(self._reference(*copies), shapes, expected)
        finally:
            copies = None
            for memory in given.values():
                memory.close()

    def _tell(self, answer, shapes, expected):
        parameters, kernel = self._description.signature.parameters, self._description.kernel
        for name, array in _reference.expected(answer, parameters, shapes, kernel).items():
            code = self._library.expect(expected, name.encode(), array.ctypes.data, array.nbytes)
            if code:
                raise ReferenceFailedError(
                    f"the expected {name} was refused (code {code})", kernel=kernel
                )

    def _on_progress(self, user, report):
        try:
            now = report.contents
            best = self._description.settings.get(now.best_variant, {}) if now.best_ns else {}
            self._bar.show(
                _progress.Progress(
                    phase=(now.phase or b"").decode(),
                    done=now.done,
                    total=now.total,
                    best_ns=now.best_ns,
                    best_settings=_display.settings_text(best) if best else "",
                    queue_position=now.queue_position,
                    estimate_ms=now.estimate_ms,
                    note=(now.note or b"").decode(),
                )
            )
        except BaseException as exception:  # nothing may pass through C
            self._library.guard().exception = exception
        return 1 if self._library.is_interrupted() else 0
