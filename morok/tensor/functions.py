"""Functions of one element: exponentials, logarithms, circular functions, roots, rounding.

Integers become the default float, but for rounding and tests, which leave them as they are.
"""

from __future__ import annotations

import math
from typing import Any, Final, Self

from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor.base import arithmetic
from morok.tensor.math import Math

_SIGNED: Final = {2: dtypes.i16, 4: dtypes.i32, 8: dtypes.i64}


class Functions(Math):
    """Functions of one element each: the result has the operand's shape."""

    __slots__ = ()

    def exp(self) -> Self:
        return self._unary(Op.Exp)

    def exp2(self) -> Self:
        return self._unary(Op.Exp2)

    def log(self) -> Self:
        return self._unary(Op.Log)

    def log2(self) -> Self:
        return self._unary(Op.Log2)

    def expm1(self) -> Self:
        """exp(x) - 1, accurate where x is near 0."""
        x = self._wide()
        u = x.exp()
        # both the numerator and the logarithm hold the rounding error of u, which cancels in their quotient
        near = (u - 1.0) * x / u.log()
        one = u.eq(1.0)
        far = one.where(x, u - 1.0)
        return (x.__abs__().__lt__(0.5) & ~one).where(near, far)._rounded_to(self)

    def log1p(self) -> Self:
        """log(1 + x), accurate where x is near 0."""
        x = self._wide()
        u = 1.0 + x
        near = u.log() * (x / (u - 1.0))
        return u.eq(1.0).where(x, x.__abs__().__lt__(0.5).where(near, u.log()))._rounded_to(self)

    def log10(self) -> Self:
        return self.log2() * math.log10(2.0)

    def sqrt(self) -> Self:
        return self._unary(Op.Sqrt)

    def rsqrt(self) -> Self:
        return self.sqrt().reciprocal()

    def sin(self) -> Self:
        return self._unary(Op.Sin)

    def cos(self) -> Self:
        return self._unary(Op.Cos)

    def tan(self) -> Self:
        return self._unary(Op.Tan)

    def tanh(self) -> Self:
        return self._unary(Op.Tanh)

    def erf(self) -> Self:
        return self._unary(Op.Erf)

    def reciprocal(self) -> Self:
        return self._unary(Op.Reciprocal)

    def square(self) -> Self:
        return self * self

    def sign(self) -> Self:
        """-1, 0 or 1; 0 also for -0, and NaN for NaN."""
        signs = self._numeric(Op.Sign)
        return signs + 0.0 if self.dtype.is_float else signs  # adding 0 turns -0 into 0 and nothing else into something else

    def _rounded(self, op: Op) -> Self:
        return self._like(UOp.new(op, (self.uop,))) if self.dtype.is_float else self._same()

    def floor(self) -> Self:
        return self._rounded(Op.Floor)

    def ceil(self) -> Self:
        return self._rounded(Op.Ceil)

    def trunc(self) -> Self:
        return self._rounded(Op.Trunc)

    def round(self) -> Self:
        """To the nearest integer, halves to the even one."""
        return self._rounded(Op.Round)

    def isnan(self) -> Self:
        return self.__ne__(self)

    def isinf(self) -> Self:
        return self.__abs__().__eq__(math.inf) if self.dtype.is_float else self.__ne__(self)

    def isfinite(self) -> Self:
        return self.__abs__().__lt__(math.inf) if self.dtype.is_float else self.__eq__(self)

    def signbit(self) -> Self:
        """Whether a number is negative, -0.0 and NaN's sign included."""
        if not self.dtype.is_float:
            return self.__lt__(0) if self.dtype.is_signed else self.__ne__(self)
        x = self.cast(arithmetic(self.dtype))
        return x.bitcast(_SIGNED[x.dtype.itemsize]).__lt__(0)

    def copysign(self, other: Any) -> Self:
        """The magnitude of x with the sign of y."""
        a, b = self._pair(other, False, "copysign")
        x, y = self._like(a), self._like(b)
        if not x.dtype.is_float:
            x, y = self._like(x._float()), self._like(y._float())
        return self._like(y.signbit().where(-x.abs(), x.abs()).uop)

    def logaddexp(self, other: Any) -> Self:
        """log(exp(x) + exp(y)), without overflow."""
        a, b = self._pair(other, False, "logaddexp")
        x, y = self._like(a)._wide(), self._like(b)._wide()
        high = x.maximum(y)
        # of equal infinities the difference is NaN, and the sum the infinity itself
        total = high + (-(x - y).__abs__()).exp().log1p()
        return x.eq(y).where(x + math.log(2.0), total)._rounded_to(self._like(a))
