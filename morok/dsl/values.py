"""Compile-time arithmetic of guards and `let`: mathematical integers, and no value where there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NoReturn

LONGEST_SHIFT: Final = 4096


class NoValue(ArithmeticError):
    """A compile-time operation has no value: the clause that asked for it fails."""


# What computing a clause may raise where it has no value.
FAILURES: Final = (NoValue, ZeroDivisionError, OverflowError, IndexError)


def no_value() -> NoReturn:
    raise NoValue


def shl(a: int, b: int) -> int:
    if not 0 <= b <= LONGEST_SHIFT:
        raise NoValue
    return a << b


def shr(a: int, b: int) -> int:
    if not 0 <= b <= LONGEST_SHIFT:
        raise NoValue
    return a >> b


def tdiv(a: int, b: int) -> int:
    """a / b truncated toward zero."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def tmod(a: int, b: int) -> int:
    """What `tdiv` leaves: it has the sign of a."""
    return a - tdiv(a, b) * b


def is_pow2(a: int) -> bool:
    return a > 0 and a & (a - 1) == 0


def log2(a: int) -> int:
    """The exponent of a power of two."""
    if not is_pow2(a):
        raise NoValue
    return a.bit_length() - 1


def width(axes: Sequence[tuple[int, int]]) -> int:
    """How many lanes axes, pairs of an id and a length, make of one."""
    return math.prod([n for _, n in axes])


def step(axes: Sequence[tuple[int, int]], axis: int) -> int:
    """How many lanes the iterations of one of these axes lie apart, the last axis running fastest; 0 if it is none of them."""
    lanes = 1
    for i, n in reversed(axes):
        if i == axis:
            return lanes
        lanes *= n
    return 0


def at(axes: Sequence[tuple[int, int]], axis: int, lane: int) -> int:
    """Which iteration of an axis a lane belongs to; the first if it is none of these axes."""
    lanes = 1
    for i, n in reversed(axes):
        if i == axis:
            return lane // lanes % n
        lanes *= n
    return 0


def same_value(a: Any, b: Any) -> bool:
    """Equality of constants: by bits, with all NaNs one value and the zeros distinct."""
    if a.__class__ is float and b.__class__ is float:
        return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
    return bool(a == b)


# What generated code calls these, and a few things more.
NAMES: Final[dict[str, Any]] = {
    "_no_value": no_value,
    "_shl": shl,
    "_shr": shr,
    "_tdiv": tdiv,
    "_tmod": tmod,
    "_gcd": math.gcd,
    "_is_pow2": is_pow2,
    "_log2": log2,
    "_width": width,
    "_step": step,
    "_at": at,
    "_same_value": same_value,
    "_sign": math.copysign,
    "_inf": math.inf,
    "_nan": math.nan,
}
