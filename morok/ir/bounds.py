"""Transfer functions of the bounds: from (vmin, vmax) of the operands to those of the result (ops.md, Bounds).

Each takes (dtype, src, arg) and returns bounds that hold for every lane wherever the value is defined and not Invalid.
-inf and inf mean unbounded; arithmetic on them never invents a finite bound. Float nodes are always unbounded. Bounds of
arithmetic on indices are within LIMIT, or infinite: otherwise their digits would grow with every product in a chain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from morok.ir.dtype import DType, inf

if TYPE_CHECKING:
    from morok.ir.op import Bounds
    from morok.ir.uop import UOp

Num = int | float
UNBOUNDED: Final = (-inf, inf)
FALSE: Final = (0, 0)
TRUE: Final = (1, 1)
EITHER: Final = (0, 1)
LIMIT: Final = 1 << 128  # the greatest bound of an index: a product of two 64-bit numbers, the widest machine integers


def limited(lo: Num, hi: Num) -> Bounds:
    """Bounds of an index that are no longer than LIMIT: an end beyond it is infinite, or LIMIT itself where that is weaker."""
    if lo >= -LIMIT and hi <= LIMIT:
        return lo, hi
    if lo.__class__ is not float:
        lo = -inf if lo < -LIMIT else min(lo, LIMIT)
    if hi.__class__ is not float:
        hi = inf if hi > LIMIT else max(hi, -LIMIT)
    return lo, hi


def fit(d: DType, lo: Num, hi: Num) -> Bounds:
    """Exact bounds as bounds of the wrapped value: the dtype's whole range where the exact one leaves it."""
    if d.is_index:
        return limited(lo, hi)
    if d.min <= lo and hi <= d.max:
        return lo, hi
    return d.min, d.max


def times(a: Num, b: Num) -> Num:
    """a * b with 0 * inf = 0, as bounds need it, and no overflow of an int into a float."""
    if a.__class__ is int and b.__class__ is int:
        return a * b
    if a == 0 or b == 0:
        return 0
    if isinstance(a, float) or isinstance(b, float):
        return inf if (a > 0) == (b > 0) else -inf
    return a * b


def plus(a: Num, b: Num) -> Num:
    if isinstance(a, float):
        return a
    if isinstance(b, float):
        return b
    return a + b


def tdiv(a: Num, b: Num) -> Num:
    """a / b truncated toward zero, for b != 0."""
    if isinstance(a, float):
        return a if b > 0 else -a
    if isinstance(b, float):
        return 0
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def fdiv(a: Num, b: Num) -> Num:
    """a / b rounded down, for b != 0."""
    if isinstance(a, float):
        return a if b > 0 else -a
    if isinstance(b, float):
        return 0 if a == 0 or (a > 0) == (b > 0) else -1
    return a // b


