"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any, Self

from morok.caller import caller
from morok.errors import ShapeError
from morok.ir.dtype import dtypes, promote
from morok.ir.op import Op
from morok.tensor.base import arithmetic, show
from morok.tensor.movement import broadcast_shapes
from morok.tensor.reduce import HALVES, Reduce


class Linalg(Reduce):
    """matmul and what is made of it."""

    __slots__ = ()

    def matmul(self, other: Any) -> Self:
        """[M, K] @ [K, N] -> [M, N]; a vector on either side loses its axis; further axes broadcast as batches.

        Integers are multiplied and added in their own dtype, halves as f32 and rounded once. ShapeError shows both shapes.
        """
        y = other if isinstance(other, Linalg) else self._from_data(other, self.device)
        if self.ndim == 0 or y.ndim == 0:
            raise self._unfit(y, "at least one axis on both sides")
        inner = y.shape[max(y.ndim - 2, 0)]
        if self.shape[-1] != inner:
            raise self._unfit(y, f"the inner dimensions {self.shape[-1]} and {inner} to be equal")
        a = self if self.ndim > 1 else self.unsqueeze(0)
        b = y if y.ndim > 1 else y.unsqueeze(1)
        try:
            broadcast_shapes(a.shape[:-2], b.shape[:-2])
        except ShapeError:
            raise self._unfit(y, "batch dimensions that broadcast") from None
        d = arithmetic(promote(a.dtype, b.dtype))
        wide = dtypes.f32 if d in HALVES else d
        # [.., M, 1, K] * [.., 1, N, K], summed over K
        product = a.unsqueeze(-2).cast(wide) * b.transpose(-1, -2).unsqueeze(-3).cast(wide)
        out = product.any(-1) if d.is_bool else product._reduce(Op.Add, -1, keepdim=False).cast(d)
        if self.ndim == 1:
            out = out.squeeze(-2)
        return out.squeeze(-1) if y.ndim == 1 else out

    def _unfit(self, other: Reduce, expected: str) -> ShapeError:
        return ShapeError(
            f"shapes {show(self.shape)} and {show(other.shape)} cannot be multiplied as matrices",
            place=caller(),
            expected=expected,
            hint="transpose one side?",
        )

    def dot(self, other: Any) -> Self:
        return self.matmul(other)

    def __matmul__(self, other: Any) -> Self:
        return self.matmul(other)

    def __rmatmul__(self, other: Any) -> Self:
        return self._from_data(other, self.device).matmul(self)

    def linear(self, weight: Self, bias: Self | None = None) -> Self:
        """x @ weight.T + bias, the weight as [out, in]."""
        out = self @ weight.transpose(0, 1)
        return out if bias is None else out + bias

    def outer(self, other: Self) -> Self:
        """[M], [N] -> [M, N]: all products."""
        return self.reshape(-1, 1) * other.reshape(1, -1)

    def tril(self, diagonal: int = 0) -> Self:
        """The elements on and below a diagonal of the last two axes, 0 above."""
        return self._triangle(diagonal, lower=True)

    def triu(self, diagonal: int = 0) -> Self:
        """The elements on and above a diagonal of the last two axes, 0 below."""
        return self._triangle(diagonal, lower=False)

    def _triangle(self, diagonal: int, lower: bool) -> Self:
        row = self._positions(self._axis(-2), dtypes.i32) + diagonal
        column = self._positions(self._axis(-1), dtypes.i32)
        inside = column <= row if lower else column >= row
        return self._like(inside.where(self, False if self.dtype.is_bool else 0).uop)
