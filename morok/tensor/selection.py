"""Elements chosen by conditions and bounds, and padding."""

from __future__ import annotations

from typing import Any

from morok.caller import caller
from morok.errors import DTypeError, ShapeError
from morok.ir.dtype import dtypes, promote
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.tensor.base import AnyTensor, Lazy, show
from morok.tensor.casts import cast_to
from morok.tensor.elementwise_operands import (
    as_operand,
    broadcast,
    converted,
    operand,
)
from morok.tensor.scalars import Number, constant, natural_dtype, outside, python_number
from morok.tensor.view_methods import broadcast_shapes, expanded, pad_zero


def clip(self: AnyTensor, min: Any = None, max: Any = None) -> AnyTensor:
    """The elements clipped to `min`..=`max` (None: no bound); shapes broadcast, dtypes promote.

    A Python integer outside the dtype's range is no bound if no element exceeds it. ShapeError unless the shapes broadcast.

    >>> Tensor([-5, 0, 5]).clip(-1, 2).tolist()
    [-1, 0, 2]
    """
    x = self._same() if min is None or outside(min, self.dtype) < 0 else self.maximum(min)
    return x if max is None or outside(max, self.dtype) > 0 else x.minimum(max)


def clamp(self: AnyTensor, min: Any = None, max: Any = None) -> AnyTensor:
    """The elements clipped to `min`..=`max`: clip() by torch's name. ShapeError unless the shapes broadcast.

    >>> Tensor([-5, 0, 5]).clamp(-1, 2).tolist()
    [-1, 0, 2]
    """
    return self.clip(min, max)


def where(self: AnyTensor, x: Any, y: Any) -> AnyTensor:
    """`x` where this condition is true, else `y`: shapes broadcast, the dtypes of `x` and `y` promote.

    DTypeError unless self is bool, ShapeError unless the shapes broadcast.

    >>> (Tensor([1, 2, 3]) > 1).where(10, [4, 5, 6]).tolist()
    [4, 10, 10]
    """
    _only_bools(self, "where() on a tensor", "(t > 0).where(..)")
    first = x if isinstance(x, Lazy) else y if isinstance(y, Lazy) else None
    if isinstance(first, Lazy):
        operand(self, first)  # DeviceError for another device
        xs, ys = operand(first, x), operand(first, y)
    else:
        xs, ys = _number(self, x), _number(self, y)
    d = promote(xs.dtype, ys.dtype)
    shape = broadcast_shapes(self.shape, shape_of(xs), shape_of(ys))
    parts = [broadcast(u, shape) for u in (self.uop, cast_to(xs, d), cast_to(ys, d))]
    if shape != () and all(shape_of(p) == () for p in parts):
        raise ShapeError(f"where() of shapes {show(self.shape)}", place=caller())
    return self._like(parts[0].where(parts[1], parts[2]))


def _only_bools(condition: Lazy, what: str, instead: str) -> None:
    """DTypeError unless a condition is bool; `instead` shows a comparison that makes one."""
    if not condition.dtype.is_bool:
        raise DTypeError(
            f"{what} of dtype {condition.dtype}",
            place=caller(),
            expected="bools",
            hint=f"compare first: {instead}",
        )


def _number(x: AnyTensor, value: Any) -> UOp:
    number = python_number(value)
    return operand(x, value) if number is None else constant(number, natural_dtype(number), x.device)


def masked_fill(self: AnyTensor, mask: Any, value: Any) -> AnyTensor:
    """`value` where the bools of `mask` are true, self's elements elsewhere: shapes broadcast, dtypes promote.

    DTypeError unless `mask` is bool, ShapeError unless the shapes broadcast.

    >>> Tensor([1, 2, 3]).masked_fill([True, False, True], 0).tolist()
    [0, 2, 0]
    """
    chosen = as_operand(self, mask)
    _only_bools(chosen, "masked_fill() by a mask", "x.masked_fill(x > 0, ..)")
    return chosen.where(value, self)


def pad(self: AnyTensor, padding: Any, value: Number = 0) -> AnyTensor:
    """The elements padded with `value` before and after each axis, in self's dtype: one pair of counts an axis, None for none.

    ShapeError for another number of pairs and for negative counts, ArgumentTypeError for anything but a list of pairs.

    >>> Tensor([1, 2]).pad([(1, 2)], 9).tolist()
    [9, 1, 2, 9, 9]
    """
    padded, filling = pad_zero(self, padding), converted(self, value)
    if filling is UOp.const(0, self.dtype) or padded.shape == self.shape:
        return padded
    inside = pad_zero(self._like(expanded(UOp.const(True, dtypes.bool), self.shape)), padding)
    return inside.where(padded, self._like(filling))