def add(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    if d.is_float:
        return UNBOUNDED
    a, b = src
    try:
        lo, hi = a.vmin + b.vmin, a.vmax + b.vmax
    except OverflowError:  # inf and a number that no float holds
        lo = hi = inf
    if lo.__class__ is float or hi.__class__ is float:
        lo, hi = plus(a.vmin, b.vmin), plus(a.vmax, b.vmax)
    if d.is_index:
        return (lo, hi) if lo >= -LIMIT and hi <= LIMIT else limited(lo, hi)
    return (lo, hi) if d.min <= lo and hi <= d.max else (d.min, d.max)


def sub(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    if d.is_float:
        return UNBOUNDED
    return fit(d, plus(a.vmin, -b.vmax), plus(a.vmax, -b.vmin))


def neg(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    if d.is_float:
        return UNBOUNDED
    return fit(d, -src[0].vmax, -src[0].vmin)


def mul(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    if d.is_float:
        return UNBOUNDED
    if a is b:  # a square
        lo, hi = sorted((times(a.vmin, a.vmin), times(a.vmax, a.vmax)))
        return fit(d, 0 if a.vmin <= 0 <= a.vmax else lo, hi)
    if a.vmin >= 0 and b.vmin >= 0:
        if d.is_index and a.vmax.__class__ is not float and b.vmax.__class__ is not float:
            return limited(a.vmin * b.vmin, a.vmax * b.vmax)
        return fit(d, times(a.vmin, b.vmin), times(a.vmax, b.vmax))
    corners = (times(a.vmin, b.vmin), times(a.vmin, b.vmax), times(a.vmax, b.vmin), times(a.vmax, b.vmax))
    return fit(d, min(corners), max(corners))


def _divisor_parts(lo: Num, hi: Num) -> list[tuple[Num, Num]]:
    """[lo, hi] without zero, as at most two intervals."""
    parts: list[tuple[Num, Num]] = []
    if lo < 0:
        parts.append((lo, min(hi, -1)))
    if hi > 0:
        parts.append((max(lo, 1), hi))
    return parts


def _quotient(divide: Any, d: DType, src: tuple[UOp, ...]) -> Bounds:
    a, b = src
    ends = [divide(x, y) for part in _divisor_parts(b.vmin, b.vmax) for x in (a.vmin, a.vmax) for y in part]
    if not ends or min(ends) > d.max:
        return d.min, d.max  # the divisor is 0, or INT_MIN / -1 is the only quotient: never defined
    # INT_MIN / -1 is the one quotient outside the dtype, and undefined there
    return max(min(ends), d.min), min(max(ends), d.max)


def _single(x: UOp) -> int:
    """The one value of `x`, or 0 where it may have several."""
    return x.vmin if x.vmin == x.vmax and isinstance(x.vmin, int) else 0


def _finite(x: UOp) -> bool:
    return not isinstance(x.vmin, float) and not isinstance(x.vmax, float)


def idiv(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    if a.vmax.__class__ is not float and b.vmax.__class__ is not float and a.vmin >= 0 and b.vmin > 0:  # the usual case
        return a.vmin // b.vmax, a.vmax // b.vmin
    return _quotient(tdiv, d, src)


def floordiv(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return _quotient(fdiv, d, src)


def mod(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    n = b.vmin
    lo, hi = a.vmin, a.vmax
    if hi.__class__ is not float and n.__class__ is not float and n == b.vmax and n > 0 and lo >= 0:  # the usual case
        q = lo // n
        return (lo - q * n, hi - q * n) if q == hi // n else (0, n - 1 if n <= hi else hi)
    n = _single(b)
    # all quotients are equal, so that dividend and remainder differ by a constant
    if n and _finite(a) and tdiv(a.vmin, n) == tdiv(a.vmax, n) and (a.vmin >= 0 or a.vmax <= 0):
        return a.vmin - tdiv(a.vmin, n) * n, a.vmax - tdiv(a.vmax, n) * n
    if b.vmin > 0 and -b.vmin < a.vmin and a.vmax < b.vmin:
        return a.vmin, a.vmax
    most = plus(max(abs(b.vmin), abs(b.vmax)), -1)
    if most < 0:
        return d.min, d.max  # the divisor is 0: never defined
    lo = 0 if a.vmin >= 0 else max(-most, a.vmin)
    hi = 0 if a.vmax <= 0 else min(most, a.vmax)
    return lo, hi


def floormod(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    n = _single(b)
    if n and _finite(a) and fdiv(a.vmin, n) == fdiv(a.vmax, n):
        return a.vmin - fdiv(a.vmin, n) * n, a.vmax - fdiv(a.vmax, n) * n
    lo: Num = plus(b.vmin, 1) if b.vmin < 0 else 0
    hi: Num = plus(b.vmax, -1) if b.vmax > 0 else 0
    if a.vmin >= 0 and b.vmin > 0:
        hi = min(hi, a.vmax)
        if a.vmax < b.vmin:
            lo = a.vmin
    return max(lo, d.min), min(hi, d.max)


def maximum(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    if d.is_float:
        return UNBOUNDED
    return max(src[0].vmin, src[1].vmin), max(src[0].vmax, src[1].vmax)


def minimum(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    if d.is_float:
        return UNBOUNDED
    return min(src[0].vmin, src[1].vmin), min(src[0].vmax, src[1].vmax)


def _digits(v: Num) -> int:
    """A bound of a fixed-width dtype, which is always finite."""
    assert not isinstance(v, float)
    return v


def bit_and(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    if a.vmin == a.vmax and b.vmin == b.vmax:
        v = _digits(a.vmin) & _digits(b.vmin)
        return v, v
    if a.vmin >= 0 and b.vmin >= 0:
        return 0, min(a.vmax, b.vmax)
    if a.vmin >= 0:
        return 0, a.vmax
    if b.vmin >= 0:
        return 0, b.vmax
    return d.min, d.max


def _all_ones(v: Num) -> int:
    return (1 << _digits(v).bit_length()) - 1


def bit_or(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    if a.vmin >= 0 and b.vmin >= 0:
        return max(a.vmin, b.vmin), _all_ones(max(a.vmax, b.vmax))
    return d.min, d.max


def bit_xor(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    if a.vmin == a.vmax and b.vmin == b.vmax:
        v = _digits(a.vmin) ^ _digits(b.vmin)
        return v, v
    if a.vmin >= 0 and b.vmin >= 0:
        return 0, _all_ones(max(a.vmax, b.vmax))
    return d.min, d.max


def bit_not(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a = src[0]
    if d.is_bool:
        return 1 - a.vmax, 1 - a.vmin
    top = -1 if d.is_signed else d.max
    return top - a.vmax, top - a.vmin


def shl(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    if b.vmin < 0 or b.vmax >= d.bits:
        return d.min, d.max
    lo = _digits(a.vmin) << _digits(b.vmin if a.vmin >= 0 else b.vmax)
    hi = _digits(a.vmax) << _digits(b.vmax if a.vmax >= 0 else b.vmin)
    return fit(d, lo, hi)


def shr(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    least, most = _digits(max(b.vmin, 0)), _digits(min(b.vmax, d.bits - 1))
    if least > most:
        return d.min, d.max  # never defined
    lo = _digits(a.vmin) >> (most if a.vmin >= 0 else least)
    hi = _digits(a.vmax) >> (least if a.vmax >= 0 else most)
    return lo, hi


def lt(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    return TRUE if a.vmax < b.vmin else FALSE if a.vmin >= b.vmax and _bounded(a, b) else EITHER


def le(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    return TRUE if a.vmax <= b.vmin and _bounded(a, b) else FALSE if a.vmin > b.vmax else EITHER


def gt(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return lt(d, (src[1], src[0]), arg)


def ge(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return le(d, (src[1], src[0]), arg)


def eq(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b = src
    if a.vmax < b.vmin or b.vmax < a.vmin:
        return FALSE
    return TRUE if a.vmin == a.vmax == b.vmin == b.vmax and _bounded(a, b) else EITHER


def ne(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    lo, hi = eq(d, src, arg)
    return 1 - hi, 1 - lo


def _bounded(a: UOp, b: UOp) -> bool:
    """True unless the operands are floats, whose bounds -inf and inf must decide no comparison."""
    return not a.dtype.is_float


def where(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    c, t, f = src
    if c.vmin == 1:
        return t.vmin, t.vmax
    if c.vmax == 0:
        return f.vmin, f.vmax
    # Invalid is no value: the bounds of Where(c, x, Invalid) are those of x
    if f.vmin > f.vmax:
        return t.vmin, t.vmax
    if t.vmin > t.vmax:
        return f.vmin, f.vmax
    return min(t.vmin, f.vmin), max(t.vmax, f.vmax)


def mulacc(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a, b, c = src
    if d.is_float:
        return UNBOUNDED
    corners = (times(a.vmin, b.vmin), times(a.vmin, b.vmax), times(a.vmax, b.vmin), times(a.vmax, b.vmax))
    return fit(d, plus(min(corners), c.vmin), plus(max(corners), c.vmax))


def same(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    """The bounds of the first operand: roundings of integers, wrappers."""
    return src[0].vmin, src[0].vmax


def absolute(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a = src[0]
    if d.is_float:
        return UNBOUNDED
    if a.vmin >= 0:
        return a.vmin, a.vmax
    return fit(d, 0 if a.vmax >= 0 else -a.vmax, max(-a.vmin, a.vmax))


def sign(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a = src[0]
    if d.is_float:
        return UNBOUNDED
    return (a.vmin > 0) - (a.vmin < 0), (a.vmax > 0) - (a.vmax < 0)


def square(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return mul(d, (src[0], src[0]), arg)


def cast(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    a = src[0]
    s = a.dtype
    if d.is_float:
        return UNBOUNDED
    if d.is_bool:
        if s.is_float:
            return EITHER
        if a.vmin > 0 or a.vmax < 0:
            return TRUE
        return FALSE if a.vmin == a.vmax == 0 else EITHER
    if s.is_float:
        return d.min, d.max
    if s.is_index:  # out of range is undefined, not wrapped
        lo, hi = max(a.vmin, d.min), min(a.vmax, d.max)
        return (lo, hi) if lo <= hi else (d.min, d.max)
    return fit(d, a.vmin, a.vmax)
