# SPDX-License-Identifier: Apache-2.0
"""The one family of exceptions that this package raises.

Each carries the kernel's name, the key ("N=1024"), a short reason in lower case ("no_winner",
"bad_source") and a remedy, one sentence; these two are never empty. str() shows what there is to
say of this one error: not a remedy that all errors of its reason share.
"""

# By reason, for errors that come without a remedy of their own.
_REMEDIES = {
    "bad_argument": "Call it again with what the message asks for.",
    "bad_source": "Correct the text at the line that the message shows.",
    "cancelled": "Call it again when the result is wanted.",
    "decorator": "Write the decorator as the message shows; docs/language.md has all of them.",
    "draining": "Call it again: the next daemon answers.",
    "internal": "Call it again; if it fails again, report the message with the daemon's log.",
    "limit": "Stay below the limit that the message names, or have it raised.",
    "machine": "Give the daemon's machine what the message says that it lacks.",
    "no_daemon": "See what the message says; `phobosctl status` tells whether a daemon answers.",
    "no_device": "See `phobosctl status` for the devices that there are and why others are not.",
    "no_winner": "See .variants for why each one failed; correct the kernel or its reference.",
    "not_found": "Check the name in the message; what the daemon has no more can be tuned again.",
    "not_in_kernel": "Use it under @ph.kernel or @ph.fn alone; NumPy has its like for the outside.",
    "not_permitted": "Have the daemon's owner let this user in, or start one of your own.",
    "out_of_memory": "Tune with smaller arguments, or free memory.",
    "race": "Give each block elements of its own, or update shared ones by ph.atomic_add.",
    "reference_failed": "Let the reference return a dict from each written tensor to its array.",
    "refused": "Change what the message names, the arguments or the kernel, and launch again.",
    "timeout": "Call it again, with a longer limit or when the device has less to do.",
    "tune_failed": "Correct what the message names, and tune again.",
    "unknown_kernel": "Name a kernel that stands at the top level of the file.",
    "unsupported": "Take another way: the message names one, or docs/language.md what there is.",
}


class PhobosError(Exception):
    """Base of every error of this package."""

    __module__ = "phobos.lang"  # where users know it; the same for all that derive from it
    _usual_reason = "internal"

    def __init_subclass__(cls):
        cls.__module__ = "phobos.lang"

    def __init__(self, message, *, kernel="", key="", reason="", remedy="", variants=()):
        super().__init__(message)
        self.message = message
        self.kernel = kernel
        self.key = key
        self.reason = reason or self._usual_reason
        self._own_remedy = remedy  # "": remedy is the one of its reason
        self.remedy = remedy or _REMEDIES.get(self.reason) or _REMEDIES[self._usual_reason]
        self.variants = list(variants)

    def __str__(self):
        where = self.kernel + (f" at {self.key}" if self.key else "")
        text = f"{where}: {self.message}" if where else self.message
        for (status, why), labels in self._by_reason().items():
            more = f" and {len(labels) - 3} more" if len(labels) > 4 else ""
            names = ", ".join(labels[:3] if more else labels)
            text += f"\n  {names}{more}: {status}: {why}"
        if self._own_remedy and self._own_remedy not in text:
            text += f"\n{self._own_remedy}"
        return text

    def _by_reason(self):
        """Labels of the variants, by (status, reason)."""
        groups = {}
        for variant in self.variants:
            groups.setdefault((variant.status, variant.reason), []).append(variant.label())
        return groups

    def __reduce__(self):
        names = ("message", "kernel", "key", "reason", "variants")
        fields = {name: getattr(self, name) for name in names}
        return _rebuild, (type(self), {**fields, "remedy": self._own_remedy})


def _rebuild(kind, fields):
    return kind(fields.pop("message"), **fields)


class KernelSourceError(PhobosError):
    """The kernel's text, decorators or annotations are wrong, or its text cannot be found."""

    _usual_reason = "bad_source"


class NotInKernelError(PhobosError, TypeError):
    """A name of the kernel language was used by Python itself, outside a kernel."""

    _usual_reason = "not_in_kernel"


class LaunchError(PhobosError):
    """A launch was refused: the grid, a broken promise, a race, or no admissible variant."""

    _usual_reason = "refused"


class ArgumentError(LaunchError, TypeError, ValueError):
    """An argument does not fit its parameter."""

    _usual_reason = "bad_argument"


class TuneError(PhobosError):
    """A tune failed; `variants` says what became of each variant when that is the cause."""

    _usual_reason = "tune_failed"


class ReferenceFailedError(TuneError):
    """The reference raised, or returned something that cannot be the expected outputs."""

    _usual_reason = "reference_failed"


class TuneCancelledError(TuneError):
    """The tune was cancelled, or a timeout ended it."""

    _usual_reason = "cancelled"


class DaemonError(PhobosError):
    """The daemon or libphobos.so cannot be reached, or refused the call."""

    _usual_reason = "no_daemon"


class UnsupportedError(PhobosError, NotImplementedError):
    """This version cannot do that yet."""

    _usual_reason = "unsupported"


class PhobosWarning(UserWarning):
    """Something a user should know that stops nothing."""

    __module__ = "phobos.lang"


def argument_error(message, kernel="", remedy=""):
    return ArgumentError(message, kernel=kernel, reason="bad_argument", remedy=remedy)


def said(value):
    """A value as an error shows it: one line, not long, whatever its repr does."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"a {type_of(value)}"
    return text if len(text) <= 80 else text[:77] + "..."


def told(exception):
    """An exception as an error shows it, whatever its str does."""
    try:
        return f"{type(exception).__name__}: {exception}"
    except Exception:
        return type(exception).__name__


def type_of(value):
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
