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
        """A tensor of `shape` with `value` in every place, by default bool, i64 or f32 as Python's number is.

        ShapeError for a negative size, DTypeError for a dtype that tensors do not have.

        >>> Tensor.full((2, 2), 7).tolist()
        [[7, 7], [7, 7]]
        """
        dims = new_shape((shape,))
        name = creation.default_device(device)
        return cls._make(creation.full(dims, value, dtype, name), name)

    @classmethod
    def zeros(cls, *shape: Any, dtype: Any = dtypes.f32, device: str | None = None) -> Self:
        """A tensor of `shape` (numbers or one sequence) with 0 in every place, by default f32.

        ShapeError for a negative size, DTypeError for a dtype that tensors do not have.

        >>> Tensor.zeros(2, 2).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
        """
        return cls.full(new_shape(shape), 0, dtype, device)

    @classmethod
    def ones(cls, *shape: Any, dtype: Any = dtypes.f32, device: str | None = None) -> Self:
        """A tensor of `shape` (numbers or one sequence) with 1 in every place, by default f32.

        ShapeError for a negative size, DTypeError for a dtype that tensors do not have.

        >>> Tensor.ones(2, dtype="i32").tolist()
        [1, 1]
        """
        return cls.full(new_shape(shape), 1, dtype, device)

    @classmethod
    def empty(cls, *shape: Any, dtype: Any = None, device: str | None = None) -> Self:
        """Memory for a tensor of `shape` with arbitrary contents, by default f32.

        ShapeError for a negative size, DTypeError for a dtype that tensors do not have.

        >>> Tensor.empty(2, 3).shape
        (2, 3)
        """
        name = creation.default_device(device)
        return cls._make(creation.empty(new_shape(shape), dtype, name), name)

    @classmethod
    def arange(
        cls, start: float, stop: float | None = None, step: float = 1, dtype: Any = None, device: str | None = None
    ) -> Self:
        """The numbers start, start + step, .. below stop (from 0 if one is given), in one axis: i64, or f32 if a float is given.

        ShapeError for a step of 0 and for a number that is not finite.

        >>> Tensor.arange(5).tolist(), Tensor.arange(4, 0, -2).tolist()
        ([0, 1, 2, 3, 4], [4, 2])
        """
        name = creation.default_device(device)
        return cls._make(sequences.arange(start, stop, step, dtype, name), name)

    @classmethod
    def linspace(
        cls, start: float, stop: float, num: int, dtype: Any = None, device: str | None = None, endpoint: bool = True
    ) -> Self:
        """`num` numbers evenly from `start` to `stop`, in one axis, by default f32; without `stop` itself if not `endpoint`.

        ShapeError for an end that is not finite and for a negative `num`.

        >>> Tensor.linspace(0, 1, 5).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        count = whole(num, "num", 0)
        ends = flag(endpoint, "endpoint")
        return cls._make(sequences.linspace(start, stop, count, ends, dtype), creation.default_device(device))

    @classmethod
    def eye(cls, n_rows: int, n_cols: int | None = None, dtype: Any = None, device: str | None = None) -> Self:
        """A matrix [n_rows, n_cols] (square by default) with 1 on the diagonal and 0 elsewhere, by default f32.

        ShapeError for a negative size.

        >>> Tensor.eye(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        rows = whole(n_rows, "n_rows", 0)
        columns = rows if n_cols is None else whole(n_cols, "n_cols", 0)
        return cls._make(creation.eye(rows, columns, dtype), creation.default_device(device))

    def full_like(self, value: bool | int | float, dtype: Any = None) -> Self:
        """A tensor of self's shape, device and dtype (or `dtype`) with `value` in every place.

        >>> Tensor([1, 2]).full_like(7).tolist()
        [7, 7]
        """
        return self._like(creation.full(self.shape, value, self.dtype if dtype is None else dtype, self.device))

    def zeros_like(self, dtype: Any = None) -> Self:
        """A tensor of self's shape, device and dtype (or `dtype`) with 0 in every place.

        >>> Tensor([1, 2]).zeros_like().tolist()
        [0, 0]
        """
        return self.full_like(0, dtype)

    def ones_like(self, dtype: Any = None) -> Self:
        """A tensor of self's shape, device and dtype (or `dtype`) with 1 in every place.

        >>> Tensor([1, 2]).ones_like("f32").tolist()
        [1.0, 1.0]
        """
        return self.full_like(1, dtype)

    def contiguous(self, *opts: Opt) -> Self:
        """The same elements in memory in their order, computed by a kernel of their own.

        `opts` are the optimizations of that kernel, in order, in place of those that would be chosen; there is no kernel
        where the elements are in memory already. ConfigError for anything but Opts; OptError, once the kernel is compiled, where
        it cannot have one of them.

        >>> len((Tensor([1, 2]) + 1).contiguous().sum().kernels())
        2
        """
        if opts:
            from morok.optimize.strategy import optimizations  # lazy: few programs choose optimizations themselves

            given = optimizations(opts)
            uop = self.uop.src[0] if self.uop.op is Op.Contiguous else self.uop
        else:
            given, uop = None, self.uop
        return self._same() if stored_buffer(uop) is not None else self._like(UOp.new(Op.Contiguous, (uop,), given))
