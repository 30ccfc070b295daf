"""Scans: at each element the sum (product, greatest, least) of those up to it.

A scan is one reduction: element i adds those at places up to i. On a CPU the loop over a long axis continues from one element to
the next (morok/optimize/scans.py), in one pass over memory. Many threads want many beginnings: on a GPU a long axis is cut into
blocks, scanned likewise, and each block continues from a scan of the blocks' totals. Either way the work grows with the axis and
not with its square.
"""

from __future__ import annotations

from typing import Any, Final, Self, Unpack

from morok.arguments import flag
from morok.caller import caller
from morok.errors import ShapeError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.ir.uop import UOp
from morok.runtime.device import device
from morok.tensor.arguments import known
from morok.tensor.base import arithmetic, as_dtype, show
from morok.tensor.joining import Joining
from morok.tensor.keywords import Along, AlongOrFlat, other_names
from morok.tensor.reduce import HALVES, accumulator

_AT_ONCE: Final = 64  # elements of an axis that one reduction scans
_BLOCK: Final = 16  # elements of a block: one vector register of the widest machines


class Scan(Joining):
    """The results have the operand's shape. Over no elements there is nothing to scan."""

    __slots__ = ()

    @other_names
    def cumsum(self, axis: int = 0, dtype: Any = None, **also: Unpack[Along]) -> Self:
        """The sums of the elements up to each one along `axis`, in self's shape; of integers as i64 or u64.

        Halves are added as f32 and rounded once. AxisError for an axis outside the shape.

        >>> Tensor([1, 2, 3]).cumsum().tolist()
        [1, 3, 6]
        """
        return self._accumulated(Op.Add, axis, dtype)

    @other_names
    def cumprod(self, axis: int = 0, dtype: Any = None, **also: Unpack[Along]) -> Self:
        """The products of the elements up to each one along `axis`, in self's shape; dtypes as for cumsum().

        AxisError for an axis outside the shape.

        >>> Tensor([1, 2, 3]).cumprod().tolist()
        [1, 2, 6]
        """
        return self._accumulated(Op.Mul, axis, dtype)

    @other_names
    def cummax(self, axis: int = 0, **also: Unpack[Along]) -> Self:
        """The greatest of the elements up to each one along `axis`, in self's shape and dtype; NaN from the first NaN on.

        AxisError for an axis outside the shape.

        >>> Tensor([1, 3, 2]).cummax().tolist()
        [1, 3, 3]
        """
        return self._scanned(Op.Max, axis)

    @other_names
    def cummin(self, axis: int = 0, **also: Unpack[Along]) -> Self:
        """The least of the elements up to each one along `axis`, in self's shape and dtype; NaN from the first NaN on.

        AxisError for an axis outside the shape.

        >>> Tensor([3, 1, 2]).cummin().tolist()
        [3, 1, 1]
        """
        return self._scanned(Op.Min, axis)

    @other_names
    def cumulative_sum(
        self, axis: int | None = None, dtype: Any = None, include_initial: bool = False, **also: Unpack[AlongOrFlat]
    ) -> Self:
        """cumsum() as the array API standard has it: of vectors without an axis; `include_initial` puts a 0 in front.

        ShapeError without an axis for more axes than one.

        >>> Tensor([1, 2, 3]).cumulative_sum(include_initial=True).tolist()
        [0, 1, 3, 6]
        """
        return self._cumulative(Op.Add, axis, dtype, include_initial)

    @other_names
    def cumulative_prod(
        self, axis: int | None = None, dtype: Any = None, include_initial: bool = False, **also: Unpack[AlongOrFlat]
    ) -> Self:
        """cumprod() as the array API standard has it: of vectors without an axis; `include_initial` puts a 1 in front.

        ShapeError without an axis for more axes than one.

        >>> Tensor([1, 2, 3]).cumulative_prod(include_initial=True).tolist()
        [1, 1, 2, 6]
        """
        return self._cumulative(Op.Mul, axis, dtype, include_initial)

    def _cumulative(self, op: Op, axis: int | None, dtype: Any, include_initial: bool) -> Self:
        if axis is None and self.ndim != 1:
            raise ShapeError(f"a scan of shape {show(self.shape)} without an axis", place=caller(), expected="one axis")
        a, include_initial = self._axis(0 if axis is None else axis), flag(include_initial, "include_initial")
        out = self._accumulated(op, a, dtype)
        if not include_initial:
            return out
        first = out.full((*self.shape[:a], 1, *self.shape[a + 1 :]), 0 if op is Op.Add else 1, out.dtype, self.device)
        return type(self).concat([first, out], a)

    def _accumulated(self, op: Op, axis: int, dtype: Any) -> Self:
        d = accumulator(self.dtype) if dtype is None else as_dtype(dtype)
        return self.cast(dtypes.f32 if d in HALVES else d)._scanned(op, axis).cast(d)

    def _scanned(self, op: Op, axis: int) -> Self:
        a = self._axis(axis)
        if known(self, a, "a scan") < 2 or 0 in self.shape:
            return self._same()
        if self.dtype.is_bool:
            return self.cast(dtypes.u8)._scanned(op, a).cast(dtypes.bool)
        if self.dtype is not (d := arithmetic(self.dtype)):
            return self.cast(d)._scanned(op, a)
        if self.shape[a] > _AT_ONCE and device(self.device).target.has_local:
            return self.moveaxis(a, -1)._scan_last(op, whole=True).moveaxis(-1, a)
        return self._scan_at_once(op, a, whole=True)

    def _scan_last(self, op: Op, whole: bool) -> Self:
        """Scan the last axis; element i counts at its own place, unless `whole` is False."""
        n = known(self, -1, "a scan")
        if n <= _AT_ONCE:
            return self._scan_at_once(op, -1, whole)
        blocks = -(-n // _BLOCK)
        x = self.pad([*[None] * (self.ndim - 1), (0, blocks * _BLOCK - n)], identity(op, self.dtype))
        rows = x.reshape((*self.shape[:-1], blocks, _BLOCK))
        before = rows._reduce(op, -1, keepdim=False)._scan_last(op, whole=False).contiguous()
        inside = rows._scan_at_once(op, -1, whole)
        out = inside._like(UOp.new(op, (inside.uop, before.unsqueeze(-1).expand(inside.shape).uop)))
        return out.reshape(x.shape).shrink([*[None] * (self.ndim - 1), (0, n)])

    def _scan_at_once(self, op: Op, axis: int, whole: bool) -> Self:
        a, n = self._axis(axis), known(self, axis, "a scan")
        rows = self.unsqueeze(a).expand((*self.shape[:a], n, n, *self.shape[a + 1 :]))
        place, upto = rows._positions(a + 1, dtypes.i32), rows._positions(a, dtypes.i32)
        counted = place <= upto if whole else place < upto
        neutral = self._like(UOp.const(identity(op, self.dtype), self.dtype))
        scanned = counted.where(rows, neutral)._reduce(op, a + 1, keepdim=False)
        return scanned.contiguous() if n > _AT_ONCE else scanned
