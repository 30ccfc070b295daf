"""Checks of the arguments of tensors: sizes, shapes, axes, devices, tensors; the plain kinds are in morok.arguments."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from morok.arguments import index_or_none, mistyped, refused, shown
from morok.caller import caller
from morok.errors import ArgumentTypeError, AxisError, DTypeError, ShapeError
from morok.ir.shape import Shape
from morok.ir.uop import UOp
from morok.tensor.base import Lazy, element_count, show
from morok.tensor.variable import Variable

T = TypeVar("T")

MOST: Final = 1 << 62  # elements of a tensor: their places are computed in 64 bits


def whole(value: Any, what: str, least: int, most: int | None = MOST) -> int:
    """One whole number in least..=most (None: of any size)."""
    n = None if isinstance(value, Lazy) else index_or_none(value)
    if n is None or n < least or (most is not None and n > most):
        expected = f"a whole number of at least {least}" if n is None or n < least else f"a whole number of at most {most}"
        raise (mistyped if n is None else refused)(value, what, expected, ShapeError)
    return n


def each(value: Any, count: int, what: str, least: int) -> tuple[int, ...]:
    """One whole number for each of `count` axes: all of them given, or one for all."""
    if not isinstance(value, (tuple, list)):
        return (whole(value, what, least),) * count
    if len(value) != count:
        raise refused(value, what, f"one whole number, or {count}", ShapeError)
    return tuple(whole(v, what, least) for v in value)


def shape_argument(shape: tuple[Any, ...]) -> Shape:
    """`f(2, 3)` and `f((2, 3))` mean the same."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    sizes: list[int | UOp] = []
    for d in shape:
        size = d.node if isinstance(d, Variable) else d if isinstance(d, UOp) else _size(d)
        if size is None or (isinstance(size, UOp) and not (size.dtype.is_index and size.dtype.count == 1)):
            raise ArgumentTypeError(f"{shown(shape)} is no shape", place=caller(), expected="whole numbers, or variables")
        sizes.append(size)
    return tuple(sizes)


def _size(d: Any) -> int | None:
    try:
        return operator.index(d)
    except TypeError:
        return None


def new_shape(shape: tuple[Any, ...]) -> Shape:
    """The shape of a tensor that is made: as shape_argument(), with no size below 0 and not more elements than places."""
    return fitting(shape_argument(shape))


def fitting(sizes: Shape) -> Shape:
    """A shape as it is; ShapeError for a size below 0, and for more elements than there are places."""
    if any(isinstance(d, int) and d < 0 for d in sizes):
        raise ShapeError(f"a tensor of shape {show(sizes)}", place=caller(), expected="sizes of at least 0")
    total = element_count(sizes)
    if (total.vmax if isinstance(total, UOp) else total) > MOST:
        raise ShapeError(f"a tensor of shape {show(sizes)}", place=caller(), expected=f"at most {MOST} elements")
    return sizes


def axis_in(value: Any, shape: Shape, ndim: int) -> int:
    """An axis of `ndim`, counted from the front; negative ones count from the end. `shape` is for the error."""
    a = index_or_none(value)
    if a is None:
        raise ArgumentTypeError(f"{shown(value)} is no axis", place=caller(), expected=f"an axis in {-ndim}..{ndim}")
    if not -ndim <= a < ndim:
        raise AxisError(
            f"axis {shown(a)} does not exist in shape {show(shape)}", place=caller(), expected=f"an axis in {-ndim}..{ndim}"
        )
    return a % ndim


def known(x: Lazy, axis: int, what: str) -> int:
    """The size of an axis, which must not be symbolic."""
    size = x.shape[axis]
    if isinstance(size, UOp):
        raise ShapeError(f"{what}: axis {axis} of shape {show(x.shape)} is symbolic", place=caller(), expected="a known size")
    return size


def only_tensors(values: Sequence[Any], what: str) -> None:
    """DTypeError unless all of these are tensors."""
    for v in values:
        if not isinstance(v, Lazy):
            raise DTypeError(f"{what} of {type(v).__name__}", place=caller(), expected="tensors", hint="Tensor(data) makes one")


def tensor(value: Any, kind: type[T], what: str) -> T:
    """A tensor; DTypeError for anything else."""
    only_tensors([value], what)
    found: T = value
    return found
