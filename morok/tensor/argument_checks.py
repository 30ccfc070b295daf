"""Checks of the arguments of tensor functions: sizes, shapes, axes, tensors. Those of plain values are in morok.arguments."""

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

MOST: Final = 1 << 62  # most elements of a tensor: indices are computed in 64 bits


def whole(value: Any, what: str, least: int, most: int | None = MOST) -> int:
    """`value` as an int in least..=most (None: no upper bound); ShapeError for any other value."""
    n = None if isinstance(value, Lazy) else index_or_none(value)
    if n is None or n < least or (most is not None and n > most):
        expected = (
            f"a whole number of at least {least}" if n is None or n < least else f"a whole number of at most {most}"
        )
        raise (mistyped if n is None else refused)(value, what, expected, ShapeError)
    return n


def each(value: Any, count: int, what: str, least: int) -> tuple[int, ...]:
    """One int of at least `least` for each of `count` axes, from a list or one int for all; ShapeError otherwise."""
    if not isinstance(value, (tuple, list)):
        return (whole(value, what, least),) * count
    if len(value) != count:
        raise refused(value, what, f"one whole number, or {count}", ShapeError)
    return tuple(whole(v, what, least) for v in value)


def shape_argument(shape: tuple[Any, ...]) -> Shape:
    """The shape in *args, `f(2, 3)` or `f((2, 3))`. ArgumentTypeError for a size that is no int or variable."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    sizes: list[int | UOp] = []
    for d in shape:
        size = d.node if isinstance(d, Variable) else d if isinstance(d, UOp) else _size(d)
        if size is None or (isinstance(size, UOp) and not (size.dtype.is_index and size.dtype.count == 1)):
            raise ArgumentTypeError(
                f"{shown(shape)} is not a shape", place=caller(), expected="whole numbers, or variables"
            )
        sizes.append(size)
    return tuple(sizes)


def _size(d: Any) -> int | None:
    try:
        return operator.index(d)
    except TypeError:
        return None


def new_shape(shape: tuple[Any, ...]) -> Shape:
    """The shape of a new tensor, from *args as in shape_argument(); ShapeError as in fitting()."""
    return fitting(shape_argument(shape))


def fitting(sizes: Shape) -> Shape:
    """`sizes` unchanged; ShapeError for a negative size, and for more than MOST elements."""
    if any(isinstance(d, int) and d < 0 for d in sizes):
        raise ShapeError(f"a tensor of shape {show(sizes)}", place=caller(), expected="sizes of at least 0")
    total = element_count(sizes)
    if (total.vmax if isinstance(total, UOp) else total) > MOST:
        raise ShapeError(f"a tensor of shape {show(sizes)}", place=caller(), expected=f"at most {MOST} elements")
    return sizes


def counted(n: int) -> str:
    """The numbers that count n things, from 0 up and from the end, in words."""
    return f"{-n}..={n - 1}"


def axis_in(value: Any, shape: Shape, ndim: int) -> int:
    """The axis `value` as an int in 0..ndim; negative ones count from the end. AxisError outside."""
    a, expected = index_or_none(value), f"an axis in {counted(ndim)}" if ndim else "no axis: a scalar has none"
    if a is None:
        raise ArgumentTypeError(f"{shown(value)} is not an axis", place=caller(), expected=expected)
    if not -ndim <= a < ndim:
        raise AxisError(
            f"axis {shown(a)} does not exist in shape {show(shape)}",
            place=caller(),
            expected=expected,
        )
    return a % ndim


def matrices(x: Lazy, what: str) -> None:
    """AxisError for fewer than two axes."""
    if len(x.shape) < 2:
        raise AxisError(f"{what} of shape {show(x.shape)}", place=caller(), expected="two axes or more")


def known(x: Lazy, axis: int, what: str) -> int:
    """The size of an axis as an int; ShapeError for a symbolic size."""
    size = x.shape[axis]
    if isinstance(size, UOp):
        raise ShapeError(
            f"{what}: axis {axis} of shape {show(x.shape)} is symbolic", place=caller(), expected="a known size"
        )
    return size


def only_tensors(values: Sequence[Any], what: str) -> None:
    """DTypeError unless all `values` are tensors."""
    for v in values:
        if not isinstance(v, Lazy):
            raise DTypeError(
                f"{what} of {type(v).__name__}", place=caller(), expected="tensors", hint="Tensor(data) makes one"
            )


def tensor(value: Any, kind: type[T], what: str) -> T:
    """`value`, a tensor; DTypeError for anything else."""
    only_tensors([value], what)
    found: T = value
    return found
