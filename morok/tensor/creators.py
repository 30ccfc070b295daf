"""Tensors described by a formula: constants, sequences, diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor import creation
from morok.tensor.arguments import whole
from morok.tensor.loss import Loss
from morok.tensor.movement import new_shape
from morok.tensor.stored import stored_buffer


class Creators(Loss):
    """Nothing here needs memory until it is computed."""

    __slots__ = ()

    @classmethod
    def full(cls, shape: int | Sequence[Any], value: bool | int | float, dtype: Any = None, device: str | None = None) -> Self:
        """`value` in every place."""
        dims = new_shape((shape,) if isinstance(shape, (int, UOp)) else tuple(shape))
        return cls._make(creation.full(dims, value, dtype), creation.default_device(device))

    @classmethod
    def zeros(cls, *shape: Any, dtype: Any = dtypes.f32, device: str | None = None) -> Self:
        return cls.full(new_shape(shape), 0, dtype, device)

    @classmethod
    def ones(cls, *shape: Any, dtype: Any = dtypes.f32, device: str | None = None) -> Self:
        return cls.full(new_shape(shape), 1, dtype, device)

    @classmethod
    def empty(cls, *shape: Any, dtype: Any = None, device: str | None = None) -> Self:
        """Memory of arbitrary contents."""
        name = creation.default_device(device)
        return cls._make(creation.empty(new_shape(shape), dtype, name), name)

    @classmethod
    def arange(
        cls, start: float, stop: float | None = None, step: float = 1, dtype: Any = None, device: str | None = None
    ) -> Self:
        """start, start + step, .. below stop; from 0 if only one is given. i64, or f32 if a float is among them."""
        return cls._make(creation.arange(start, stop, step, dtype), creation.default_device(device))

    @classmethod
    def linspace(
        cls, start: float, stop: float, num: int, dtype: Any = None, device: str | None = None, endpoint: bool = True
    ) -> Self:
        """`num` values evenly from `start` to `stop`."""
        count = whole(num, "num", 0)
        return cls._make(creation.linspace(start, stop, count, endpoint, dtype), creation.default_device(device))

    @classmethod
    def eye(cls, n_rows: int, n_cols: int | None = None, dtype: Any = None, device: str | None = None) -> Self:
        """1 on the diagonal, 0 elsewhere."""
        rows = whole(n_rows, "n_rows", 0)
        columns = rows if n_cols is None else whole(n_cols, "n_cols", 0)
        return cls._make(creation.eye(rows, columns, dtype), creation.default_device(device))

    def full_like(self, value: bool | int | float, dtype: Any = None) -> Self:
        return self._like(creation.full(self.shape, value, dtype or self.dtype))

    def zeros_like(self, dtype: Any = None) -> Self:
        return self.full_like(0, dtype)

    def ones_like(self, dtype: Any = None) -> Self:
        return self.full_like(1, dtype)

    def contiguous(self) -> Self:
        """The same elements, in memory in their order."""
        return self._same() if stored_buffer(self.uop) is not None else self._like(UOp.new(Op.Contiguous, (self.uop,)))
