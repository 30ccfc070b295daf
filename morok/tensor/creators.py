"""Tensors described by a formula: constants, sequences, diagonals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor import creation
from morok.tensor.base import AnyTensor
from morok.tensor.stored import stored_buffer

if TYPE_CHECKING:
    from morok.optimize.opts import Opt


def full_like(self: AnyTensor, value: bool | int | float, dtype: Any = None) -> AnyTensor:
    """A tensor of self's shape, device and dtype (or `dtype`) with `value` in every place.

    >>> Tensor([1, 2]).full_like(7).tolist()
    [7, 7]
    """
    return self._like(creation.full(self.shape, value, self.dtype if dtype is None else dtype, self.device))


def zeros_like(self: AnyTensor, dtype: Any = None) -> AnyTensor:
    """A tensor of self's shape, device and dtype (or `dtype`) with 0 in every place.

    >>> Tensor([1, 2]).zeros_like().tolist()
    [0, 0]
    """
    return self.full_like(0, dtype)


def ones_like(self: AnyTensor, dtype: Any = None) -> AnyTensor:
    """A tensor of self's shape, device and dtype (or `dtype`) with 1 in every place.

    >>> Tensor([1, 2]).ones_like("f32").tolist()
    [1.0, 1.0]
    """
    return self.full_like(1, dtype)


def contiguous(self: AnyTensor, *opts: Opt) -> AnyTensor:
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
