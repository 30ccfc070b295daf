"""Elementary functions of floats, correctly rounded, for constant folding (ops.md).

The double that the C library gives is near enough to decide the rounding to a narrower dtype almost always. Where it is
too near a rounding boundary, and for f64, the value is computed in decimal arithmetic, with twice the digits each time,
until its whole error interval rounds to one float (Ziv's strategy). That terminates: apart from the cases that are computed
exactly here, no value of these functions lies half-way between two floats.
"""

from __future__ import annotations

import decimal
import functools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from morok.ir.dtype import DType, dtypes
from morok.ir.number import NAN, key, round_float, round_fraction

_ERROR: Final = 2.0**-48  # relative; a C library that is 16 units in the last place off is still covered
_TINY: Final = 2.0**-900  # below it a double may have lost bits; every narrower dtype rounds it to zero
_START: Final = 34  # decimal digits of the first attempt
_GUARD: Final = 30  # digits beyond those promised: near multiples of pi/2 a double's sine loses twenty

Approximation = Callable[[float], float]
Digits = Callable[[Decimal, int], Decimal]


def ziv(d: DType, near: float, digits: Callable[[int], Decimal]) -> float:
    """The value that `digits(p)` gives with relative error below 10**(2-p), rounded once to `d`; `near`: its approximation."""
    if d is not dtypes.f64 and math.isfinite(near):
        if abs(near) < _TINY:
            return math.copysign(0.0, near)
        error = abs(near) * _ERROR
        low, high = round_float(d, near - error), round_float(d, near + error)
        if key(d, low) == key(d, high):
            return low
    p = _START
    while True:
        with decimal.localcontext(_context(p + _GUARD)):
            v = digits(p)
            error_ = abs(v).scaleb(3 - p)
            bounds = Fraction(v - error_), Fraction(v + error_)
        low, high = round_fraction(d, bounds[0]), round_fraction(d, bounds[1])
        if key(d, low) == key(d, high):
            return low
        p *= 2


def _context(digits: int) -> decimal.Context:
    return decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.InvalidOperation])


# Constants


