"""Conversions of nodes from dtype to dtype, as NumPy converts elements."""

from __future__ import annotations

from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp


def cast_to(uop: UOp, d: DType) -> UOp:
    """`uop` converted as NumPy converts it on this kind of machine, also where the op Cast is undefined."""
    source = uop.dtype
    if source is d:
        return uop
    if uop.op is Op.Const and not (source.is_float and d.is_int):
        return UOp.const(uop.arg, d)
    if source.is_float and d.is_int:
        return _float_to_int(uop, d)
    return uop.cast(d)


def _float_to_int(x: UOp, d: DType) -> UOp:
    """The truncation; out of range and for NaN the result of the machine's conversion instruction: the least i32 or i64, of which
    narrower types keep the low bits.
    """
    if d is dtypes.u64:
        # the upper half is converted 2^63 lower, and put back
        top = UOp.const(2.0**63, x.dtype)
        upper = x.ge(top)
        low = _float_to_int(upper.where(x - top, x), dtypes.i64).cast(d)
        return low ^ upper.where(UOp.const(1 << 63, d), UOp.const(0, d))
    wide = dtypes.i64 if d in (dtypes.i64, dtypes.u32) else dtypes.i32
    if x.dtype.bits <= 16:
        x = x.cast(dtypes.f32)  # halves have infinity where the bounds would be
    limit = 2.0 ** (wide.bits - 1)
    # where floats lie between the least integer and the one below it, they truncate to the least
    above = x.gt(UOp.const(-limit - 1, x.dtype)) if wide.bits < 53 <= x.dtype.bits else x.ge(UOp.const(-limit, x.dtype))
    inside = above & x.lt(UOp.const(limit, x.dtype))
    safe = inside.where(x, UOp.const(0.0, x.dtype)).cast(wide)
    out = inside.where(safe, UOp.const(wide.min, wide))
    return out if wide is d else out.cast(d)
