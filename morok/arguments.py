"""Checks of arguments, one for each kind: each returns the argument as the program wants it.

A check refuses with an error of ours that says which argument it was, what it was given and what was expected. `what` is the
argument in words ("the number of chunks"); `error` is the class of the error, UsageError unless a more special one fits.
"""

from __future__ import annotations

import math
import operator
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from morok.caller import caller
from morok.errors import ArgumentTypeError, DeviceError, MorokError, UsageError

T = TypeVar("T")

_SHORT: Final = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxother, _SHORT.maxstring = 4, 120, 80
_TEXTS: Final = (str, bytes, bytearray)
DEVICES: Final = ("CPU", "CUDA", "NULL")
CPUS: Final = 64  # devices that the CPU may be
_NUMBERED: Final = re.compile(r"CPU:([0-9]{1,4})")


def shown(value: Any) -> str:
    """An argument in an error message: its repr in one line, cut where it is long or nested deep."""
    try:
        return " ".join(_SHORT.repr(value).split())
    except Exception:  # of an object of the user, or a number of too many digits; the error is about something else
        return f"an object of type {type(value).__name__}"


def refused(value: Any, what: str, expected: str, error: type[MorokError] = UsageError, hint: str = "") -> MorokError:
    """The error for an argument of the right kind that has a wrong value."""
    return error(f"{what} is {shown(value)}", place=caller(), expected=expected, hint=hint)


def mistyped(value: Any, what: str, expected: str, error: type[MorokError] = UsageError, hint: str = "") -> MorokError:
    """The error for an argument of a wrong kind: a TypeError of Python's too."""
    return refused(value, what, expected, ArgumentTypeError if issubclass(ArgumentTypeError, error) else error, hint)


def index_or_none(value: Any) -> int | None:
    """`value` as a whole number; None where Python has no such meaning for it, and for bools."""
    if value.__class__ is int:
        return int(value)
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def whole(value: Any, what: str, least: int | None = None, most: int | None = None, error: type[MorokError] = UsageError) -> int:
    """A whole number in least..=most (None: without that bound)."""
    n = index_or_none(value)
    if n is None or (least is not None and n < least) or (most is not None and n > most):
        bounds = "" if least is None else f" of at least {least}" if most is None else f" in {least}..={most}"
        raise (mistyped if n is None else refused)(value, what, f"a whole number{bounds}", error)
    return n


def real(
    value: Any, what: str, least: float = -math.inf, most: float = math.inf, error: type[MorokError] = UsageError
) -> int | float:
    """A real number in least..=most; without bounds of its own NaN too."""
    n = real_or_none(value)
    bounded = least > -math.inf or most < math.inf
    if n is None or (bounded and not least <= n <= most):
        side = f"of at least {least:g}" if most == math.inf else f"of at most {most:g}" if least == -math.inf else ""
        within = f" {side or f'in {least:g}..={most:g}'}" if bounded else ""
        raise (mistyped if n is None else refused)(value, what, f"a number{within}", error)
    return n


def finite(value: Any, what: str, error: type[MorokError] = UsageError) -> int | float:
    """A real number that is neither infinite nor NaN."""
    n = real_or_none(value)
    if n is None or not math.isfinite(n):
        raise (mistyped if n is None else refused)(value, what, "a finite number", error)
    return n


def real_or_none(value: Any) -> int | float | None:
    """`value` as Python's int or float; None where it is no real number, or greater than all floats."""
    if isinstance(value, (*_TEXTS, complex)) or str(getattr(value, "dtype", "")).startswith("complex"):
        return None
    number: int | float
    try:
        number = operator.index(value)
    except (TypeError, MorokError):  # ours: a tensor of floats
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return None
    try:
        float(number)
    except OverflowError:
        return None
    return number


def flag(value: Any, what: str, error: type[MorokError] = UsageError) -> bool:
    """True or False; 1 and 0 mean them too, and NumPy's bools."""
    if value is True or value is False:
        return value
    known = value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value
    if not isinstance(known, int) or known not in (0, 1):
        raise mistyped(value, what, "True or False", error)
    return bool(known)


def choice(value: Any, what: str, options: Sequence[str], error: type[MorokError] = UsageError) -> str:
    """One of these words."""
    *most, last = map(repr, options)
    if not isinstance(value, str) or value not in options:
        raise (refused if isinstance(value, str) else mistyped)(value, what, f"{', '.join(most)} or {last}", error)
    return value


def text(value: Any, what: str, error: type[MorokError] = UsageError) -> str:
    """A string."""
    if not isinstance(value, str):
        raise mistyped(value, what, "a string", error)
    return value


def device_name(value: Any) -> str:
    """The name of a device that Morok knows, whether this machine has one or not. The CPU is several devices, `CPU:1`, `CPU:2` ..
    beside `CPU` itself, which is `CPU:0`: the same processor, with memory of their own.
    """
    name = value.upper() if isinstance(value, str) else None
    if name is not None and (numbered := _NUMBERED.fullmatch(name)) is not None and int(numbered[1]) < CPUS:
        return f"CPU:{int(numbered[1])}" if int(numbered[1]) else "CPU"
    if name not in DEVICES:
        what, hint = f"there is no device {shown(value)}", "`morok doctor` says what each can do here"
        raise DeviceError(what, place=caller(), expected=f"{', '.join(DEVICES)}, or CPU:1 to CPU:{CPUS - 1}", hint=hint)
    return name


def path(value: Any, what: str, error: type[MorokError] = UsageError) -> Path:
    """The path of a file or a folder, there or not."""
    if not isinstance(value, (str, os.PathLike)):
        raise mistyped(value, what, "a path", error)
    try:
        name = os.fsencode(value)
        known = name != b"" and b"\0" not in name
    except UnicodeEncodeError:
        known = False
    if not known:
        raise refused(value, what, "a path that files can have", error)
    return Path(value)


def function(value: Any, what: str, error: type[MorokError] = UsageError) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(value):
        raise mistyped(value, what, "a function", error)
    found: Callable[..., Any] = value
    return found


def instance(value: Any, kind: type[T], what: str, expected: str, error: type[MorokError] = UsageError, hint: str = "") -> T:
    """An object of one class, which users know as `expected`."""
    if not isinstance(value, kind):
        raise mistyped(value, what, expected, error, hint)
    return value


def mapping(value: Any, what: str, expected: str, error: type[MorokError] = UsageError) -> Mapping[Any, Any]:
    """The dict, or the mapping that works as one."""
    if not isinstance(value, Mapping):
        raise mistyped(value, what, expected, error)
    return value


def several(value: Any, what: str, expected: str, error: type[MorokError] = UsageError) -> list[Any]:
    """The elements of a list, a tuple or another collection that is no text."""
    if isinstance(value, (*_TEXTS, Mapping)) or not isinstance(value, Iterable):
        raise mistyped(value, what, expected, error)
    if getattr(value, "ndim", None) == 0:  # an array, which has __iter__ all the same
        raise mistyped(value, what, expected, error)
    return list(value)
