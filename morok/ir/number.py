"""Values of the scalar dtypes, as Python objects: wrapping, rounding, bits.

bool is True or False, an integer an int, a float a Python float already rounded to its dtype. There is one NaN.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any, Final

from morok.ir.dtype import FLOAT_FORMAT, DType, dtypes

NAN: Final = math.nan


def wrap(d: DType, v: int) -> int:
    """`v` modulo 2^bits, in the range of the integer dtype `d`; the identity at index."""
    if d.is_index or d.min <= v <= d.max:
        return v
    v &= (1 << d.bits) - 1
    return v - (1 << d.bits) if d.is_signed and v > d.max else v


def round_float(d: DType, v: float) -> float:
    """The double `v` rounded to the float dtype `d`, nearest even."""
    if d is dtypes.f64 or v == 0.0 or math.isinf(v):
        return _infinite(d, v) if math.isinf(v) else v
    if v != v:
        return NAN
    if d is dtypes.f32:
        try:
            return float(struct.unpack("<f", struct.pack("<f", v))[0])
        except OverflowError:
            return math.copysign(math.inf, v)
    precision, least, _ = FLOAT_FORMAT[d]
    unit = math.ldexp(1.0, max(math.frexp(v)[1] - precision, least))
    # division by a power of two is exact here, so `round` (half to even) is the only rounding
    out = math.copysign(round(v / unit) * unit, v)
    return _infinite(d, out) if abs(out) > _greatest(d) else out


def round_fraction(d: DType, v: Fraction) -> float:
    """The exact rational `v` rounded once to the float dtype `d`, nearest even."""
    if v == 0:
        return 0.0
    precision, least, _ = FLOAT_FORMAT[d]
    a = abs(v)
    exponent = a.numerator.bit_length() - a.denominator.bit_length()
    if Fraction(2) ** exponent > a:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, least)
    out = round(a / unit) * unit
    if out > Fraction(_greatest(d)):
        result = abs(_infinite(d, math.inf))
    else:
        result = float(out)
    return -result if v < 0 else result


def _greatest(d: DType) -> float:
    precision, _, greatest = FLOAT_FORMAT[d]
    if d is dtypes.f8e4m3:
        return 448.0  # its all-ones mantissa at the top exponent is NaN
    return (2.0 - 2.0 ** (1 - precision)) * 2.0**greatest


def _infinite(d: DType, v: float) -> float:
    """The value beyond the greatest finite one: an infinity, or NaN for e4m3, which has none."""
    return NAN if d is dtypes.f8e4m3 else math.copysign(math.inf, v)


def coerce(d: DType, v: Any) -> Any:
    """The Python value `v` as a value of scalar dtype `d`: wrapped, rounded, truncated as Cast does where that is defined."""
    if d.is_bool:
        return bool(v)
    if d.is_integral:
        return wrap(d, int(v))
    if d.is_float:
        if isinstance(v, int) and abs(v) > 1 << 53:
            return round_fraction(d, Fraction(v))
        v = float(v)
        return NAN if v != v else round_float(d, v)
    raise TypeError(f"{d} has no constants")


def key(d: DType, v: Any) -> Any:
    """A hashable that is equal for equal values of `d` and for no others: floats by their bits."""
    if d.is_float:
        return struct.pack("<d", NAN if v != v else v)
    return v


def same_value(d: DType, a: Any, b: Any) -> bool:
    """Equality as the rules mean it: bit equality, with all NaNs one value."""
    return bool(key(d, a) == key(d, b))


_PACKED: Final = {dtypes.f16: "<e", dtypes.f32: "<f", dtypes.f64: "<d"}


def to_bits(d: DType, v: Any) -> int:
    """The bits of a value of scalar dtype `d`, as an unsigned number; of NaN a quiet one."""
    if d.is_bool:
        return int(v)
    if d.is_int:
        return int(v) & ((1 << d.bits) - 1)
    if not d.is_float:
        raise TypeError(f"{d} has no bits")
    if d in _PACKED:
        return int.from_bytes(struct.pack(_PACKED[d], v), "little")
    sign = 1 if math.copysign(1.0, v) < 0 and v == v else 0
    precision, least, _ = FLOAT_FORMAT[d]
    width = precision - 1  # bits of the mantissa without the hidden one
    top = (1 << (d.bits - 1 - width)) - 1
    if v != v:
        body = top << width | (((1 << width) - 1) if d is dtypes.f8e4m3 else 1 << (width - 1))
    elif math.isinf(v):
        body = top << width
    else:
        unit = max(math.frexp(v)[1] - precision, least) if v else least
        mantissa = int(math.ldexp(abs(v), -unit))
        # a normal number's hidden bit adds the one that subnormals lack to the exponent field
        body = ((unit - least) << width) + mantissa
    return sign << (d.bits - 1) | body


def from_bits(d: DType, bits: int) -> Any:
    """The value of scalar dtype `d` with these bits."""
    if d.is_bool:
        return bool(bits)
    if d.is_int:
        return wrap(d, bits)
    if not d.is_float:
        raise TypeError(f"{d} has no bits")
    if d in _PACKED:
        v = float(struct.unpack(_PACKED[d], bits.to_bytes(d.bits // 8, "little"))[0])
        return NAN if v != v else v
    precision, least, _ = FLOAT_FORMAT[d]
    width = precision - 1
    top = (1 << (d.bits - 1 - width)) - 1
    sign = -1.0 if bits >> (d.bits - 1) & 1 else 1.0
    exponent = bits >> width & top
    mantissa = bits & ((1 << width) - 1)
    if d is dtypes.f8e4m3:
        if exponent == top and mantissa == (1 << width) - 1:
            return NAN
    elif exponent == top:
        return NAN if mantissa else sign * math.inf
    if exponent:
        mantissa |= 1 << width
    return sign * math.ldexp(mantissa, max(exponent - 1, 0) + least)
