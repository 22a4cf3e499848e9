# SPDX-License-Identifier: Apache-2.0
"""Kernel: what @ph.kernel makes of a function. Launches, tunes, gives Results. Any thread; a forked
child may go on.
"""

import ctypes
import os
import sys
import threading
import weakref
from functools import partial
from struct import Struct
from struct import error as StructError

from . import _arguments, _gpu
from ._errors import KernelSourceError, LaunchError, PhobosWarning, TuneError
from ._errors import argument_error, said
from ._gpu import glance as _glances
from ._gpu import streams as _streams
from ._library import LOOK_AGAIN, MISS, library
from ._reference import waits_for
from ._result import Result
from ._source import text_of
from ._tuning import Options, Tuning, is_empty, meta_of, sides_of

_GRID = Struct("<qqq")
_ONES = {1: (1, 1), 2: (1,), 3: ()}  # what a grid of so many sides lacks
_WARM_OPTIONS = ("reference", "rtol", "atol", "flush_l2", "stream")
_PLANS = 4096  # kept a kernel; those over are asked for again
_LOOK_ROUND = 0.2  # seconds between looks at why it takes so long
_TRIES = 8  # plans in a row that may turn out to be out of date before a launch gives up

# A forked child gives these new locks: in it, those that other threads held stay held for ever.
_kernels = weakref.WeakSet()
_listeners = []


