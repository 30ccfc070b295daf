"""Stage 18: Exp2, Exp, Log2, Log and Tanh as polynomials in arithmetic that every target has, so that they vectorize.

Written for f32 and f64; narrower floats compute in f32. Accuracy (tests/passes/test_transcendental.py measures it): Exp2 and Exp
within 1 ulp, Log2 and Log within 2, Tanh within 3.5, subnormal results and operands included; infinities, zeros, NaN and
overflow as IEEE wants them. There are no branches and no conversions between floats and integers: a float plus 1.5 * 2^p, p the
bits of its fraction, has its nearest integer in its low bits (and NaN stays NaN all the way).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.target import Target
from morok.passes.walk import rebuild


@dataclass(frozen=True, slots=True)
class Format:
    """What the expansions need to know of a float format.

    exp_degree, log_terms, tanh_depth  lengths of the expansions: the first term left out is below half a unit in the last place
    split                              bits of ln 2 that its high part keeps, so that its product with an exponent is exact
    """

    bits: DType
    fraction: int
    bias: int
    exp_degree: int
    log_terms: int
    tanh_depth: int
    split: int

    @property
    def lowest(self) -> int:
        """An exponent whose power of two rounds to 0."""
        return -(self.bias + self.fraction + 2)


FORMATS: Final = {
    dtypes.f32: Format(dtypes.i32, 23, 127, 7, 5, 4, 12),
    dtypes.f64: Format(dtypes.i64, 52, 1023, 13, 11, 9, 32),
}
LN2: Final = math.log(2.0)
LOG2_E: Final = 1.0 / LN2
# ln 2 to 80 bits: its low part needs more than a double has.
LN2_EXACT: Final = Fraction(0xB17217F7D1CF79ABC9E3, 1 << 80)


def _like(x: UOp, value: float | int, d: DType | None = None) -> UOp:
    scalar = d or x.dtype.scalar()
    return UOp.const(value, scalar if x.dtype.count == 1 else scalar.vec(x.dtype.count))


def _bits(x: UOp, d: DType) -> UOp:
    return UOp.new(Op.Bitcast, (x,), dtype=d if x.dtype.count == 1 else d.vec(x.dtype.count))


def _polynomial(x: UOp, coefficients: list[float]) -> UOp:
    """The sum of coefficients[k] * x^k, by Horner's rule."""
    out = _like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        out = out * x + _like(x, c)
    return out


def _ln2_parts(f: Format) -> tuple[float, float]:
    high = Fraction(int(LN2_EXACT * (1 << f.split)), 1 << f.split)
    return float(high), float(LN2_EXACT - high)


def _power_of_two(k: UOp, f: Format, d: DType) -> UOp:
    """2^k for an integer k in the exponent range of normal numbers."""
    return _bits((k + _like(k, f.bias)) << _like(k, f.fraction), d)


def _scale(p: UOp, k: UOp, f: Format) -> UOp:
    """p * 2^k, rounded once: in two steps, each of which is a normal power of two."""
    d = p.dtype.scalar()
    half = k >> _like(k, 1)
    return p * _power_of_two(half, f, d) * _power_of_two(k - half, f, d)


def _clamp(x: UOp, low: float, high: float) -> UOp:
    return x.max(_like(x, low)).min(_like(x, high))


def _nearest(x: UOp, f: Format) -> tuple[UOp, UOp]:
    """The nearest integer of a small `x`, as a float and as an integer."""
    shifter = _like(x, 1.5 * 2.0**f.fraction)
    moved = x + shifter
    return moved - shifter, _bits(moved, f.bits) - _bits(shifter, f.bits)


def exp2(x: UOp, f: Format) -> UOp:
    x = _clamp(x, f.lowest, f.bias + 2)
    whole, k = _nearest(x, f)
    rest = x - whole
    return _scale(_polynomial(rest, [LN2**i / math.factorial(i) for i in range(f.exp_degree + 1)]), k, f)


def exp(x: UOp, f: Format) -> UOp:
    x = _clamp(x, f.lowest * LN2, (f.bias + 2) * LN2)
    whole, k = _nearest(x * _like(x, LOG2_E), f)
    high, low = _ln2_parts(f)
    rest = (x - whole * _like(x, high)) - whole * _like(x, low)
    return _scale(_polynomial(rest, [1 / math.factorial(i) for i in range(f.exp_degree + 1)]), k, f)


