"""Checks of arguments, one for each kind: each returns the argument converted, or raises an error of ours.

The message has the argument's name in words, `what` ("the number of chunks"), its value, and the expected kind. `error` is the
class of the error, by default UsageError.
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
from morok.out_of_memory import no_memory

T = TypeVar("T")

_SHORT: Final = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxother, _SHORT.maxstring = 4, 120, 80
_TEXTS: Final = (str, bytes, bytearray)
DEVICES: Final = ("CPU", "CUDA", "NULL")
CPUS: Final = 64  # most devices on the CPU: CPU, CPU:1, ..
_NUMBERED: Final = re.compile(r"CPU:([0-9]{1,4})")


def shown(value: Any) -> str:
    """An argument as text for an error message: its repr in one line, abbreviated if it is long or deeply nested."""
    try:
        return " ".join(_SHORT.repr(value).split())
    except Exception:  # a user's __repr__ fails, or an int has too many digits: that must not hide the error to report
        return f"an object of type {type(value).__name__}"


def refused(value: Any, what: str, expected: str, error: type[MorokError] = UsageError, hint: str = "") -> MorokError:
    """The error for an argument of the right kind with a wrong value."""
    return error(f"{what} is {shown(value)}", place=caller(), expected=expected, hint=hint)


def mistyped(value: Any, what: str, expected: str, error: type[MorokError] = UsageError, hint: str = "") -> MorokError:
    """The error for an argument of a wrong kind: ArgumentTypeError, also a TypeError, if that is an `error`."""
    return refused(value, what, expected, ArgumentTypeError if issubclass(ArgumentTypeError, error) else error, hint)


def index_or_none(value: Any) -> int | None:
    """`value` as an int, by its __index__; None for bools and anything else."""
    if value.__class__ is int:
        return int(value)
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def whole(
    value: Any, what: str, least: int | None = None, most: int | None = None, error: type[MorokError] = UsageError
) -> int:
    """`value` as an int in least..=most (None: no bound)."""
    n = index_or_none(value)
    if n is None or (least is not None and n < least) or (most is not None and n > most):
        bounds = "" if least is None else f" of at least {least}" if most is None else f" in {least}..={most}"
        raise (mistyped if n is None else refused)(value, what, f"a whole number{bounds}", error)
    return n


def real(
    value: Any, what: str, least: float = -math.inf, most: float = math.inf, error: type[MorokError] = UsageError
) -> int | float:
    """`value` as a real number in least..=most; without bounds NaN is allowed too."""
    n = real_or_none(value)
    bounded = least > -math.inf or most < math.inf
    if n is None or (bounded and not least <= n <= most):
        side = f"of at least {least:g}" if most == math.inf else f"of at most {most:g}" if least == -math.inf else ""
        within = f" {side or f'in {least:g}..={most:g}'}" if bounded else ""
        raise (mistyped if n is None else refused)(value, what, f"a number{within}", error)
    return n


def finite(value: Any, what: str, error: type[MorokError] = UsageError) -> int | float:
    """`value` as a real number, neither infinite nor NaN."""
    n = real_or_none(value)
    if n is None or not math.isfinite(n):
        raise (mistyped if n is None else refused)(value, what, "a finite number", error)
    return n


def real_or_none(value: Any) -> int | float | None:
    """`value` as an int or float; None for anything but a real number, and for ints too large for a float."""
    if type(value) is float:
        return value
    if isinstance(value, (*_TEXTS, complex)) or str(getattr(value, "dtype", "")).startswith("complex"):
        return None
    number: int | float
    try:
        number = operator.index(value)
    except (TypeError, MorokError):  # MorokError: a tensor of floats
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
    """`value` as a bool; 1, 0 and NumPy's bools are allowed too."""
    if value is True or value is False:
        return value
    known = value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value
    if not isinstance(known, int) or known not in (0, 1):
        raise mistyped(value, what, "True or False", error)
    return bool(known)


def choice(value: Any, what: str, options: Sequence[str], error: type[MorokError] = UsageError) -> str:
    """`value`, one of the words in `options`."""
    *most, last = map(repr, options)
    if not isinstance(value, str) or value not in options:
        raise (refused if isinstance(value, str) else mistyped)(value, what, f"{', '.join(most)} or {last}", error)
    return value


def text(value: Any, what: str, error: type[MorokError] = UsageError) -> str:
    """`value`, a string."""
    if not isinstance(value, str):
        raise mistyped(value, what, "a string", error)
    return value


def device_name(value: Any) -> str:
    """The normalized name of a device, present or not; DeviceError for an unknown name. `CPU` (or `CPU:0`), `CPU:1`, `CPU:2` ..
    are devices on the same processor, with separate memory.
    """
    name = value.upper() if isinstance(value, str) else None
    if name is not None and (numbered := _NUMBERED.fullmatch(name)) is not None and int(numbered[1]) < CPUS:
        return f"CPU:{int(numbered[1])}" if int(numbered[1]) else "CPU"
    if name not in DEVICES:
        what, hint = f"there is no device {shown(value)}", "`morok doctor` reports the devices of this machine"
        raise DeviceError(what, place=caller(), expected=f"{', '.join(DEVICES)}, or CPU:1 to CPU:{CPUS - 1}", hint=hint)
    return name


def path(value: Any, what: str, error: type[MorokError] = UsageError) -> Path:
    """`value` as the path of a file or folder, which need not exist."""
    if not isinstance(value, (str, os.PathLike)):
        raise mistyped(value, what, "a path", error)
    reason = ""
    try:
        name = os.fsencode(value)
        known = name != b"" and b"\0" not in name
        if known:
            os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (UnicodeEncodeError, OSError) as problem:
        known, reason = False, getattr(problem, "strerror", "")
    if not known:
        raise refused(value, what, "a path that files can have", error, reason)
    return Path(value)


def function(value: Any, what: str, error: type[MorokError] = UsageError) -> Callable[..., Any]:
    """`value`, a callable."""
    if not callable(value):
        raise mistyped(value, what, "a function", error)
    found: Callable[..., Any] = value
    return found


def instance(
    value: Any, kind: type[T], what: str, expected: str, error: type[MorokError] = UsageError, hint: str = ""
) -> T:
    """`value`, an instance of `kind`, which the message calls `expected`."""
    if not isinstance(value, kind):
        raise mistyped(value, what, expected, error, hint)
    return value


def mapping(value: Any, what: str, expected: str, error: type[MorokError] = UsageError) -> Mapping[Any, Any]:
    """`value`, a dict or another mapping."""
    if not isinstance(value, Mapping):
        raise mistyped(value, what, expected, error)
    return value


def several(value: Any, what: str, expected: str, error: type[MorokError] = UsageError) -> list[Any]:
    """The elements of a list, a tuple or another collection, except text and mappings."""
    if isinstance(value, (*_TEXTS, Mapping)) or not isinstance(value, Iterable):
        raise mistyped(value, what, expected, error)
    # it has __iter__, which fails
    if getattr(value, "ndim", None) == 0 or (isinstance(value, memoryview) and value.ndim > 1):
        raise mistyped(value, what, expected, error)
    try:
        return list(value)
    except MemoryError:
        raise no_memory(f"read {what}") from None
