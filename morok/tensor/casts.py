"""Conversions between dtypes, with NumPy's results: of nodes, and of tensors."""

from __future__ import annotations

import builtins
from typing import Any

from morok.caller import caller
from morok.errors import DTypeError
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor.base import DEFAULT_INT, AnyTensor, as_dtype


def cast_to(uop: UOp, d: DType) -> UOp:
    """`uop` at dtype `d`, as NumPy on x86 converts it, also for values for which the op Cast is undefined."""
    source = uop.dtype
    if source is d:
        return uop
    if uop.op is Op.Const and not (source.is_float and d.is_int):
        return UOp.const(uop.arg, d)
    if source.is_float and d.is_int:
        return _float_to_int(uop, d)
    return uop.cast(d)


def run_time_number(uop: UOp) -> UOp:
    """A variable, or an expression of variables, as a node of dtype i64; DTypeError for other nodes."""
    if not uop.dtype.is_index or uop.dtype.count != 1:
        raise DTypeError(
            f"tensors cannot be combined with a node of dtype {uop.dtype}",
            place=caller(),
            expected="a variable, or a tensor",
        )
    return cast_to(uop, DEFAULT_INT)


def _float_to_int(x: UOp, d: DType) -> UOp:
    """`x` truncated to the integer dtype `d`. Out of range and for NaN it is the result of x86's conversion instruction: the
    least i32 or i64, of which narrower dtypes keep the low bits.
    """
    if d is dtypes.u64:
        # numbers from 2^63 up: subtract 2^63, convert, set the top bit
        top = UOp.const(2.0**63, x.dtype)
        upper = x.ge(top)
        low = _float_to_int(upper.where(x - top, x), dtypes.i64).cast(d)
        return low ^ upper.where(UOp.const(1 << 63, d), UOp.const(0, d))
    wide = dtypes.i64 if d in (dtypes.i64, dtypes.u32) else dtypes.i32
    if x.dtype.bits <= 16:
        x = x.cast(dtypes.f32)  # in f16 the bounds below would be infinite
    limit = 2.0 ** (wide.bits - 1)
    # floats between `least - 1` and the least integer truncate to it: compare with > least - 1 if `x` has such floats
    above = x.gt(UOp.const(-limit - 1, x.dtype)) if wide.bits < 53 <= x.dtype.bits else x.ge(UOp.const(-limit, x.dtype))
    inside = above & x.lt(UOp.const(limit, x.dtype))
    safe = inside.where(x, UOp.const(0.0, x.dtype)).cast(wide)
    out = inside.where(safe, UOp.const(wide.min, wide))
    return out if wide is d else out.cast(d)


def cast(self: AnyTensor, dtype: Any) -> AnyTensor:
    """The elements at another dtype, in self's shape, as NumPy's astype converts them.

    Integers wrap, floats truncate, all numbers but 0 become True. A float out of range becomes the low bits of the least
    i32 (of the least i64 for i64, u32 and u64), as on x86. DTypeError for a dtype that tensors do not have.

    >>> Tensor([1.9, -1.9, 300.0]).cast("i8").tolist()
    [1, -1, 44]
    """
    d = as_dtype(dtype)
    return self._same() if d is self.dtype else self._like(cast_to(self.uop, d))


def astype(self: AnyTensor, dtype: Any, copy: builtins.bool = True) -> AnyTensor:
    """The elements at another dtype, in self's shape: cast() by NumPy's name; `copy` has no effect.

    DTypeError for a dtype that tensors do not have.

    >>> Tensor([1.9, -1.9]).astype("int32").tolist()
    [1, -1]
    """
    return self.cast(dtype)


def bitcast(self: AnyTensor, dtype: Any) -> AnyTensor:
    """The same bits at another dtype of the same width, in self's shape. DTypeError for another width.

    >>> Tensor([1.0]).bitcast(dtypes.i32).tolist()
    [1065353216]
    """
    d = as_dtype(dtype)
    if d.itemsize != self.dtype.itemsize:
        raise DTypeError(
            f"bitcast from {self.dtype} to {d} changes the width", place=caller(), expected=f"{self.dtype.bits} bits"
        )
    return self._like(self.uop.bitcast(d))


def float(self: AnyTensor) -> AnyTensor:
    """The elements as f32, in self's shape, as cast() converts them.

    >>> Tensor([1, 2]).float().dtype
    f32
    """
    return self.cast(dtypes.f32)


def int(self: AnyTensor) -> AnyTensor:
    """The elements as i32, in self's shape, as cast() converts them.

    >>> Tensor([1.9, -1.9]).int().tolist()
    [1, -1]
    """
    return self.cast(dtypes.i32)


def bool(self: AnyTensor) -> AnyTensor:
    """True where an element is not 0 (NaN included), in self's shape.

    >>> Tensor([0.0, 0.5]).bool().tolist()
    [False, True]
    """
    return self.cast(dtypes.bool)
