"""Arithmetic of IEEE 754 formats on bit patterns, exact by way of fractions: what SMT-LIB says of the theory FloatingPoint.

There is one NaN. Rounding modes are SMT-LIB's: RNE, RTZ, RTP, RTN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Format:
    """A format, by the bits of its exponent and of its significand with the hidden one; values are their bits."""

    exponent: int
    significand: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def sign_bit(self) -> int:
        return 1 << (self.exponent + self.significand - 1)

    @property
    def nan(self) -> int:
        return self.infinity(False) | (1 << (self.significand - 2))

    def infinity(self, negative: bool) -> int:
        return (((1 << self.exponent) - 1) << (self.significand - 1)) | (self.sign_bit if negative else 0)

    def zero(self, negative: bool) -> int:
        return self.sign_bit if negative else 0

    def magnitude(self, a: int) -> int:
        return a & (self.sign_bit - 1)

    def negative(self, a: int) -> bool:
        return bool(a & self.sign_bit)

    def is_nan(self, a: int) -> bool:
        return self.magnitude(a) > self.infinity(False)

    def is_infinite(self, a: int) -> bool:
        return self.magnitude(a) == self.infinity(False)

    def is_zero(self, a: int) -> bool:
        return self.magnitude(a) == 0

    def is_finite(self, a: int) -> bool:
        return self.magnitude(a) < self.infinity(False)

    def canonical(self, a: int) -> int:
        """The pattern that stands for a value: of NaNs there is one."""
        return self.nan if self.is_nan(a) else a

    def exact(self, a: int) -> Fraction:
        """The number that a finite value is."""
        m = self.magnitude(a)
        e, f = m >> (self.significand - 1), m & ((1 << (self.significand - 1)) - 1)
        if e:
            f |= 1 << (self.significand - 1)
        scale = max(e, 1) - self.bias - (self.significand - 1)
        value = Fraction(f << scale) if scale >= 0 else Fraction(f, 1 << -scale)
        return -value if self.negative(a) else value

    def rounded(self, x: Fraction, mode: str, negative_zero: bool = False) -> int:
        """The value that a number is rounded to; `negative_zero` is the sign of an exact zero."""
        if not x:
            return self.zero(negative_zero)
        negative = x < 0
        size = abs(x)
        e = size.numerator.bit_length() - size.denominator.bit_length()
        if size < (Fraction(2) ** e):
            e -= 1
        e = max(e, 1 - self.bias)
        scale = e - (self.significand - 1)
        n, d = size.numerator, size.denominator
        whole, rest = divmod(n << -scale, d) if scale < 0 else divmod(n, d << scale)
        unit = d if scale < 0 else d << scale
        if _away(mode, negative, 2 * rest - unit, rest != 0, whole & 1 == 1):
            whole += 1
        bits = ((e + self.bias - 1) << (self.significand - 1)) + whole
        if bits >= self.infinity(False):
            if mode == "RTZ" or mode == ("RTN" if not negative else "RTP"):
                bits = self.infinity(False) - 1
            else:
                bits = self.infinity(False)
        return bits | (self.sign_bit if negative else 0)

    # arithmetic

    def add(self, mode: str, a: int, b: int) -> int:
        if self.is_nan(a) or self.is_nan(b):
            return self.nan
        if self.is_infinite(a) or self.is_infinite(b):
            if self.is_infinite(a) and self.is_infinite(b) and a != b:
                return self.nan
            return a if self.is_infinite(a) else b
        return self._sum(mode, self.exact(a), self.negative(a), self.exact(b), self.negative(b))

    def _sum(self, mode: str, x: Fraction, x_negative: bool, y: Fraction, y_negative: bool) -> int:
        """x + y: a zero that is no sum of two zeros of one sign is positive, but when rounding down."""
        sign = x_negative if not x and not y and x_negative == y_negative else mode == "RTN"
        return self.rounded(x + y, mode, sign)

    def sub(self, mode: str, a: int, b: int) -> int:
        return self.add(mode, a, self.neg(b))

    def mul(self, mode: str, a: int, b: int) -> int:
        negative = self.negative(a) != self.negative(b)
        if self.is_nan(a) or self.is_nan(b):
            return self.nan
        if self.is_infinite(a) or self.is_infinite(b):
            return self.nan if self.is_zero(a) or self.is_zero(b) else self.infinity(negative)
        return self.rounded(self.exact(a) * self.exact(b), mode, negative)

    def div(self, mode: str, a: int, b: int) -> int:
        negative = self.negative(a) != self.negative(b)
        if self.is_nan(a) or self.is_nan(b):
            return self.nan
        if self.is_infinite(a):
            return self.nan if self.is_infinite(b) else self.infinity(negative)
        if self.is_infinite(b):
            return self.zero(negative)
        if self.is_zero(b):
            return self.nan if self.is_zero(a) else self.infinity(negative)
        return self.rounded(self.exact(a) / self.exact(b), mode, negative)

    def fma(self, mode: str, a: int, b: int, c: int) -> int:
        """a * b + c, rounded once."""
        product = self.mul(mode, a, b)
        if self.is_nan(product) or not (self.is_finite(a) and self.is_finite(b) and self.is_finite(c)):
            infinite = self.is_infinite(a) or self.is_infinite(b)
            return self.add(mode, product, c) if infinite or self.is_nan(product) else self.canonical(c)
        negative = self.negative(a) != self.negative(b)
        return self._sum(mode, self.exact(a) * self.exact(b), negative, self.exact(c), self.negative(c))

    def sqrt(self, mode: str, a: int) -> int:
        if self.is_nan(a) or self.is_zero(a):
            return self.canonical(a)
        if self.negative(a):
            return self.nan
        if self.is_infinite(a):
            return a
        x = self.exact(a)
        # enough digits that what is cut off decides no rounding: no root lies half-way between two values
        digits = 2 * self.significand + self.bias + 8
        square = (x.numerator << (2 * digits)) // x.denominator
        root = math.isqrt(square)
        exact = root * root * x.denominator == x.numerator << (2 * digits)
        return self.rounded(Fraction(2 * root + (not exact), 1 << (digits + 1)), mode)

    def round_to_integral(self, mode: str, a: int) -> int:
        if not self.is_finite(a) or self.is_zero(a):
            return self.canonical(a)
        return self.rounded(Fraction(whole(self.exact(a), mode)), mode, self.negative(a))

    def neg(self, a: int) -> int:
        return self.nan if self.is_nan(a) else a ^ self.sign_bit

    def abs(self, a: int) -> int:
        return self.nan if self.is_nan(a) else self.magnitude(a)

    # order

    def less(self, a: int, b: int) -> bool:
        return not (self.is_nan(a) or self.is_nan(b)) and self._order(a) < self._order(b)

    def less_equal(self, a: int, b: int) -> bool:
        return not (self.is_nan(a) or self.is_nan(b)) and self._order(a) <= self._order(b)

    def equal(self, a: int, b: int) -> bool:
        """IEEE's equality: zeros are equal, NaN is not."""
        return not (self.is_nan(a) or self.is_nan(b)) and self._order(a) == self._order(b)

    def _order(self, a: int) -> int:
        return -self.magnitude(a) if self.negative(a) else a

    def converted(self, mode: str, a: int, to: Format) -> int:
        """The value in another format."""
        if self.is_nan(a):
            return to.nan
        if self.is_infinite(a):
            return to.infinity(self.negative(a))
        return to.rounded(self.exact(a), mode, self.negative(a))


def whole(x: Fraction, mode: str) -> int:
    """A number rounded to an integer."""
    down = abs(x).numerator // abs(x).denominator
    rest = abs(x) - down
    if _away(mode, x < 0, rest - (1 - rest), rest != 0, down & 1 == 1):
        down += 1
    return -down if x < 0 else down


def _away(mode: str, negative: bool, beyond_half: Fraction | int, inexact: bool, odd: bool) -> bool:
    """True if a magnitude that was cut off is rounded up; `beyond_half` is the rest compared with half a unit."""
    if mode == "RNE":
        return beyond_half > 0 or (beyond_half == 0 and odd and inexact)
    return inexact and mode == ("RTN" if negative else "RTP")
