"""Reductions over axes, and functions built on them."""

from __future__ import annotations

from typing import Any, Self, Unpack

from morok.arguments import finite, flag
from morok.caller import caller
from morok.errors import DTypeError, ShapeError
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.ir.uop import UOp
from morok.tensor.activation import Activation
from morok.tensor.base import DEFAULT_INT, arithmetic, as_dtype, dim_node, element_count, show
from morok.tensor.keywords import Along, Axis, Locating, Reducing, other_names
from morok.tensor.movement import expanded, reshaped

HALVES = (dtypes.f16, dtypes.bf16)


def accumulator(d: DType) -> DType:
    """The dtype in which sums and products of `d` are formed: wide enough that they mean something."""
    if d.is_bool or d.is_signed:
        return DEFAULT_INT
    return dtypes.u64 if d.is_unsigned else arithmetic(d)


class Reduce(Activation):
    """sum, max and their relatives. Over no elements a sum is 0, a product 1; max, min and their positions raise ShapeError."""

    __slots__ = ()

    def _reduce(self, op: Op, axis: Axis, keepdim: bool) -> Self:
        if self.dtype is not (d := arithmetic(self.dtype)):
            return self.cast(d)._reduce(op, axis, keepdim)
        axes, keepdim = self._axes(axis), flag(keepdim, "keepdim")
        shape = self.shape
        kept = tuple(1 if a in axes else d for a, d in enumerate(shape))
        out = kept if keepdim else tuple(d for a, d in enumerate(shape) if a not in axes)
        folded = tuple(a for a in axes if shape[a] != 1)
        if any(shape[a] == 0 for a in folded):
            nothing = 0 if op is Op.Add else identity(op, self.dtype)  # +0.0 where the identity is -0.0: as NumPy has it
            return self._like(expanded(UOp.const(nothing, self.dtype), out))
        uop = self.uop
        if folded:
            if any(d == 1 for d in shape):
                # axes of size 1 carry nothing through a loop
                uop = reshaped(uop, tuple(d for d in shape if d != 1))
                sizes = [a for a, d in enumerate(shape) if d != 1]
                folded = tuple(sizes.index(a) for a in folded)
            uop = UOp.new(Op.ReduceAxis, (uop,), (op, folded))
        return self._like(reshaped(uop, out))

    @other_names
    def sum(self, axis: Axis = None, keepdim: bool = False, dtype: Any = None, **also: Unpack[Reducing]) -> Self:
        """The sum over `axis` (None: all axes), 0 over nothing. Integers are added as i64 or u64, halves as f32 and rounded once.

        AxisError for an axis outside the shape, ShapeError for an axis named twice, DTypeError for `dtype=bool`.

        >>> Tensor([[1, 2], [3, 4]]).sum(0).tolist(), Tensor([[1, 2], [3, 4]]).sum(1, keepdim=True).shape
        ([4, 6], (2, 1))
        """
        return self._accumulate(Op.Add, axis, keepdim, dtype)

    @other_names
    def prod(self, axis: Axis = None, keepdim: bool = False, dtype: Any = None, **also: Unpack[Reducing]) -> Self:
        """The product over `axis` (None: all axes), 1 over nothing; dtypes as for sum().

        AxisError for an axis outside the shape, ShapeError for an axis named twice, DTypeError for `dtype=bool`.

        >>> Tensor([[1, 2], [3, 4]]).prod(0).tolist()
        [3, 8]
        """
        return self._accumulate(Op.Mul, axis, keepdim, dtype)

    def _accumulate(self, op: Op, axis: Axis, keepdim: bool, dtype: Any) -> Self:
        d = accumulator(self.dtype) if dtype is None else as_dtype(dtype)
        if d in HALVES:
            return self.cast(dtypes.f32)._reduce(op, axis, keepdim).cast(d)
        if d.is_bool:
            raise DTypeError(f"{op.name} in bool", place=caller(), expected="a number dtype", hint="any() and all() reduce bools")
        return self.cast(d)._reduce(op, axis, keepdim)

    @other_names
    def max(self, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> Self:
        """The greatest element over `axis` (None: all axes), in self's dtype; NaN if there is one.

        ShapeError over an axis without elements, AxisError for an axis outside the shape.

        >>> Tensor([[1, 5], [3, 4]]).max(1).tolist()
        [5, 4]
        """
        return self._extreme(Op.Max, axis, keepdim)

    @other_names
    def min(self, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> Self:
        """The least element over `axis` (None: all axes), in self's dtype; NaN if there is one.

        ShapeError over an axis without elements, AxisError for an axis outside the shape.

        >>> Tensor([[1, 5], [3, 4]]).min(1).tolist()
        [1, 3]
        """
        return self._extreme(Op.Min, axis, keepdim)

    def _extreme(self, op: Op, axis: Axis, keepdim: bool) -> Self:
        for a in self._axes(axis):
            self._some_along(a, f"{op.name.lower()}()")
        return self._reduce(op, axis, keepdim)

    def _some_along(self, axis: int, what: str) -> None:
        """ShapeError for an axis without elements, of which none is the greatest, whatever the other axes are."""
        if self.shape[axis] == 0:
            raise ShapeError(
                f"{what} over axis {axis} of shape {show(self.shape)}, which has no elements",
                place=caller(),
                expected="at least one",
            )

    @other_names
    def any(self, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> Self:
        """True where some element over `axis` (None: all axes) is not 0, as bool; False over nothing.

        AxisError for an axis outside the shape.

        >>> Tensor([[0, 0], [0, 4]]).any(1).tolist()
        [False, True]
        """
        return self.bool()._reduce(Op.Max, axis, keepdim)

    @other_names
    def all(self, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> Self:
        """True where every element over `axis` (None: all axes) is not 0, as bool; True over nothing.

        AxisError for an axis outside the shape.

        >>> Tensor([[1, 2], [0, 4]]).all(1).tolist()
        [True, False]
        """
        return self.bool()._reduce(Op.Min, axis, keepdim)

    @other_names
    def count_nonzero(self, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> Self:
        """The number of elements over `axis` (None: all axes) that are not 0, as i64.

        AxisError for an axis outside the shape.

        >>> Tensor([[1, 2], [0, 4]]).count_nonzero(1).tolist()
        [2, 1]
        """
        return self.bool().sum(axis, keepdim)

    def _count(self, axis: Axis) -> int | UOp:
        return element_count(tuple(self.shape[a] for a in self._axes(axis)))

    @other_names
    def mean(self, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> Self:
        """The arithmetic mean over `axis` (None: all axes), in self's float dtype (integers: f32); NaN over nothing.

        AxisError for an axis outside the shape.

        >>> Tensor([[1, 2], [3, 5]]).mean(1).tolist()
        [1.5, 4.0]
        """
        x = self._like(self._float())
        wide = x.cast(dtypes.f32) if x.dtype in HALVES else x
        return wide.sum(axis, keepdim)._over(self._count(axis)).cast(x.dtype)

    def _over(self, count: int | UOp) -> Self:
        if isinstance(count, UOp):
            return self._like(self.uop / count.cast(self.dtype))
        return self / float(count)

    @other_names
    def var(self, axis: Axis = None, keepdim: bool = False, correction: float = 0, **also: Unpack[Reducing]) -> Self:
        """The variance over `axis` (None: all axes): squared distances from the mean, summed, over n - `correction`, as a float.

        AxisError for an axis outside the shape, ShapeError for a `correction` that is not finite.

        >>> Tensor([1.0, 3.0]).var().item(), Tensor([1.0, 3.0]).var(correction=1).item()
        (1.0, 2.0)
        """
        x, correction = self._like(self._float()), finite(correction, "the correction", ShapeError)
        centred = x - x.mean(axis, keepdim=True)
        count = self._count(axis)
        total = (centred * centred).sum(axis, keepdim)
        if isinstance(count, UOp):
            left = count.cast(total.dtype) - UOp.const(float(correction), total.dtype)
            return self._like(total.uop / left.max(UOp.const(0.0, total.dtype)))
        return total / max(count - correction, 0.0)

    @other_names
    def std(self, axis: Axis = None, keepdim: bool = False, correction: float = 0, **also: Unpack[Reducing]) -> Self:
        """The square root of var(), the standard deviation, in self's float dtype (integers: f32).

        AxisError for an axis outside the shape, ShapeError for a `correction` that is not finite.

        >>> Tensor([1.0, 3.0]).std().item()
        1.0
        """
        return self.var(axis, keepdim, correction).sqrt()

    @other_names
    def argmax(self, axis: int | None = None, keepdim: bool = False, **also: Unpack[Locating]) -> Self:
        """The position of the first greatest element (or NaN) along `axis` (None: in the flat tensor), as i64.

        ShapeError along an axis without elements, AxisError for an axis outside the shape.

        >>> Tensor([[1, 5], [4, 4]]).argmax(1).tolist()
        [1, 0]
        """
        return self._position(Op.Max, axis, keepdim)

    @other_names
    def argmin(self, axis: int | None = None, keepdim: bool = False, **also: Unpack[Locating]) -> Self:
        """The position of the first least element (or NaN) along `axis` (None: in the flat tensor), as i64.

        ShapeError along an axis without elements, AxisError for an axis outside the shape.

        >>> Tensor([[1, 5], [4, 4]]).argmin(1).tolist()
        [0, 0]
        """
        return self._position(Op.Min, axis, keepdim)

    def _position(self, op: Op, axis: int | None, keepdim: bool) -> Self:
        if axis is None:
            flat = self.flatten()._position(op, 0, False)
            return flat.reshape((1,) * self.ndim) if flag(keepdim, "keepdim") else flat
        a = self._axis(axis)
        x = self.cast(dtypes.u8) if self.dtype.is_bool else self
        size = self.shape[a]
        self._some_along(a, f"arg{op.name.lower()}()")
        best = x._reduce(op, a, keepdim=True)
        hit = x == best
        if x.dtype.is_float:
            hit = hit | x.isnan()
        small = isinstance(size, int) and size <= dtypes.i32.max
        d = dtypes.i32 if small else DEFAULT_INT
        place = self._positions(a, d)
        beyond = UOp.const(int(d.max), d)
        first = hit.where(place, self._like(beyond))._reduce(Op.Min, a, keepdim)
        return first.cast(DEFAULT_INT)

    def _positions(self, axis: int, d: DType) -> Self:
        """Along `axis` the position of each element, in a shape that broadcasts with this one."""
        size = self.shape[axis]
        iota = UOp.new(Op.Iota, (dim_node(size),)).cast(d)
        return self._like(reshaped(iota, tuple(size if a == axis else 1 for a in range(self.ndim))))

    @other_names
    def softmax(self, axis: int = -1, **also: Unpack[Along]) -> Self:
        """exp(x) over its sum along `axis`, in self's shape and float dtype (integers: f32), without overflow.

        Halves are computed as f32 and rounded once. One division a sum: its reciprocal neither over- nor underflows, as the
        greatest element adds 1 to it. AxisError for an axis outside the shape.

        >>> Tensor([0.0, 0.0]).softmax().tolist()
        [0.5, 0.5]
        """
        e = self._wide()._shifted(axis)._exp_low()
        return (e * e.sum(axis, keepdim=True).reciprocal())._rounded_to(self)

    @other_names
    def log_softmax(self, axis: int = -1, **also: Unpack[Along]) -> Self:
        """The logarithm of softmax() along `axis`, in self's shape and float dtype (integers: f32), without underflow.

        AxisError for an axis outside the shape.

        >>> Tensor([0.0, -1000.0]).log_softmax().tolist()
        [0.0, -1000.0]
        """
        s = self._shifted(axis)
        return s - s._exp_low().sum(axis, keepdim=True).log()

    @other_names
    def logsumexp(self, axis: Axis = None, keepdim: bool = False, **also: Unpack[Reducing]) -> Self:
        """log(sum(exp(x))) over `axis` (None: all axes), in self's float dtype (integers: f32), without overflow.

        AxisError for an axis outside the shape.

        >>> Tensor([1000.0, 0.0]).logsumexp().item()
        1000.0
        """
        m = self._like(self._float())._reduce(Op.Max, axis, keepdim=True)
        m = m.isfinite().where(m, 0.0)
        total = (self - m).exp().sum(axis, keepdim).log()
        return total + m.reshape(total.shape)

    def _exp_low(self) -> Self:
        """exp(x) of elements that are at most 0, which makes its code shorter."""
        return self.minimum(0.0).exp()

    def _shifted(self, axis: int) -> Self:
        x = self._like(self._float())
        return x - x._reduce(Op.Max, axis, keepdim=True)
