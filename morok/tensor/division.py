"""Quotients and remainders with NumPy's results, also for operands for which the ops of the IR are undefined or not exact."""

from __future__ import annotations

import math
from typing import Final

from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp

# Integers.


def floor_divide(a: UOp, b: UOp) -> UOp:
    """The quotient of integers rounded down, NumPy's //: 0 for a divisor 0, INT_MIN for INT_MIN // -1."""
    d = a.dtype
    if b.op is Op.Const and b.arg not in (0, -1):
        return a.floordiv(b)
    zero = b.eq(0)
    # the safe divisor 1 gives INT_MIN, the result for INT_MIN // -1
    return zero.where(UOp.const(0, d), a.floordiv(_safe_divisor(a, b)))


def floor_modulo(a: UOp, b: UOp) -> UOp:
    """The remainder of floor_divide(), NumPy's %: 0 for a divisor 0 and for INT_MIN % -1."""
    if b.op is Op.Const and b.arg not in (0, -1):
        return a.floormod(b)
    # the safe divisor 1 gives the remainder 0
    return a.floormod(_safe_divisor(a, b))


def _safe_divisor(a: UOp, b: UOp) -> UOp:
    d = a.dtype
    bad = b.eq(0)
    if d.is_signed:
        bad = bad | (a.eq(d.min) & b.eq(-1))
    return bad.where(UOp.const(1, d), b)


# Floats. Both functions start from an exact remainder, found in steps that subtract multiples of b * 2^k for descending k.

_STEP: Final = 50  # bits of the quotient that one step removes: few enough that its rounding error is below a quarter
# every finite number is below 2^this
_GREATEST: Final = {dtypes.f16: 16, dtypes.bf16: 128, dtypes.f32: 128, dtypes.f64: 1024}
# the least positive number is 2^this
_LEAST: Final = {dtypes.f16: -24, dtypes.bf16: -133, dtypes.f32: -149, dtypes.f64: -1074}


def _multiples(b: UOp, source: DType) -> list[UOp]:
    """|b| * 2^k for descending k, down to k = 0. Every number of dtype `source` divided by the first is below 2^(_STEP + 1)."""
    size = b.abs()
    least = math.frexp(abs(b.arg))[1] - 1 if b.op is Op.Const and 0 < abs(b.arg) < math.inf else _LEAST[source]
    out = [size]
    for k in range(_STEP, max(_GREATEST[source] - least, 1), _STEP):
        if b.op is Op.Const:
            out.append(UOp.const(math.ldexp(abs(b.arg), k), b.dtype))
            continue
        grown = out[-1] * UOp.const(2.0**_STEP, b.dtype)
        if source is dtypes.f64:  # a multiple that would overflow when grown is great enough
            grown = out[-1].lt(UOp.const(2.0 ** (1023 - _STEP), b.dtype)).where(grown, out[-1])
        out.append(grown)
    return out[::-1]


def _nearest_remainder(a: UOp, b: UOp) -> UOp:
    """a minus the multiple of b nearest to it, exact; `a` for an infinite b, NaN for b = 0 and for an infinite a.

    A step replaces the rest r by r - q * m, for m a multiple of b and q the integer nearest to the rounded r / m. The new rest
    is at most 3/4 of m, and an integer multiple of the last bit of r or m: a fused multiply-add computes it without rounding.
    """
    d = a.dtype
    rest, divisor = a.cast(dtypes.f64), b.cast(dtypes.f64)
    for m in _multiples(divisor, d):
        q = UOp.new(Op.Round, (rest / m,))
        rest = UOp.new(Op.MulAcc, (-q, m, rest))
    inf = UOp.const(math.inf, d)
    return (b.abs().eq(inf) & a.abs().lt(inf)).where(a, rest.cast(d))


def _work(a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """Both operands as f32 if they are halves, as in NumPy; else unchanged."""
    return (a.cast(dtypes.f32), b.cast(dtypes.f32)) if a.dtype.bits == 16 else (a, b)


def float_floor_modulo(a: UOp, b: UOp) -> UOp:
    """np.remainder of floats: the exact remainder of the truncated quotient, plus b (rounded) if its sign is not b's.

    Starting from the remainder nearest to 0 gives the same sum: the two remainders are equal, or differ by exactly b.
    """
    d, zero = a.dtype, UOp.const(0.0, a.dtype)
    rest, divisor = _work(_nearest_remainder(a, b), b)
    below = b.lt(zero)
    other = rest.lt(rest.like(0.0)).ne(below)
    signed_zero = below.where(UOp.const(-0.0, d), zero)
    return rest.eq(rest.like(0.0)).where(signed_zero, other.where(rest + divisor, rest).cast(d))


def float_floor_divide(a: UOp, b: UOp) -> UOp:
    """The quotient of floats rounded down, np.floor_divide: (a - remainder) / b, rounded to the nearest integer."""
    d = a.dtype
    rest = _nearest_remainder(a, b)
    x, y = _work(a, b)
    rest = rest.cast(x.dtype)
    zero, one = x.like(0.0), x.like(1.0)
    there = rest.ne(zero)
    # the remainder of the truncated quotient has the sign of the dividend
    size = y.abs()
    truncated = (there & rest.lt(zero).ne(x.lt(zero))).where(rest + x.lt(zero).where(-size, size), rest)
    q = (x - truncated) / y
    q = (truncated.ne(zero) & truncated.lt(zero).ne(y.lt(zero))).where(q - one, q)
    whole = q.floor()
    whole = (q - whole).gt(x.like(0.5)).where(whole + one, whole)
    plain = x / y
    out = q.eq(zero).where(plain.trunc(), whole)  # a zero with the quotient's sign
    return y.eq(zero).where(plain, out).cast(d)
