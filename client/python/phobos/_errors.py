# SPDX-License-Identifier: Apache-2.0
"""The one family of exceptions that this package raises.

Each carries the kernel's name, the key ("N=1024"), a short reason in lower case ("no_winner",
"bad_source"; empty when there is none to tell apart by) and a remedy, one sentence. str() shows all
of it.
"""


class PhobosError(Exception):
    """Base of every error of this package."""

    __module__ = "phobos.lang"  # where users know it; the same for all that derive from it

    def __init_subclass__(cls):
        cls.__module__ = "phobos.lang"

    def __init__(self, message, *, kernel="", key="", reason="", remedy="", variants=()):
        super().__init__(message)
        self.message = message
        self.kernel = kernel
        self.key = key
        self.reason = reason
        self.remedy = remedy
        self.variants = list(variants)

    def __str__(self):
        where = self.kernel + (f" at {self.key}" if self.key else "")
        text = f"{where}: {self.message}" if where else self.message
        for (status, why), labels in self._by_reason().items():
            more = f" and {len(labels) - 3} more" if len(labels) > 4 else ""
            names = ", ".join(labels[:3] if more else labels)
            text += f"\n  {names}{more}: {status}: {why}"
        if self.remedy and self.remedy not in text:
            text += f"\n{self.remedy}"
        return text

    def _by_reason(self):
        """Labels of the variants, by (status, reason)."""
        groups = {}
        for variant in self.variants:
            groups.setdefault((variant.status, variant.reason), []).append(variant.label())
        return groups

    def __reduce__(self):
        fields = ("message", "kernel", "key", "reason", "remedy", "variants")
        return _rebuild, (type(self), {name: getattr(self, name) for name in fields})


def _rebuild(kind, fields):
    return kind(fields.pop("message"), **fields)


class KernelSourceError(PhobosError):
    """The kernel's text, decorators or annotations are wrong, or its text cannot be found."""


class NotInKernelError(PhobosError, TypeError):
    """A name of the kernel language was used by Python itself, outside a kernel."""


class LaunchError(PhobosError):
    """A launch was refused: the grid, a broken promise, a race, or no admissible variant."""


class ArgumentError(LaunchError, TypeError, ValueError):
    """An argument does not fit its parameter."""


class TuneError(PhobosError):
    """A tune failed; `variants` says what became of each variant when that is the cause."""


class ReferenceFailedError(TuneError):
    """The reference raised, or returned something that cannot be the expected outputs."""


class TuneCancelledError(TuneError):
    """The tune was cancelled, or a timeout ended it."""


class DaemonError(PhobosError):
    """The daemon or libphobos.so cannot be reached, or refused the call."""


class UnsupportedError(PhobosError, NotImplementedError):
    """This version cannot do that yet."""


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
