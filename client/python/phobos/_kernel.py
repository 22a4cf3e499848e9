# SPDX-License-Identifier: Apache-2.0
"""Kernel: what @ph.kernel makes of a function. Launches, tunes, gives Results. Any thread; a forked
child may go on.
"""

import os
import sys
import threading
import weakref
from functools import partial
from struct import Struct
from struct import error as StructError

from . import _arguments
from ._errors import KernelSourceError, LaunchError, PhobosWarning, TuneError
from ._errors import argument_error, said
from ._source import text_of

_GRID = Struct("<qqq")
_ONES = {1: (1, 1), 2: (1,), 3: ()}  # what a grid of so many sides lacks
_LOOK_AGAIN = 101
_PLANS = 4096  # kept a kernel; those over are asked for again
_LOOK_ROUND = 0.2  # seconds between looks at why it takes so long
_TRIES = 8  # plans in a row that may turn out to be out of date before a launch gives up

# A forked child gives these new locks: in it, those that other threads held stay held for ever.
_kernels = weakref.WeakSet()
_listeners = []


def on_tune(callback):
    """Calls callback(result) after every tune of this process (not for stored Results), in the
    thread that asked for the tune.

    Gives a function that ends this.
    """
    if not callable(callback):
        raise argument_error(
            f"ph.on_tune takes a function that gets a Result, not {said(callback)}"
        )
    listener = partial(callback)  # an object of this call's own
    _listeners.append(listener)

    def stop():
        if listener in _listeners:
            _listeners.remove(listener)

    return stop


class _Handle:
    """What the C face gives out through `handle`; freed with its last user."""

    __slots__ = ("handle", "_free")

    def __init__(self, handle, free):
        self.handle = handle  # a c_void_p that is empty until C fills it
        self._free = free

    def __del__(self):
        if self.handle:
            self._free(self.handle)


class _Plan(_Handle):
    """A variant that is loaded for one set of extents."""

    __slots__ = ("meta",)


class _Turn:
    """The right to prepare a plan. owner: the thread that has it, or None."""

    __slots__ = ("lock", "owner")

    def __init__(self):
        self.lock = threading.Lock()
        self.owner = None


class _Description:
    """What phobos-compile says of a kernel, as far as this package needs it."""

    def __init__(self, record):
        from ._arguments import Parameter, Signature

        self.kernel = record["kernel"]
        self.extents = list(record.get("extents", ()))
        self.key = list(record.get("key", ()))
        self.signature = Signature(
            self.kernel, [Parameter(one) for one in record.get("parameters", ())], self.extents
        )
        self.settings = {
            int(one.get("index", 0)): one.get("settings", {}) for one in record.get("variants", ())
        }


