"""Tensors described by a formula: constants, sequences, diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from morok.arguments import flag
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor import creation, sequences
from morok.tensor.arguments import new_shape, whole
from morok.tensor.loss import Loss
from morok.tensor.stored import stored_buffer

if TYPE_CHECKING:
    from morok.optimize.opts import Opt


class Creators(Loss):
    """Nothing here needs memory until it is computed."""

    __slots__ = ()

    @classmethod
    def full(cls, shape: int | Sequence[Any], value: bool | int | float, dtype: Any = None, device: str | None = None) -> Self:
        """`value` in every place."""
        dims = new_shape((shape,))
        name = creation.default_device(device)
        return cls._make(creation.full(dims, value, dtype, name), name)

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
        name = creation.default_device(device)
        return cls._make(sequences.arange(start, stop, step, dtype, name), name)

    @classmethod
    def linspace(
        cls, start: float, stop: float, num: int, dtype: Any = None, device: str | None = None, endpoint: bool = True
    ) -> Self:
        """`num` values evenly from `start` to `stop`."""
        count = whole(num, "num", 0)
        ends = flag(endpoint, "endpoint")
        return cls._make(sequences.linspace(start, stop, count, ends, dtype), creation.default_device(device))

    @classmethod
    def eye(cls, n_rows: int, n_cols: int | None = None, dtype: Any = None, device: str | None = None) -> Self:
        """1 on the diagonal, 0 elsewhere."""
        rows = whole(n_rows, "n_rows", 0)
        columns = rows if n_cols is None else whole(n_cols, "n_cols", 0)
        return cls._make(creation.eye(rows, columns, dtype), creation.default_device(device))

    def full_like(self, value: bool | int | float, dtype: Any = None) -> Self:
        return self._like(creation.full(self.shape, value, self.dtype if dtype is None else dtype, self.device))

    def zeros_like(self, dtype: Any = None) -> Self:
        return self.full_like(0, dtype)

    def ones_like(self, dtype: Any = None) -> Self:
        return self.full_like(1, dtype)

    def contiguous(self, *opts: Opt) -> Self:
        """The same elements, in memory in their order: computed by a kernel of their own. `opts` are the optimizations of that
        kernel, in order, in place of those that would be chosen; there is none where the elements are in memory already.
        ConfigError for what is no Opt; OptError, once the kernel is compiled, where it cannot have one of them.
        """
        if opts:
            from morok.optimize.strategy import optimizations  # lazy: few programs choose optimizations themselves

            given = optimizations(opts)
            uop = self.uop.src[0] if self.uop.op is Op.Contiguous else self.uop
        else:
            given, uop = None, self.uop
        return self._same() if stored_buffer(uop) is not None else self._like(UOp.new(Op.Contiguous, (uop,), given))