def on_tune(callback):
    """Calls callback(result) after every tune of this process (not for stored Results), in the
    thread that asked for the tune.

    Gives a function that ends this. An exception of the callback is warned of with its traceback
    (PhobosWarning): the tune has been made, and its caller gets the Result.
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
    """A variant for one set of extents on one device. card: of a GPU, else None."""

    __slots__ = ("meta", "card")


class _Turn:
    """The right to prepare a plan. owner: the thread that has it, or None."""

    __slots__ = ("lock", "owner")

    def __init__(self):
        self.lock = threading.Lock()
        self.owner = None


class Kernel:
    """A kernel of the file that defines it.

    kernel[grid](*arguments) launches: on the host chip it returns when the launch is done; for
    arrays on a GPU it queues the launch there, on their framework's current stream or on stream=,
    and returns. The grid is a tuple of 1 to 3 numbers, or a function that gets a read-only mapping
    of constants and extents and returns one.
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
        self._device = ""  # of the last arguments: a card's uuid, "" for the host chip
        self._handles = {}  # device -> what the C face knows the kernel there by
        self._glance = None  # how the last arguments are read fast
        self._kinds = None  # whether each parameter is a tensor; set with the description
        self._plans = {}  # (device, extents) -> _Plan
        self._known = {}  # what accepted arguments say of themselves -> _Plan
        self._renew_locks()
        _kernels.add(self)

    def _renew_locks(self):
        self._lock = threading.Lock()  # guards changes of _plans, _known and _turns, and opening
        self._turns = {}  # (device, extents) -> _Turn of the thread that prepares a plan for them
        # (device, values of the key) -> thread that runs the reference for its tune
        self._referring = {}

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
        stream=None,
        **named,
    ):
        """Tunes at these arguments' extents, or gives the current Result where it was made with the
        same options.

        reference, rtol, atol, flush_l2: as on @ph.kernel, whose values they replace in this call.
        force: tunes again; only a Result newer than the one that this process saw last, or else
        than the stored one, will do. stream: of a GPU, on which the arguments were written. The
        arguments are left as they are. From then on launches of this process at this key take the
        Result's winner. Raises TuneError, with every variant's reason, where no variant passed.
        """
        self._refuse_unknown(named, (*_WARM_OPTIONS, "force"))
        tuning = self._tuning(
            grid, arguments, named, stream, reference, rtol, atol, flush_l2, force
        )
        result = self._new_result()
        tuning.run(
            "phobos_kernel_tune",
            tuning.handle,
            ctypes.byref(tuning.request),
            ctypes.byref(result.handle),
            None,
        )
        taken = self._taken(result)
        self._tell(taken)
        return taken

    def warm(
        self,
        grid=None,
        /,
        *arguments,
        reference=None,
        rtol=None,
        atol=None,
        flush_l2=None,
        stream=None,
        **named,
    ):
        """As tune, at low priority; returns as soon as the daemon has all it needs for it."""
        self._refuse_unknown(named, _WARM_OPTIONS)
        tuning = self._tuning(
            grid, arguments, named, stream, reference, rtol, atol, flush_l2, False
        )
        tuning.run("phobos_kernel_warm", tuning.handle, ctypes.byref(tuning.request))
        self._tell_notes()

    def result(self, /, *positional, **extents):
        """The current Result at a key, add.result(N=1024), or None. Never tunes. On the device of
        the last launch or tune, the host chip before any.
        """
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
            "phobos_kernel_result",
            self._handle(self._device),
            values,
            len(values),
            ctypes.byref(result.handle),
        )
        return None if code == MISS else self._taken(result)

    def adopt(self, result=None):
        """Gives the daemon a Result made elsewhere; its winner is launched from now on, on the
        device of the last launch or tune.
        """
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
            "phobos_kernel_adopt",
            self._handle(self._device),
            result.message,
            len(result.message),
        )
        self._tell_notes()

    # The fast path of a launch. Everything that could be wrong falls through to _launch_checked,
    # which explains it.
    def _launch(self, grid, /, *arguments, stream=None, **named):
        kinds, glance = self._kinds, self._glance
        if named and self._description is not None:
            arguments, named = self._description.signature.ordered(arguments, named), {}
        if glance is None or len(arguments) != len(kinds):
            return self._launch_checked(grid, arguments, named, stream)
        try:
            known, values, own = glance(arguments, kinds)
            plan = self._known[known]
            if stream is not None:
                if plan.card is None:
                    return self._launch_checked(grid, arguments, named, stream)
                own = stream if type(stream) is int else _streams.handle_of(stream)
            for i, convert in self._converted:
                values[i] = convert(values[i])
            sides = grid(plan.meta) if callable(grid) else grid
            if type(sides) is not tuple:
                sides = (sides,)
            sides = _GRID.pack(*sides, *_ONES[len(sides)])
            code = self._run(plan.handle, self._pack(*values), sides, own, None)
            if code == LOOK_AGAIN:
                self._forget(plan)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, StructError):
            code = -1
        if code:
            self._launch_checked(grid, arguments, named, stream)

    def _launch_checked(self, grid, arguments, named, stream):
        arguments, binding = self._bind(arguments, named, stream)
        packed = self._description.signature.pack(binding.values)
        for _ in range(_TRIES):
            plan = self._plans.get(binding.place) or self._prepare(binding, grid)
            if plan is None:
                return
            self._remember(arguments, plan)
            sides = _GRID.pack(*sides_of(grid, plan.meta, self.__name__))
            launch = ("phobos_plan_launch", plan.handle, packed, sides, binding.stream)
            if library().call(*launch) != LOOK_AGAIN:
                return
            self._forget(plan)
        raise LaunchError(
            "what to launch changed again and again while it was looked up", kernel=self.__name__
        )

    def _bind(self, arguments, named, stream):
        """(the arguments in order, their Binding). The device is that of the arrays."""
        card, device = _gpu.where((*arguments, *named.values()))
        if card is None and stream is not None:
            raise argument_error(
                "streams belong to GPUs, and this kernel runs on the host chip",
                self.__name__,
                "Leave stream out.",
            )
        self._device = device
        signature = self._described().signature
        arguments = signature.ordered(arguments, named)
        if card is not None:
            if stream is None:
                stream = _streams.stream_of(arguments, card, self.__name__)
            else:
                stream = _streams.handle_of(stream, self.__name__)
        binding = signature.bind(arguments, card, stream)
        binding.device = device
        return arguments, binding

    def _described(self):
        """The description; asked for at the first call."""
        if self._description is not None:
            return self._description

        handle = self._handle(self._device)
        with self._lock:
            if self._description is None:
                description = _arguments.Description(
                    library().take_text("phobos_kernel_describe_json", handle)
                )
                signature = description.signature
                self._run = library().launch
                self._pack = signature.packer.pack
                self._converted = [
                    (i, partial(signature.scalar, p)) for i, p in signature.converted
                ]
                self._kinds = [parameter.is_tensor for parameter in signature.parameters]
                self._description = description
        return self._description

    def _handle(self, device):
        """What the C face knows the kernel on a device by; opened at the first call."""
        handle = self._handles.get(device)
        if handle is not None:
            return handle
        if self._source_error is not None:
            raise self._source_error

        with self._lock:
            handle = self._handles.get(device)
            if handle is None:
                handle = library().open_kernel(self._source, self._path, self.__name__, device)
                weakref.finalize(self, library().free_kernel, handle).atexit = False
                self._handles[device] = handle
        return handle

    def _refuse_unknown(self, named, options):
        names = self._described().signature.names
        for name in named:
            if name not in names:
                raise argument_error(
                    f"has no parameter and no option {name!r}; its parameters are"
                    f" {', '.join(names)}, and the options {', '.join(options)}",
                    self.__name__,
                )

    def _tuning(self, grid, arguments, named, stream, reference, rtol, atol, flush_l2, force):
        name = self.__name__
        reference = _arguments.function("reference", reference, name)
        rtol = _arguments.tolerance("rtol", rtol, name)
        atol = _arguments.tolerance("atol", atol, name)
        flush_l2 = None if flush_l2 is None else _arguments.switch("flush_l2", flush_l2, name)
        force = _arguments.switch("force", force, name)
        names = self._described().signature.names
        # One argument too few, and an array where the grid is: it is the grid that was left out.
        is_array = hasattr(grid, "shape") and grid.shape
        if grid is None or (is_array and len(arguments) + len(named) == len(names) - 1):
            raise argument_error(
                "the grid is missing: tune and warm take what a launch takes, the grid first",
                name,
                f"Write {name}.tune(grid, {', '.join(names)}).",
            )
        _, binding = self._bind(arguments, named, stream)
        if reference is None and self.reference is None:
            raise TuneError(
                "there is no reference to check variants against",
                kernel=self.__name__,
                reason="bad_argument",
                remedy="Give reference=f, here or on @ph.kernel.",
            )
        if is_empty(grid, self._description, binding.extents):
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
        options = Options(
            self._tolerance[0] if rtol is None else rtol,
            self._tolerance[1] if atol is None else atol,
            self._flush_l2 if flush_l2 is None else flush_l2,
            force,
        )
        reference = reference or self.reference
        return Tuning(
            library(),
            self._handle(binding.device),
            self._description,
            binding,
            grid,
            None if reference is None else self._marked(reference, binding),
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
        with self._lock:
            turn = self._turns.setdefault(binding.place, _Turn())
        me = threading.get_ident()
        if turn.owner == me:
            raise LaunchError(
                "the kernel is being prepared by this thread, and its reference or grid launched"
                " it at the same extents",
                kernel=self.__name__,
                remedy="Compute the reference and the grid without this kernel.",
            )
        result = None
        self._take(turn, binding)
        try:
            turn.owner = me
            plan = self._plans.get(binding.place)
            if plan is None and not is_empty(grid, self._description, binding.extents):
                plan, result = self._ask(binding, grid)
                self._keep(binding.place, plan)
        finally:
            turn.owner = None
            # Those that wait for it have it; one who gives up waiting leaves it to them.
            with self._lock:
                if self._turns.get(binding.place) is turn:
                    del self._turns[binding.place]
            turn.lock.release()
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
        return binding.device, tuple(extents[name] for name in self._description.key)

    def _deadlock(self, binding):
        """The error for a launch or tune that waits for a reference that waits for it, or None."""
        referring, me = self._referring.get(self._key_of(binding)), threading.get_ident()
        if referring is None:
            return None
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
        plan, result = _Plan(ctypes.c_void_p(), library().free_plan), self._new_result()
        tuning = self._request(grid, binding)
        tuning.run(
            "phobos_kernel_prepare",
            tuning.handle,
            *tuning.extents,
            None,
            ctypes.byref(tuning.request),
            ctypes.byref(plan.handle),
            ctypes.byref(result.handle),
        )
        settings = library().take_text("phobos_plan_json", plan.handle).get("settings", {})
        plan.meta = meta_of(settings, self._description.extents, binding.extents)
        plan.card = binding.card
        return plan, self._taken(result) if result.handle else None

    def _keep(self, place, plan):
        with self._lock:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[place] = plan

    def _remember(self, arguments, plan):
        """Lets the fast path take the plan for arguments that say the same of themselves."""
        glance = (
            _glances.host if plan.card is None else _glances.on_gpu(arguments, self._kinds)
        )
        if glance is None:
            return
        try:
            known = glance(arguments, self._kinds)[0]
            hash(known)
        except (AttributeError, KeyError, TypeError, ValueError):
            return  # they do not say enough
        with self._lock:
            if len(self._known) >= _PLANS:
                self._known.clear()
            self._known[known] = plan
            self._glance = glance

    def _forget(self, plan):
        with self._lock:
            for plans in (self._plans, self._known):
                for name in [name for name, one in plans.items() if one is plan]:
                    del plans[name]

    def _new_result(self):
        return _Handle(ctypes.c_void_p(), library().free_result)

    def _taken(self, result):
        record, message = library().read_result(result.handle)
        return Result(record, message)

    def _tell(self, result):
        """Tells the user what the library noted, and the listeners of a tune, if there was one."""
        self._tell_notes()
        if result is not None and not result.cached:
            for listener in list(_listeners):
                try:
                    listener(result)
                except Exception:
                    self._warn_of_listener()

    def _warn_of_listener(self):
        import traceback
        import warnings

        text = f"{self.__name__}: a function given to ph.on_tune raised:\n{traceback.format_exc()}"
        warnings.warn(text.rstrip(), PhobosWarning, stacklevel=_levels_to_user())

    def _tell_notes(self):
        """What the library wants the user to know: variants left out as lines, the rest warned."""
        import warnings

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
