"""Functions made of others: inverse circular, hyperbolic and inverse hyperbolic. Within a few units in the last place."""

from __future__ import annotations

import math
from typing import Any, Final, Self

from morok.ir.uop import UOp
from morok.tensor.functions import Functions

_TERMS: Final = {32: 5, 64: 11}  # of atan's power series below tan(pi / 16), by the width of the float


class Hyperbolic(Functions):
    """Functions of one element each: the result has the operand's shape. Integers become the default float."""

    __slots__ = ()

    def atan(self) -> Self:
        """The angle in -pi/2..=pi/2 whose tangent is x."""
        x = self._wide()
        t = x.abs()
        # a long way out the rest of a right angle
        far = t > 1.0
        near = far.where(t.reciprocal(), t)
        for _ in range(2):  # half the angle, twice
            near = near / (1.0 + (1.0 + near * near).sqrt())
        square = near * near
        terms = _TERMS[x.dtype.bits]
        series = square * 0.0 + (-1.0) ** terms / (2 * terms + 1)
        for k in range(terms - 1, -1, -1):
            series = series * square + (-1.0) ** k / (2 * k + 1)
        angle = near * series * 4.0
        return far.where(math.pi / 2 - angle, angle).copysign(x)._rounded_to(self)

    def asin(self) -> Self:
        """The angle in -pi/2..=pi/2 whose sine is x; NaN outside -1..=1."""
        x = self._wide()
        return ((x / (1.0 + ((1.0 - x) * (1.0 + x)).sqrt())).atan() * 2.0)._rounded_to(self)

    def acos(self) -> Self:
        """The angle in 0..=pi whose cosine is x; NaN outside -1..=1."""
        x = self._wide()
        return (((1.0 - x) / (1.0 + x)).sqrt().atan() * 2.0)._rounded_to(self)

    def atan2(self, other: Any) -> Self:
        """The angle in -pi..=pi of the point (other, self), as C's atan2 has it, signed zeros and infinities included."""
        a, b = self._pair(other, False, "atan2")
        y, x = self._like(a)._wide(), self._like(b)._wide()
        both = y.isinf() & x.isinf()
        # two infinities as two ones; two zeros have the angle of (1, 0)
        quotient = both.where(1.0, (y.eq(0) & x.eq(0)).where(0.0, (y / x).abs()))
        angle = quotient.atan()
        return x.signbit().where(math.pi - angle, angle).copysign(y)._rounded_to(self._like(a))

    def sinh(self) -> Self:
        """(exp(x) - exp(-x)) / 2."""
        x = self._wide()
        t = x.abs()
        e, half = t.expm1(), (t * 0.5).exp()
        return (t < 30.0).where((e + e / (e + 1.0)) * 0.5, half * 0.5 * half).copysign(x)._rounded_to(self)

    def cosh(self) -> Self:
        """(exp(x) + exp(-x)) / 2."""
        half = (self._wide().abs() * 0.5).exp()
        return (half * 0.5 * half + half.reciprocal() * 0.5 * half.reciprocal())._rounded_to(self)

    def asinh(self) -> Self:
        """The number whose sinh is x."""
        x = self._wide()
        t = x.abs()
        near = (t + t * t / (1.0 + (t * t + 1.0).sqrt())).log1p()
        return (t < 1e9).where(near, t.log() + math.log(2.0)).copysign(x)._rounded_to(self)

    def acosh(self) -> Self:
        """The number that is not negative whose cosh is x; NaN below 1."""
        x = self._wide()
        t = x - 1.0
        near = (t + t.sqrt() * (t + 2.0).sqrt()).log1p()
        return (x > 1e9).where(x.log() + math.log(2.0), near)._rounded_to(self)

    def atanh(self) -> Self:
        """The number whose tanh is x; NaN outside -1..=1."""
        x = self._wide()
        t = x.abs()
        return ((2.0 * t / (1.0 - t)).log1p() * 0.5).copysign(x)._rounded_to(self)

    def hypot(self, other: Any) -> Self:
        """sqrt(x^2 + y^2), without overflow."""
        a, b = self._pair(other, False, "hypot")
        x, y = self._like(a)._wide().abs(), self._like(b)._wide().abs()
        high, low = x.maximum(y), x.minimum(y)
        ratio = (high.eq(low) | high.eq(0)).where(high.eq(low).where(1.0, 0.0), low / high)
        out = high * (1.0 + ratio * ratio).sqrt()
        return (x.isinf() | y.isinf()).where(x._like(UOp.const(math.inf, x.dtype)), out)._rounded_to(self._like(a))