class Kernel:
    """A kernel of the file that defines it.

    kernel[grid](*arguments) launches and returns when the launch is done. The grid is a tuple of 1
    to 3 numbers, or a function that gets a read-only mapping of constants and extents and returns
    one.
    """

    def __init__(self, function, key, reference, rtol, atol, flush_l2):
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self.key = key
        self.reference = reference
        self._tolerance = (rtol, atol)
        self._flush_l2 = flush_l2
        self._path = function.__code__.co_filename
        try:
            self._source, self._source_error = text_of(function), None
        except KernelSourceError as error:
            # Raised when the kernel is used: defining it harms nobody.
            self._source, self._source_error = None, error
        self._description = None
        self._handle = None
        self._kinds = None  # whether each parameter is a tensor; set with the description
        self._plans = {}  # extents -> _Plan
        self._known = {}  # what accepted arguments say of themselves -> _Plan
        self._renew_locks()
        _kernels.add(self)

    def _renew_locks(self):
        self._lock = threading.Lock()  # guards changes of _plans, _known and _turns, and opening
        self._turns = {}  # extents -> _Turn of the thread that prepares a plan for them
        self._referring = {}  # values of the key -> thread that runs the reference for its tune

    def __repr__(self):
        return f"<phobos kernel {self.__module__}.{self.__qualname__}>"

    def __reduce__(self):
        return self.__qualname__  # pickled by name, as functions are

    def __call__(self, *arguments, **named):
        raise argument_error(
            "a kernel is launched over a grid", self.__name__, f"Write {self.__name__}[grid](...)."
        )

    def __getitem__(self, grid):
        return partial(self._launch, grid)

    def tune(
        self,
        grid=None,
        /,
        *arguments,
        reference=None,
        rtol=None,
        atol=None,
        flush_l2=None,
        force=False,
        **named,
    ):
        """Tunes at these arguments' extents, or gives the current Result where it was made with the
        same options.

        reference, rtol, atol, flush_l2: as on @ph.kernel, whose values they replace in this call.
        force: tunes again; only a Result newer than the one that this process saw last, or else
        than the stored one, will do. The arguments are left as they are. From then on launches of this process at this key take the Result's winner. Raises
        TuneError, with every variant's reason, where no variant passed.
        """
        import ctypes

        tuning = self._tuning(grid, arguments, named, reference, rtol, atol, flush_l2, force)
        result = self._new_result()
        tuning.run(
            "phobos_kernel_tune",
            self._handle,
            ctypes.byref(tuning.request),
            ctypes.byref(result.handle),
            None,
        )
        taken = self._taken(result)
        self._tell(taken)
        return taken

    def warm(
        self, grid=None, /, *arguments, reference=None, rtol=None, atol=None, flush_l2=None, **named
    ):
        """As tune, at low priority; returns as soon as the daemon has all it needs for it."""
        import ctypes

        tuning = self._tuning(grid, arguments, named, reference, rtol, atol, flush_l2, False)
        tuning.run("phobos_kernel_warm", self._handle, ctypes.byref(tuning.request))
        self._tell_notes()

    def result(self, /, *positional, **extents):
        """The current Result at a key, add.result(N=1024), or None. Never tunes."""
        import ctypes

        from ._library import MISS, library

        names, key = self._described().extents, self._description.key
        unknown = [name for name in extents if name not in names]
        missing = [name for name in key if name not in extents]
        if positional or unknown or missing:
            what = f"{(unknown + missing)[0]!r} is" if unknown or missing else ""
            what += " no extent of the kernel" if unknown else " missing"
            raise argument_error(
                "an extent is given by name" if positional else what,
                self.__name__,
                f"Write {self.__name__}.result({', '.join(name + '=1024' for name in key)}), with a"
                " value for each extent of the key.",
            )
        given = {n: _arguments.extent(n, value, self.__name__) for n, value in extents.items()}
        values = (ctypes.c_int64 * len(names))(*(given.get(name, -1) for name in names))
        result = self._new_result()
        code = library().waiting_call(
            "phobos_kernel_result", self._handle, values, len(values), ctypes.byref(result.handle)
        )
        return None if code == MISS else self._taken(result)

    def adopt(self, result=None):
        """Gives the daemon a Result made elsewhere; its winner is launched from now on."""
        from ._library import library
        from ._result import Result

        if not isinstance(result, Result):
            raise argument_error(
                f"adopt takes a Result, not {said(result)}",
                self.__name__,
                "Give what tune() returned, or ph.Result.from_json(text).",
            )
        if result.kernel != self.__name__:
            raise argument_error(f"the Result is of the kernel {result.kernel}", self.__name__)
        self._described()
        library().waiting_call(
            "phobos_kernel_adopt", self._handle, result.message, len(result.message)
        )
        self._tell_notes()

    # The fast path of a launch. Everything that could be wrong falls through to _launch_checked,
    # which explains it.
    def _launch(self, grid, /, *arguments, stream=None, **named):
        kinds = self._kinds
        if named and self._description is not None:
            arguments, named = self._description.signature.ordered(arguments, named), {}
        if kinds is None or stream is not None or len(arguments) != len(kinds):
            return self._launch_checked(grid, arguments, named, stream)
        known, values = [], []
        try:
            for argument, is_tensor in zip(arguments, kinds):
                if is_tensor:
                    said = argument.__array_interface__
                    address, is_readonly = said["data"]
                    values.append(address)
                    shape, strides = said["shape"], said["strides"]
                    known.append((type(argument), shape, said["typestr"], is_readonly, strides))
                else:
                    values.append(argument)
            plan = self._known[tuple(known)]
            for i, convert in self._converted:
                values[i] = convert(values[i])
            sides = grid(plan.meta) if callable(grid) else grid
            if type(sides) is not tuple:
                sides = (sides,)
            sides = _GRID.pack(*sides, *_ONES[len(sides)])
            code = self._run(plan.handle, self._pack(*values), sides, None)
            if code == _LOOK_AGAIN:
                self._forget(plan)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, StructError):
            code = -1
        if code:
            self._launch_checked(grid, arguments, named, stream)

    def _launch_checked(self, grid, arguments, named, stream):
        from ._library import LOOK_AGAIN, library
        from ._tuning import sides_of

        signature = self._described().signature
        if stream is not None:
            raise argument_error(
                "streams belong to GPUs, and this kernel runs on the host chip",
                self.__name__,
                "Leave stream out.",
            )
        arguments = signature.ordered(arguments, named)
        binding = signature.bind(arguments)
        packed = signature.pack(binding.values)
        for _ in range(_TRIES):
            plan = self._plans.get(binding.extents) or self._prepare(binding, grid)
            if plan is None:
                return
            self._remember(arguments, plan)
            sides = _GRID.pack(*sides_of(grid, plan.meta, self.__name__))
            if library().call("phobos_plan_launch", plan.handle, packed, sides) != LOOK_AGAIN:
                return
            self._forget(plan)
        raise LaunchError(
            "what to launch changed again and again while it was looked up", kernel=self.__name__
        )

    def _described(self):
        """The description; opens the kernel at the first call."""
        if self._description is not None:
            return self._description
        if self._source_error is not None:
            raise self._source_error
        from ._library import library

        with self._lock:
            if self._description is None:
                handle = library().open_kernel(self._source, self._path, self.__name__)
                weakref.finalize(self, library().free_kernel, handle).atexit = False
                description = _Description(
                    library().take_text("phobos_kernel_describe_json", handle)
                )
                signature = description.signature
                self._handle = handle
                self._run = library().launch
                self._pack = signature.packer.pack
                self._converted = [
                    (i, partial(signature.scalar, p)) for i, p in signature.converted
                ]
                self._kinds = [parameter.is_tensor for parameter in signature.parameters]
                self._description = description
        return self._description

    def _tuning(self, grid, arguments, named, reference, rtol, atol, flush_l2, force):
        from ._tuning import is_empty

        name = self.__name__
        reference = _arguments.function("reference", reference, name)
        rtol = _arguments.tolerance("rtol", rtol, name)
        atol = _arguments.tolerance("atol", atol, name)
        flush_l2 = None if flush_l2 is None else _arguments.switch("flush_l2", flush_l2, name)
        force = _arguments.switch("force", force, name)
        description = self._described()
        if grid is None:
            raise argument_error(
                "the grid is missing: tune and warm take what a launch takes, the grid first",
                name,
                f"Write {name}.tune(grid, {', '.join(description.signature.names)}).",
            )
        binding = description.signature.bind(description.signature.ordered(arguments, named))
        if reference is None and self.reference is None:
            raise TuneError(
                "there is no reference to check variants against",
                kernel=self.__name__,
                reason="bad_argument",
                remedy="Give reference=f, here or on @ph.kernel.",
            )
        if is_empty(grid, description, binding.extents):
            raise TuneError(
                "the grid is empty, so there is nothing to tune",
                kernel=self.__name__,
                reason="bad_argument",
                remedy="Give a grid with at least one block, and arrays that are not empty.",
            )
        return self._request(grid, binding, reference, rtol, atol, flush_l2, force)

    def _request(
        self, grid, binding, reference=None, rtol=None, atol=None, flush_l2=None, force=False
    ):
        from ._library import library
        from ._tuning import Options, Tuning

        options = Options(
            self._tolerance[0] if rtol is None else rtol,
            self._tolerance[1] if atol is None else atol,
            self._flush_l2 if flush_l2 is None else flush_l2,
            force,
        )
        return Tuning(
            library(),
            self._description,
            binding,
            grid,
            self._marked(reference or self.reference, binding),
            options,
            partial(self._deadlock, binding),
        )

    def _marked(self, reference, binding):
        """The reference, which tells _referring while it runs."""

        def run(*arguments):
            key = self._key_of(binding)
            before = self._referring.get(key)
            self._referring[key] = threading.get_ident()
            try:
                return reference(*arguments)
            finally:
                if before is None:
                    self._referring.pop(key, None)
                else:
                    self._referring[key] = before

        return run

    def _prepare(self, binding, grid):
        """The plan for a launch; tunes where that is the rule. None: the grid is empty."""
        from ._tuning import is_empty

        with self._lock:
            turn = self._turns.setdefault(binding.extents, _Turn())
        me = threading.get_ident()
        if turn.owner == me:
            raise LaunchError(
                "the kernel is being prepared by this thread, and its reference or grid launched"
                " it at the same extents",
                kernel=self.__name__,
                remedy="Compute the reference and the grid without this kernel.",
            )
        result = None
        try:
            self._take(turn, binding)
            try:
                turn.owner = me
                try:
                    plan = self._plans.get(binding.extents)
                    if plan is None and not is_empty(grid, self._description, binding.extents):
                        plan, result = self._ask(binding, grid)
                        self._keep(binding.extents, plan)
                finally:
                    turn.owner = None
            finally:
                turn.lock.release()
        finally:
            with self._lock:
                self._turns.pop(binding.extents, None)
        # A listener may launch this kernel: nothing is held here.
        self._tell(result)
        return plan

    def _take(self, turn, binding):
        """Waits for the turn."""
        while not turn.lock.acquire(timeout=_LOOK_ROUND):
            error = self._deadlock(binding)
            if error is not None:
                raise error

    def _key_of(self, binding):
        extents = dict(zip(self._description.extents, binding.extents))
        return tuple(extents[name] for name in self._description.key)

    def _deadlock(self, binding):
        """The error for a launch or tune that waits for a reference that waits for it, or None."""
        referring, me = self._referring.get(self._key_of(binding)), threading.get_ident()
        if referring is None:
            return None
        from ._reference import waits_for

        if referring != me and not waits_for(referring, me):
            return None
        return LaunchError(
            "the reference of a tune waits for this launch of the same kernel, and the launch waits"
            " for that tune",
            kernel=self.__name__,
            remedy="Compute the reference without this kernel.",
        )

    def _ask(self, binding, grid):
        """(plan, Result of the tune that this took or None)."""
        import ctypes

        from ._library import library
        from ._tuning import meta_of

        plan, result = _Plan(ctypes.c_void_p(), library().free_plan), self._new_result()
        tuning = self._request(grid, binding)
        request = ctypes.byref(tuning.request) if self.reference is not None else None
        tuning.run(
            "phobos_kernel_prepare",
            self._handle,
            *tuning.extents,
            None,
            request,
            ctypes.byref(plan.handle),
            ctypes.byref(result.handle),
        )
        settings = library().take_text("phobos_plan_json", plan.handle).get("settings", {})
        plan.meta = meta_of(settings, self._description.extents, binding.extents)
        return plan, self._taken(result) if result.handle else None

    def _keep(self, extents, plan):
        with self._lock:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[extents] = plan

    def _remember(self, arguments, plan):
        """Lets the fast path take the plan for arguments that say the same of themselves."""
        known = []
        for argument, is_tensor in zip(arguments, self._kinds):
            if is_tensor:
                said = getattr(argument, "__array_interface__", None)
                if said is None or "strides" not in said:
                    return
                shape, strides = said["shape"], said["strides"]
                known.append((type(argument), shape, said["typestr"], said["data"][1], strides))
        with self._lock:
            if len(self._known) >= _PLANS:
                self._known.clear()
            self._known[tuple(known)] = plan

    def _forget(self, plan):
        with self._lock:
            for plans in (self._plans, self._known):
                for name in [name for name, one in plans.items() if one is plan]:
                    del plans[name]

    def _new_result(self):
        import ctypes

        from ._library import library

        return _Handle(ctypes.c_void_p(), library().free_result)

    def _taken(self, result):
        from ._library import library
        from ._result import Result

        record, message = library().read_result(result.handle)
        return Result(record, message)

    def _tell(self, result):
        """Tells the user what the library noted, and the listeners of a tune, if there was one."""
        self._tell_notes()
        if result is not None and not result.cached:
            for listener in list(_listeners):
                listener(result)

    def _tell_notes(self):
        """What the library wants the user to know: variants left out as lines, the rest warned."""
        import warnings

        from ._library import library

        for note in library().take_notes():
            if ": left out " in note:
                print(f"phobos: {note}", file=sys.stderr)
            else:
                warnings.warn(note, PhobosWarning, stacklevel=_levels_to_user())


def _levels_to_user():
    """How far above the caller the code that uses this package is, as warnings count."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    return level


def _renew_locks():
    for kernel in _kernels:
        kernel._renew_locks()


os.register_at_fork(after_in_child=_renew_locks)