@functools.lru_cache(maxsize=16)
def _pi(digits: int) -> Decimal:
    """Pi, by Machin's formula in integers."""
    one: int = 10 ** (digits + 10)

    def arctan_inverse(n: int) -> int:
        power = total = one // n
        k, sign = 1, 1
        while power:
            power //= n * n
            k, sign = k + 2, -sign
            total += sign * (power // k)
        return total

    value = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    return Decimal(value).scaleb(-(digits + 10), _context(digits + 20))


# Series


def _sine_cosine(x: Decimal, p: int) -> tuple[Decimal, Decimal]:
    """(sin x, cos x), x reduced by multiples of pi/2 with as many digits of pi as the size of x requires."""
    prec = p + _GUARD + max(0, x.adjusted()) + 5
    with decimal.localcontext(_context(prec)):
        half = _pi(1 << (prec - 1).bit_length()) / 2
        k = (x / half).to_integral_value(decimal.ROUND_HALF_EVEN)
        r = x - k * half
    with decimal.localcontext(_context(p + _GUARD)):
        s, c = _series(r, 1), _series(r, 0)
    quadrant = int(k) % 4
    return ((s, c), (c, -s), (-s, -c), (-c, s))[quadrant]


def _series(r: Decimal, first: int) -> Decimal:
    """sum of (-1)^n r^(2n + first) / (2n + first)!: the sine for first = 1, the cosine for 0; |r| < 1."""
    term = total = r if first else Decimal(1)
    square = r * r
    n = first
    end = decimal.getcontext().prec + 2
    while term and term.adjusted() > total.adjusted() - end:
        term = -term * square / ((n + 1) * (n + 2))
        total += term
        n += 2
    return total


def _tanh(x: Decimal, p: int) -> Decimal:
    # 1 - exp(-2x) cancels for small x, by as many digits as x has zeros
    with decimal.localcontext(_context(p + _GUARD + 2 * max(0, -x.adjusted()))):
        e = (-2 * abs(x)).exp()
        return ((1 - e) / (1 + e)).copy_sign(x)


def _erf(x: Decimal, p: int) -> Decimal:
    """2 / sqrt(pi) * exp(-x*x) * sum of 2^n x^(2n+1) / (1 * 3 * .. * (2n+1)): all terms of one sign."""
    if x * x > 3 * (p + _GUARD):
        return Decimal(1).copy_sign(x)  # 1 - erf x is below exp(-x*x)
    term = total = x
    square = 2 * x * x
    n = 1
    while term.adjusted() > total.adjusted() - p - _GUARD:
        n += 2
        term = term * square / n
        total += term
    return 2 / _pi(p + _GUARD).sqrt() * (-x * x).exp() * total


def _sine(x: Decimal, p: int) -> Decimal:
    return _sine_cosine(x, p)[0]


def _cosine(x: Decimal, p: int) -> Decimal:
    return _sine_cosine(x, p)[1]


def _tangent(x: Decimal, p: int) -> Decimal:
    s, c = _sine_cosine(x, p)
    return s / c


# The functions: `a` is a value of `d`.


def _odd(near: Approximation, digits: Digits, at_infinity: float) -> Callable[[DType, float], float]:
    """The evaluator of an odd function: f(+0) = +0, f(-0) = -0, f(inf) = `at_infinity`."""

    def evaluate(d: DType, a: float) -> float:
        if a != a:
            return NAN
        if a == 0:
            return a
        if math.isinf(a):
            return NAN if at_infinity != at_infinity else math.copysign(at_infinity, a)
        return ziv(d, near(a), lambda p: digits(Decimal(a), p))

    return evaluate


sin: Final = _odd(math.sin, _sine, NAN)
tan: Final = _odd(math.tan, _tangent, NAN)
_tanh_near_zero: Final = _odd(math.tanh, _tanh, 1.0)
_erf_near_zero: Final = _odd(math.erf, _erf, 1.0)


def tanh(d: DType, a: float) -> float:
    return math.copysign(1.0, a) if abs(a) > 40 else _tanh_near_zero(d, a)


def erf(d: DType, a: float) -> float:
    return math.copysign(1.0, a) if abs(a) > 10 else _erf_near_zero(d, a)


def cos(d: DType, a: float) -> float:
    if not math.isfinite(a):
        return NAN
    return 1.0 if a == 0 else ziv(d, math.cos(a), lambda p: _cosine(Decimal(a), p))


def exp(d: DType, a: float) -> float:
    if a != a:
        return NAN
    if abs(a) > 800:
        return math.inf if a > 0 else 0.0
    return 1.0 if a == 0 else ziv(d, _double(math.exp, a), lambda p: Decimal(a).exp())


def exp2(d: DType, a: float) -> float:
    if a != a:
        return NAN
    if abs(a) > 1200:
        return math.inf if a > 0 else 0.0
    if a.is_integer():
        return round_fraction(d, Fraction(2) ** int(a))
    return ziv(d, _double(lambda x: 2.0**x, a), lambda p: (Decimal(a) * Decimal(2).ln()).exp())


def _logarithm(near: Approximation, digits: Callable[[Decimal], Decimal]) -> Callable[[DType, float], float]:
    def evaluate(d: DType, a: float) -> float:
        if a != a or a < 0:
            return NAN
        if a == 0:
            return -math.inf
        if math.isinf(a):
            return a
        return 0.0 if a == 1 else ziv(d, near(a), lambda p: digits(Decimal(a)))

    return evaluate


log: Final = _logarithm(math.log, lambda x: x.ln())
log2: Final = _logarithm(math.log2, lambda x: x.ln() / Decimal(2).ln())


def rsqrt(d: DType, a: float) -> float:
    if a == 0:
        return math.copysign(math.inf, a)
    if a != a or a < 0:
        return NAN
    if math.isinf(a):
        return 0.0
    return ziv(d, 1.0 / math.sqrt(a), lambda p: 1 / Decimal(a).sqrt())


def _double(f: Approximation, a: float) -> float:
    try:
        return f(a)
    except OverflowError:
        return math.inf


def power(d: DType, a: float, b: float) -> float:
    """C's pow with its special cases, correctly rounded elsewhere."""
    try:
        near = math.pow(a, b)
    except ValueError:  # a negative base with a fractional exponent, or 0 to a negative one
        return NAN if a != 0 else math.copysign(math.inf, a) if _is_odd(b) else math.inf
    except OverflowError:
        near = -math.inf if a < 0 and _is_odd(b) else math.inf
    if not math.isfinite(a) or not math.isfinite(b) or a == 0 or b == 0 or a == 1:
        return NAN if near != near else near
    sign = -1 if a < 0 and _is_odd(b) else 1
    scale = b * math.log2(abs(a))
    if abs(scale) > 1200:
        return sign * (math.inf if scale > 0 else 0.0)
    exact = _exact_power(abs(a), b)
    if exact is not None:
        return round_fraction(d, sign * exact)
    return ziv(d, near, lambda p: sign * (Decimal(b) * Decimal(abs(a)).ln()).exp())


def _is_odd(b: float) -> bool:
    return b.is_integer() and int(b) % 2 == 1


def _exact_power(a: float, b: float) -> Fraction | None:
    """a**b if it is a rational number of few bits, else None; no other power lies half-way between two floats."""
    base, exponent = Fraction(a), Fraction(b)
    while exponent.denominator > 1:  # a power of two
        top, bottom = math.isqrt(base.numerator), math.isqrt(base.denominator)
        if top * top != base.numerator or bottom * bottom != base.denominator:
            return None
        base, exponent = Fraction(top, bottom), exponent * 2
    n = int(exponent)
    odd = base.numerator if base.numerator > 1 else base.denominator
    odd >>= (odd & -odd).bit_length() - 1
    # an odd factor of many bits makes a power of more bits than any float, or half-way point, has
    return base**n if odd == 1 or abs(n) <= 64 else None


# Values of small error, to measure computations that are not correctly rounded.


def _power_digits(a: Decimal, b: Decimal, p: int) -> Decimal:
    sign = -1 if a < 0 and b % 2 != 0 else 1
    return sign * (b * abs(a).ln()).exp()


_DIGITS: Final[dict[str, Callable[..., Decimal]]] = {
    "Exp2": lambda x, p: (x * Decimal(2).ln()).exp(),
    "Exp": lambda x, p: x.exp(),
    "Log2": lambda x, p: x.ln() / Decimal(2).ln(),
    "Log": lambda x, p: x.ln(),
    "Sin": _sine,
    "Cos": _cosine,
    "Tan": _tangent,
    "Tanh": _tanh,
    "Erf": _erf,
    "Pow": _power_digits,
}


def value(op: str, operands: Sequence[float]) -> Fraction:
    """The value of the function called `op`, its relative error below 2^-100; the operands are finite and in its domain."""
    with decimal.localcontext(_context(_START + _GUARD)):
        return Fraction(_DIGITS[op](*(Decimal(x) for x in operands), _START))