def _log_parts(x: UOp, f: Format) -> tuple[UOp, UOp]:
    """(e, rest) with log x = e * log 2 + rest, e a whole float, for positive finite x = 2^e * m, m near 1: rest = log m."""
    d = x.dtype.scalar()
    least = 2.0 ** (1 - f.bias)
    small = x < _like(x, least)
    up = f.fraction + 2
    scaled = small.where(x * _like(x, 2.0**up), x)
    bits = _bits(scaled, f.bits)
    # m in [sqrt(1/2), sqrt(2)): take the exponent relative to sqrt(1/2)
    offset = _bits(_like(x, math.sqrt(0.5)), f.bits)
    e = (bits - offset) >> _like(bits, f.fraction)
    m = _bits(bits - (e << _like(bits, f.fraction)), d)
    t = m - _like(x, 1.0)
    s = t / (t + _like(x, 2.0))  # log(1 + t) = 2 atanh s = t - s * (t - r)
    z = s * s
    r = z * _polynomial(z, [2 / (2 * i + 3) for i in range(f.log_terms)])
    e = e - small.where(_like(bits, up), _like(bits, 0))
    return e.cast(d), t - s * (t - r)


def _log_specials(x: UOp, value: UOp) -> UOp:
    infinity = _like(x, math.inf)
    out = (x < infinity).where(value, x)  # inf and NaN are their own logarithms
    out = x.eq(_like(x, 0.0)).where(_like(x, -math.inf), out)
    return (x < _like(x, 0.0)).where(_like(x, math.nan), out)


def log(x: UOp, f: Format) -> UOp:
    e, rest = _log_parts(x, f)
    high, low = _ln2_parts(f)
    return _log_specials(x, e * _like(x, high) + (rest + e * _like(x, low)))


def log2(x: UOp, f: Format) -> UOp:
    e, rest = _log_parts(x, f)
    return _log_specials(x, e + rest * _like(x, LOG2_E))


def _tanh_fraction(depth: int) -> tuple[list[float], list[float]]:
    """Numerator and denominator in z = x^2 of tanh(x) / x, Lambert's continued fraction 1 / (1 + z / (3 + z / (5 + ...)))."""
    above: list[int] = [1]
    below: list[int] = [2 * depth + 1]
    for k in reversed(range(depth)):
        # (2k + 1) + z / (below / above)
        grown = [(2 * k + 1) * b for b in below] + [0]
        for i, a in enumerate(above):
            if i + 1 >= len(grown):
                grown.append(0)
            grown[i + 1] += a
        above, below = below, grown
    while below[-1] == 0:
        below.pop()
    scale = below[0]
    return [a / scale for a in above], [b / scale for b in below]


def tanh(x: UOp, f: Format) -> UOp:
    """x times a continued fraction near 0, 1 - 2 / (e^(2|x|) + 1) with the sign of x elsewhere."""
    size = x.abs()
    z = x * x
    above, below = _tanh_fraction(f.tanh_depth)
    near = x * _polynomial(z, above) / _polynomial(z, below)
    one, two = _like(x, 1.0), _like(x, 2.0)
    far = one - two / (exp(size + size, f) + one)
    return (size < _like(x, 0.625)).where(near, (x < _like(x, 0.0)).where(-far, far))


EXPANSIONS: Final[dict[Op, Callable[[UOp, Format], UOp]]] = {
    Op.Exp2: exp2,
    Op.Exp: exp,
    Op.Log2: log2,
    Op.Log: log,
    Op.Tanh: tanh,
}


def expand_transcendental(root: UOp, target: Target) -> UOp:
    """`root` without those of the functions above that `target` lacks."""

    def visit(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        f = EXPANSIONS.get(node.op)
        if f is None or node.op not in target.unsupported:
            return None
        (x,) = src
        d = node.dtype.scalar()
        if d in FORMATS:
            return f(x, FORMATS[d])
        return f(x.cast(dtypes.f32), FORMATS[dtypes.f32]).cast(d)

    return rebuild(root, visit)
