"""Evenly spaced numbers, with NumPy's results: computed in i64, f64 or the result's dtype, and converted at most once."""

from __future__ import annotations

import math
from typing import Any

from morok.arguments import finite
from morok.caller import caller
from morok.errors import ShapeError
from morok.ir import number
from morok.ir.dtype import FLOAT_FORMAT, DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor.argument_checks import MOST
from morok.tensor.base import DEFAULT_FLOAT, DEFAULT_INT, as_dtype, iota
from morok.tensor.casts import cast_to
from morok.tensor.scalars import Number, constant
from morok.tensor.view_methods import expanded


def arange(start: Any, stop: Any, step: Any, dtype: Any, device: str) -> UOp:
    """The numbers start, start + step, .. below stop (0, step, .. below start if `stop` is None): i64, or f32 if one is a float.

    For an integer dtype the first number and the difference of the first two are truncated, as in NumPy; later numbers wrap.
    ShapeError for a step of 0 and for numbers that are not finite.
    """
    first, last, by = (0, start, step) if stop is None else (start, stop, step)
    names = ("the start of arange", "the stop of arange", "the step of arange")
    first, last, by = (finite(v, name, ShapeError) for v, name in zip((first, last, by), names, strict=True))
    if by == 0:
        raise ShapeError("arange with step 0", place=caller(), expected="a step that is not 0")
    whole = all(isinstance(v, int) for v in (first, last, by))
    d = as_dtype(dtype) if dtype is not None else DEFAULT_INT if whole else DEFAULT_FLOAT
    count = _count(first, last, by)
    if count == 0:
        return expanded(UOp.const(0, d), (0,))
    if dtype is None and whole:  # numbers of the default dtype do not wrap: RangeError instead
        constant(first + (count - 1) * by, d, device)
    if d.is_int:
        begin = constant(first, d, device)
        return _line(count, begin, UOp.const(math.trunc(first + by) - math.trunc(first), d))
    as_numpy = d is dtypes.f32 or d is dtypes.f64
    if _all_in_i64(first, by, count) and (whole or not as_numpy or _all_in_float(first, by, count, d)):
        return cast_to(_line(count, UOp.const(int(first), dtypes.i64), UOp.const(int(by), dtypes.i64)), d)
    return _floats(count, first, by, d) if as_numpy else cast_to(_line64(count, first, by), d)


def linspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any) -> UOp:
    """`num` evenly spaced numbers from start to stop (left out if not `endpoint`), rounded down for an integer dtype."""
    d = DEFAULT_FLOAT if dtype is None else as_dtype(dtype)
    first = float(finite(start, "the start of linspace", ShapeError))
    last = float(finite(stop, "the stop of linspace", ShapeError))
    if num == 0:
        return expanded(UOp.const(0, d), (0,))
    step = (last - first) / max(num - 1 if endpoint else num, 1)
    out = _line64(num, first, step)
    if endpoint and num > 1:  # exactly `stop`, in spite of rounding
        out = iota(num).eq(UOp.const(num - 1, dtypes.index)).where(UOp.const(last, dtypes.f64), out)
    return cast_to(UOp.new(Op.Floor, (out,)) if d.is_int else out, d)


def _count(first: Number, last: Number, by: Number) -> int:
    """The number of elements of a range; ShapeError above MOST."""
    if isinstance(first, int) and isinstance(last, int) and isinstance(by, int):
        count = -((first - last) // by)
    else:
        quotient = (float(last) - float(first)) / float(by)
        count = MOST + 1 if quotient > MOST else math.ceil(max(quotient, 0.0))
    if count > MOST:
        raise ShapeError("the range has too many numbers", place=caller(), expected=f"at most {MOST}")
    return max(0, count)


def _all_in_i64(first: Number, by: Number, count: int) -> bool:
    """True if all numbers of a range are integers that fit i64."""
    if first != int(first) or by != int(by):
        return False
    last = int(first) + (count - 1) * int(by)
    return all(DEFAULT_INT.min <= v <= DEFAULT_INT.max for v in (int(first), int(by), last))


def _all_in_float(first: Number, by: Number, count: int, d: DType) -> bool:
    """True if all numbers of a range of integers are exact in the float dtype `d`, and the first is not -0.0."""
    negative = float(first) == 0 and math.copysign(1.0, first) < 0
    return not negative and max(abs(first), abs(by), abs(first + (count - 1) * by)) <= 1 << FLOAT_FORMAT[d][0]


def _floats(count: int, first: Number, by: Number, d: DType) -> UOp:
    """A range at f32 or f64, as in NumPy: the first two numbers are rounded to `d`; number i is first + i * (second - first),
    with product and sum each rounded. Contraction to fused multiply-adds does not change it: see _times().
    """
    start = number.coerce(d, first)
    if count == 1:
        return expanded(UOp.const(start, d), (1,))
    second = number.coerce(d, first + by)
    step = number.coerce(d, second - start)
    at = iota(count)
    out = _times(at, count, step, d) + UOp.const(start, d)
    # for the first two numbers the formula may differ from NumPy: rounded twice, of another sign, NaN
    for i, exact in ((1, second), (0, start)):
        made = number.coerce(d, i * step + start)
        if not number.same_value(d, made, exact):
            out = at.eq(UOp.const(i, dtypes.index)).where(UOp.const(exact, d), out)
    return out


def _times(at: UOp, count: int, step: float, d: DType) -> UOp:
    """The integers `at`, below `count`, times `step`, each product rounded once to `d`: at f32 computed in f64; at f64 as the sum
    of two exact products. From count = 2^26 on, the smaller of these may be rounded, far below the last place of the sum.
    """
    if d is dtypes.f32:
        return cast_to(at.cast(d).cast(dtypes.f64) * UOp.const(step, dtypes.f64), d)
    spare = max(0, FLOAT_FORMAT[d][0] - (count - 1).bit_length())  # bits of a factor with exact products
    fraction, exponent = math.frexp(step)
    upper = math.ldexp(math.trunc(math.ldexp(fraction, spare)), exponent - spare) if math.isfinite(step) else step
    numbers = at.cast(d)
    out = numbers * UOp.const(upper, d)
    lower = step - upper if math.isfinite(step) else 0.0
    return out + numbers * UOp.const(lower, d) if lower else out


def _line64(count: int, first: Number, by: Number) -> UOp:
    return _line(count, UOp.const(float(first), dtypes.f64), UOp.const(float(by), dtypes.f64))


def _line(count: int, begin: UOp, step: UOp) -> UOp:
    """`count` numbers begin, begin + step, .., in the dtype of both."""
    out = iota(count).cast(begin.dtype)
    if step is not step.like(1):
        out = out * step
    return out if begin is begin.like(0) else out + begin
