"""Prefix scans: for each element the sum (product, maximum, minimum) of the elements up to it, in the operand's shape.

A scan is described as one masked reduction: result i reduces the elements up to i. On a CPU the optimizer turns it into a loop
that carries the result from one element to the next (morok/optimize/prefix_scan.py), in one pass over memory. For the many
threads of a GPU a long axis is split into blocks; each is scanned, and combined with a scan of the blocks' totals. Either way
the work is linear in the axis, not quadratic.
"""

from __future__ import annotations

from typing import Any, Final, Unpack

from morok.arguments import flag
from morok.caller import caller
from morok.errors import ShapeError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.ir.uop import UOp
from morok.runtime.device import device
from morok.tensor.argument_checks import known
from morok.tensor.axis_reductions import HALVES, accumulator, positions_along, reduce_axes
from morok.tensor.base import AnyTensor, arithmetic, as_dtype, show
from morok.tensor.keywords import Along, AlongOrFlat, other_names
from morok.tensor.view_methods import axis_of

_AT_ONCE: Final = 64  # most elements of an axis that one reduction scans on a GPU
_BLOCK: Final = 16  # elements of a block: one vector register of the widest machines


@other_names
def cumsum(self: AnyTensor, axis: int = 0, dtype: Any = None, **also: Unpack[Along]) -> AnyTensor:
    """The cumulative sums along `axis`, in self's shape; of integers as i64 or u64.

    Halves are added as f32 and rounded once. AxisError for an axis outside the shape.

    >>> Tensor([1, 2, 3]).cumsum().tolist()
    [1, 3, 6]
    """
    return _accumulated(self, Op.Add, axis, dtype)


@other_names
def cumprod(self: AnyTensor, axis: int = 0, dtype: Any = None, **also: Unpack[Along]) -> AnyTensor:
    """The cumulative products along `axis`, in self's shape; dtypes as for cumsum().

    AxisError for an axis outside the shape.

    >>> Tensor([1, 2, 3]).cumprod().tolist()
    [1, 2, 6]
    """
    return _accumulated(self, Op.Mul, axis, dtype)


@other_names
def cummax(self: AnyTensor, axis: int = 0, **also: Unpack[Along]) -> AnyTensor:
    """The cumulative maxima along `axis`, in self's shape and dtype; NaN from the first NaN on.

    AxisError for an axis outside the shape.

    >>> Tensor([1, 3, 2]).cummax().tolist()
    [1, 3, 3]
    """
    return _scanned(self, Op.Max, axis)


@other_names
def cummin(self: AnyTensor, axis: int = 0, **also: Unpack[Along]) -> AnyTensor:
    """The cumulative minima along `axis`, in self's shape and dtype; NaN from the first NaN on.

    AxisError for an axis outside the shape.

    >>> Tensor([3, 1, 2]).cummin().tolist()
    [3, 1, 1]
    """
    return _scanned(self, Op.Min, axis)


@other_names
def cumulative_sum(
    self: AnyTensor,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
    **also: Unpack[AlongOrFlat],
) -> AnyTensor:
    """cumsum() in the array API standard's form: a vector needs no axis; `include_initial` puts a 0 in front.

    ShapeError without `axis` unless self is a vector.

    >>> Tensor([1, 2, 3]).cumulative_sum(include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _cumulative(self, Op.Add, axis, dtype, include_initial)


@other_names
def cumulative_prod(
    self: AnyTensor,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
    **also: Unpack[AlongOrFlat],
) -> AnyTensor:
    """cumprod() in the array API standard's form: a vector needs no axis; `include_initial` puts a 1 in front.

    ShapeError without `axis` unless self is a vector.

    >>> Tensor([1, 2, 3]).cumulative_prod(include_initial=True).tolist()
    [1, 1, 2, 6]
    """
    return _cumulative(self, Op.Mul, axis, dtype, include_initial)


def _cumulative(x: AnyTensor, op: Op, axis: int | None, dtype: Any, include_initial: bool) -> AnyTensor:
    if axis is None and x.ndim != 1:
        raise ShapeError(
            f"a scan of shape {show(x.shape)} needs an axis",
            place=caller(),
            expected="the argument axis, or a tensor of one axis",
        )
    a, include_initial = axis_of(x, 0 if axis is None else axis), flag(include_initial, "include_initial")
    out = _accumulated(x, op, a, dtype)
    if not include_initial:
        return out
    first = out.full((*x.shape[:a], 1, *x.shape[a + 1 :]), 0 if op is Op.Add else 1, out.dtype, x.device)
    return type(x).concat([first, out], a)


def _accumulated(x: AnyTensor, op: Op, axis: int, dtype: Any) -> AnyTensor:
    d = accumulator(x.dtype) if dtype is None else as_dtype(dtype)
    return _scanned(x.cast(dtypes.f32 if d in HALVES else d), op, axis).cast(d)


def _scanned(x: AnyTensor, op: Op, axis: int) -> AnyTensor:
    a = axis_of(x, axis)
    if known(x, a, "a scan") < 2 or 0 in x.shape:
        return x._same()
    if x.dtype.is_bool:
        return _scanned(x.cast(dtypes.u8), op, a).cast(dtypes.bool)
    if x.dtype is not (d := arithmetic(x.dtype)):
        return _scanned(x.cast(d), op, a)
    if x.shape[a] > _AT_ONCE and device(x.device).target.has_local:
        return _scan_last(x.moveaxis(a, -1), op, whole=True).moveaxis(-1, a)
    return _scan_at_once(x, op, a, whole=True)


def _scan_last(t: AnyTensor, op: Op, whole: bool) -> AnyTensor:
    """The scan of the last axis, in blocks: inclusive if `whole`, else exclusive."""
    n = known(t, -1, "a scan")
    if n <= _AT_ONCE:
        return _scan_at_once(t, op, -1, whole)
    blocks = -(-n // _BLOCK)
    x = t.pad([*[None] * (t.ndim - 1), (0, blocks * _BLOCK - n)], identity(op, t.dtype))
    rows = x.reshape((*t.shape[:-1], blocks, _BLOCK))
    before = _scan_last(reduce_axes(rows, op, -1, keepdim=False), op, whole=False).contiguous()
    inside = _scan_at_once(rows, op, -1, whole)
    out = inside._like(UOp.new(op, (inside.uop, before.unsqueeze(-1).expand(inside.shape).uop)))
    return out.reshape(x.shape).shrink([*[None] * (t.ndim - 1), (0, n)])


def _scan_at_once(x: AnyTensor, op: Op, axis: int, whole: bool) -> AnyTensor:
    a, n = axis_of(x, axis), known(x, axis, "a scan")
    rows = x.unsqueeze(a).expand((*x.shape[:a], n, n, *x.shape[a + 1 :]))
    place, upto = positions_along(rows, a + 1, dtypes.i32), positions_along(rows, a, dtypes.i32)
    counted = place <= upto if whole else place < upto
    neutral = x._like(UOp.const(identity(op, x.dtype), x.dtype))
    scanned = reduce_axes(counted.where(rows, neutral), op, a + 1, keepdim=False)
    return scanned.contiguous() if n > _AT_ONCE else scanned
