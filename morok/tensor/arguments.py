"""What the user passed for sizes, strides and the like, as whole numbers; errors say what was expected."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from morok.caller import caller
from morok.errors import DTypeError, ShapeError
from morok.ir.uop import UOp
from morok.tensor.base import Lazy, show


def whole(value: Any, what: str, least: int) -> int:
    """One whole number, at least `least`."""
    try:
        n = None if isinstance(value, (bool, Lazy)) else operator.index(value)
    except TypeError:
        n = None
    if n is None or n < least:
        raise ShapeError(f"{what} is {value!r}", place=caller(), expected=f"a whole number of at least {least}")
    return n


def each(value: Any, count: int, what: str, least: int) -> tuple[int, ...]:
    """One whole number for each of `count` axes: all of them given, or one for all."""
    if not isinstance(value, (tuple, list)):
        return (whole(value, what, least),) * count
    if len(value) != count:
        raise ShapeError(f"{what} is {value!r}", place=caller(), expected=f"one whole number, or {count}")
    return tuple(whole(v, what, least) for v in value)


def known(x: Lazy, axis: int, what: str) -> int:
    """The size of an axis, which must not be symbolic."""
    size = x.shape[axis]
    if isinstance(size, UOp):
        raise ShapeError(f"{what}: axis {axis} of shape {show(x.shape)} is symbolic", place=caller(), expected="a known size")
    return size


def only_tensors(values: Sequence[Any], what: str, kind: type[Any]) -> None:
    """DTypeError unless all of these are tensors."""
    for v in values:
        if not isinstance(v, kind):
            raise DTypeError(f"{what} of {type(v).__name__}", place=caller(), expected="tensors", hint="Tensor(data) makes one")
