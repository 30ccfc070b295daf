"""Reductions over axes, and functions built on them.

The sum of no elements is 0, the product 1; max, min, argmax and argmin raise ShapeError.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, Unpack

from morok.arguments import finite, flag
from morok.caller import caller
from morok.errors import DTypeError, ShapeError
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.ir.uop import UOp
from morok.tensor.base import DEFAULT_INT, AnyTensor, arithmetic, as_dtype, element_count, iota, show
from morok.tensor.elementwise_operands import rounded_to, wide_float
from morok.tensor.keywords import Along, Axis, Locating, Reducing, other_names
from morok.tensor.view_methods import axes_of, axis_of, expanded, reshaped, unbound

HALVES = (dtypes.f16, dtypes.bf16)


def accumulator(d: DType) -> DType:
    """The dtype of sums and products of `d`: i64 for bools and signed integers, u64 for unsigned ones, `arithmetic` of floats."""
    if d.is_bool or d.is_signed:
        return DEFAULT_INT
    return dtypes.u64 if d.is_unsigned else arithmetic(d)


def reduce_axes(x: AnyTensor, op: Op, axis: Axis, keepdim: bool) -> AnyTensor:
    """`x` reduced by `op` over `axis` (None: all axes), in its own dtype."""
    if x.dtype is not (d := arithmetic(x.dtype)):
        return reduce_axes(x.cast(d), op, axis, keepdim)
    axes, keepdim = axes_of(x, axis), flag(keepdim, "keepdim")
    shape = x.shape
    kept = tuple(1 if a in axes else d for a, d in enumerate(shape))
    out = kept if keepdim else tuple(d for a, d in enumerate(shape) if a not in axes)
    folded = tuple(a for a in axes if shape[a] != 1)
    if builtins.any(shape[a] == 0 for a in folded):
        nothing = 0 if op is Op.Add else identity(op, x.dtype)  # +0.0, as in NumPy, while the identity of Add is -0.0
        return x._like(expanded(UOp.const(nothing, x.dtype), out))
    uop = x.uop
    if folded:
        if builtins.any(d == 1 for d in shape):
            # drop axes of size 1: they need no loop
            uop = reshaped(uop, tuple(d for d in shape if d != 1))
            sizes = [a for a, d in enumerate(shape) if d != 1]
            folded = tuple(sizes.index(a) for a in folded)
        uop = UOp.new(Op.ReduceAxis, (uop,), (op, folded))
    result = x._like(reshaped(uop, out))
    return _zero_of_nothing(result, [shape[a] for a in axes]) if op is Op.Add and x.dtype.is_float else result


def _zero_of_nothing(sums: AnyTensor, sizes: Sequence[int | UOp]) -> AnyTensor:
    """Sums over axes of these sizes: +0.0, as in NumPy, where a variable makes one of them 0."""
    for n in sizes:
        if isinstance(n, UOp) and unbound(n).vmin <= 0:  # at this value or another
            sums = sums._like(expanded(UOp.new(Op.Eq, (n, n.like(0))), sums.shape)).where(0.0, sums)
    return sums


@other_names
def sum(
    self: AnyTensor, axis: Axis = None, keepdim: bool = False, dtype: Any = None, **also: Unpack[Reducing]
) -> AnyTensor:
    """The sum over `axis` (None: all axes), 0 for no elements. Integers are added as i64 or u64, halves as f32 and rounded once.

    AxisError for an axis outside the shape, ShapeError for an axis named twice, DTypeError for `dtype=bool`.

    >>> Tensor([[1, 2], [3, 4]]).sum(0).tolist(), Tensor([[1, 2], [3, 4]]).sum(1, keepdim=True).shape
    ([4, 6], (2, 1))
    """
    return _accumulate(self, Op.Add, axis, keepdim, dtype)


@other_names
def prod(
    self: AnyTensor, axis: Axis = None, keepdim: bool = False, dtype: Any = None, **also: Unpack[Reducing]
) -> AnyTensor:
    """The product over `axis` (None: all axes), 1 for no elements; dtypes as for sum().

    AxisError for an axis outside the shape, ShapeError for an axis named twice, DTypeError for `dtype=bool`.

    >>> Tensor([[1, 2], [3, 4]]).prod(0).tolist()
    [3, 8]
    """
    return _accumulate(self, Op.Mul, axis, keepdim, dtype)


def _accumulate(x: AnyTensor, op: Op, axis: Axis, keepdim: bool, dtype: Any) -> AnyTensor:
    d = accumulator(x.dtype) if dtype is None else as_dtype(dtype)
    if d in HALVES:
        return reduce_axes(x.cast(dtypes.f32), op, axis, keepdim).cast(d)
    if d.is_bool:
        raise DTypeError(
            f"{op.name} cannot be computed in bool",
            place=caller(),
            expected="a number dtype",
            hint="any() and all() reduce bools",
        )
    return reduce_axes(x.cast(d), op, axis, keepdim)


@other_names
def max(self: AnyTensor, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> AnyTensor:
    """The greatest element over `axis` (None: all axes), in self's dtype; NaN if there is one. Over an axis whose size a variable
    makes 0 it is the least number of the dtype.

    ShapeError over an axis without elements, AxisError for an axis outside the shape.

    >>> Tensor([[1, 5], [3, 4]]).max(1).tolist()
    [5, 4]
    """
    return _extreme(self, Op.Max, axis, keepdim)


@other_names
def min(self: AnyTensor, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> AnyTensor:
    """The least element over `axis` (None: all axes), in self's dtype; NaN if there is one. Over an axis whose size a variable
    makes 0 it is the greatest number of the dtype.

    ShapeError over an axis without elements, AxisError for an axis outside the shape.

    >>> Tensor([[1, 5], [3, 4]]).min(1).tolist()
    [1, 3]
    """
    return _extreme(self, Op.Min, axis, keepdim)


def _extreme(x: AnyTensor, op: Op, axis: Axis, keepdim: bool) -> AnyTensor:
    for a in axes_of(x, axis):
        _some_along(x, a, f"{op.name.lower()}()")
    return reduce_axes(x, op, axis, keepdim)


def _some_along(x: AnyTensor, axis: int, what: str) -> None:
    """ShapeError for an axis of size 0, also if the result is empty: it has no greatest element."""
    if x.shape[axis] == 0:
        raise ShapeError(
            f"{what} over axis {axis} of shape {show(x.shape)} has no elements to reduce",
            place=caller(),
            expected="at least one",
        )


@other_names
def any(self: AnyTensor, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> AnyTensor:
    """True where some element over `axis` (None: all axes) is not 0, as bool; False for no elements.

    AxisError for an axis outside the shape.

    >>> Tensor([[0, 0], [0, 4]]).any(1).tolist()
    [False, True]
    """
    return reduce_axes(self.bool(), Op.Max, axis, keepdim)


@other_names
def all(self: AnyTensor, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> AnyTensor:
    """True where every element over `axis` (None: all axes) is not 0, as bool; True for no elements.

    AxisError for an axis outside the shape.

    >>> Tensor([[1, 2], [0, 4]]).all(1).tolist()
    [True, False]
    """
    return reduce_axes(self.bool(), Op.Min, axis, keepdim)


@other_names
def count_nonzero(self: AnyTensor, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> AnyTensor:
    """The number of elements over `axis` (None: all axes) that are not 0, as i64.

    AxisError for an axis outside the shape.

    >>> Tensor([[1, 2], [0, 4]]).count_nonzero(1).tolist()
    [2, 1]
    """
    return self.bool().sum(axis, keepdim)


def _count(x: AnyTensor, axis: Axis) -> int | UOp:
    return element_count(tuple(x.shape[a] for a in axes_of(x, axis)))


@other_names
def mean(self: AnyTensor, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> AnyTensor:
    """The arithmetic mean over `axis` (None: all axes), in self's float dtype (integers: f32); NaN for no elements.

    Halves are computed as f32, integers as f64, and rounded once. AxisError for an axis outside the shape.

    >>> Tensor([[1, 2], [3, 5]]).mean(1).tolist()
    [1.5, 4.0]
    """
    return rounded_to(_over(wide_float(self).sum(axis, keepdim), _count(self, axis)), self)


def _over(x: AnyTensor, count: int | UOp) -> AnyTensor:
    if isinstance(count, UOp):
        return x._like(x.uop / count.cast(x.dtype))
    return x / float(count)


@other_names
def var(
    self: AnyTensor, axis: Axis = None, keepdim: bool = False, correction: float = 0, **also: Unpack[Reducing]
) -> AnyTensor:
    """The variance over `axis` (None: all axes), as a float: sum((x - mean)**2) / (n - correction) of n elements.

    Halves are computed as f32, integers as f64, and rounded once. AxisError for an axis outside the
    shape, ShapeError for a `correction` that is not finite.

    >>> Tensor([1.0, 3.0]).var().item(), Tensor([1.0, 3.0]).var(correction=1).item()
    (1.0, 2.0)
    """
    return rounded_to(_variance(wide_float(self), axis, keepdim, correction), self)


def _variance(x: AnyTensor, axis: Axis, keepdim: bool, correction: float) -> AnyTensor:
    correction = finite(correction, "the correction", ShapeError)
    centred = x - x.mean(axis, keepdim=True)
    count = _count(x, axis)
    total = (centred * centred).sum(axis, keepdim)
    if isinstance(count, UOp):
        left = count.cast(total.dtype) - UOp.const(float(correction), total.dtype)
        return x._like(total.uop / left.max(UOp.const(0.0, total.dtype)))
    return total / builtins.max(count - correction, 0.0)


@other_names
def std(
    self: AnyTensor, axis: Axis = None, keepdim: bool = False, correction: float = 0, **also: Unpack[Reducing]
) -> AnyTensor:
    """The square root of var(), the standard deviation, in self's float dtype (integers: f32).

    Halves are computed as f32, integers as f64, and rounded once. AxisError for an axis outside the
    shape, ShapeError for a `correction` that is not finite.

    >>> Tensor([1.0, 3.0]).std().item()
    1.0
    """
    return rounded_to(_variance(wide_float(self), axis, keepdim, correction).sqrt(), self)


@other_names
def argmax(self: AnyTensor, axis: int | None = None, keepdim: bool = False, **also: Unpack[Locating]) -> AnyTensor:
    """The position of the first greatest element (or NaN) along `axis` (None: in the flat tensor), as i64.

    ShapeError along an axis without elements, AxisError for an axis outside the shape. Along an axis whose size a variable makes
    0 it is the greatest number of i64, which is no position.

    >>> Tensor([[1, 5], [4, 4]]).argmax(1).tolist()
    [1, 0]
    """
    return _position(self, Op.Max, axis, keepdim)


@other_names
def argmin(self: AnyTensor, axis: int | None = None, keepdim: bool = False, **also: Unpack[Locating]) -> AnyTensor:
    """The position of the first least element (or NaN) along `axis` (None: in the flat tensor), as i64.

    ShapeError along an axis without elements, AxisError for an axis outside the shape. Along an axis whose size a variable makes
    0 it is the greatest number of i64, which is no position.

    >>> Tensor([[1, 5], [4, 4]]).argmin(1).tolist()
    [0, 0]
    """
    return _position(self, Op.Min, axis, keepdim)


def _position(t: AnyTensor, op: Op, axis: int | None, keepdim: bool) -> AnyTensor:
    if axis is None:
        flat = _position(t.flatten(), op, 0, False)
        return flat.reshape((1,) * t.ndim) if flag(keepdim, "keepdim") else flat
    a = axis_of(t, axis)
    x = t.cast(dtypes.u8) if t.dtype.is_bool else t
    size = t.shape[a]
    _some_along(t, a, f"arg{op.name.lower()}()")
    best = reduce_axes(x, op, a, keepdim=True)
    hit = x == best
    if x.dtype.is_float:
        hit = hit | x.isnan()
    small = isinstance(size, int) and size <= dtypes.i32.max
    d = dtypes.i32 if small else DEFAULT_INT
    place = positions_along(t, a, d)
    beyond = UOp.const(int(d.max), d)
    first = reduce_axes(hit.where(place, t._like(beyond)), Op.Min, a, keepdim)
    return first.cast(DEFAULT_INT)


def positions_along(x: AnyTensor, axis: int, d: DType) -> AnyTensor:
    """The positions 0, 1, .. along `axis`, of dtype `d`, in a shape that broadcasts with `x`: size 1 on all other axes."""
    size = x.shape[axis]
    return x._like(reshaped(iota(size, d), tuple(size if a == axis else 1 for a in range(x.ndim))))


@other_names
def softmax(self: AnyTensor, axis: int = -1, **also: Unpack[Along]) -> AnyTensor:
    """exp(x) over its sum along `axis`, in self's shape and float dtype (integers: f32), without overflow.

    Halves are computed as f32, integers as f64, and rounded once. Elements are multiplied by the reciprocal of the sum, which
    neither over- nor underflows: the greatest element adds 1 to the sum. AxisError for an axis outside the shape.

    >>> Tensor([0.0, 0.0]).softmax().tolist()
    [0.5, 0.5]
    """
    e = _exp_low(_shifted(wide_float(self), axis))
    return rounded_to(e * e.sum(axis, keepdim=True).reciprocal(), self)


@other_names
def log_softmax(self: AnyTensor, axis: int = -1, **also: Unpack[Along]) -> AnyTensor:
    """The logarithm of softmax() along `axis`, in self's shape and float dtype (integers: f32), without underflow.

    AxisError for an axis outside the shape.

    >>> Tensor([0.0, -1000.0]).log_softmax().tolist()
    [0.0, -1000.0]
    """
    s = _shifted(wide_float(self), axis)
    return rounded_to(s - _exp_low(s).sum(axis, keepdim=True).log(), self)


@other_names
def logsumexp(self: AnyTensor, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> AnyTensor:
    """log(sum(exp(x))) over `axis` (None: all axes), in self's float dtype (integers: f32), without overflow.

    AxisError for an axis outside the shape.

    >>> Tensor([1000.0, 0.0]).logsumexp().item()
    1000.0
    """
    x = wide_float(self)
    m = reduce_axes(x, Op.Max, axis, keepdim=True)
    m = m.isfinite().where(m, 0.0)
    total = (x - m).exp().sum(axis, keepdim).log()
    return rounded_to(total + m.reshape(total.shape), self)


def _exp_low(x: AnyTensor) -> AnyTensor:
    """exp(x) for x <= 0: the bound lets rules drop the code for overflow."""
    return x.minimum(0.0).exp()


def _shifted(x: AnyTensor, axis: int) -> AnyTensor:
    return x - reduce_axes(x, Op.Max, axis, keepdim=True)
