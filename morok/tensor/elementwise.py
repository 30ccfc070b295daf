"""Elementwise functions: exponentials, logarithms, trigonometric and hyperbolic functions, roots, rounding.

The result has the operand's shape. Integers become the default float, except in rounding functions and tests such as isnan().
Inverse trigonometric, hyperbolic and inverse hyperbolic functions are composed of others, accurate to a few ulp.
"""

from __future__ import annotations

import math
from typing import Any, Final

from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor.base import AnyTensor, arithmetic
from morok.tensor.elementwise_operands import float_node, numeric, operands, rounded_to, unary, wide_float

_SIGNED: Final = {2: dtypes.i16, 4: dtypes.i32, 8: dtypes.i64}


def exp(self: AnyTensor) -> AnyTensor:
    """e**x of each element, in self's shape and float dtype (integers: f32); within 1 ulp at f32 and f64.

    >>> Tensor([0.0, float("-inf")]).exp().tolist()
    [1.0, 0.0]
    """
    return unary(self, Op.Exp)


def exp2(self: AnyTensor) -> AnyTensor:
    """2**x of each element, in self's shape and float dtype (integers: f32); within 1 ulp at f32 and f64.

    >>> Tensor([0.0, 3.0]).exp2().tolist()
    [1.0, 8.0]
    """
    return unary(self, Op.Exp2)


def log(self: AnyTensor) -> AnyTensor:
    """The natural logarithm of each element, in self's shape and float dtype (integers: f32); NaN below 0, -inf at 0.

    >>> Tensor([1.0, 0.0]).log().tolist()
    [0.0, -inf]
    """
    return unary(self, Op.Log)


def log2(self: AnyTensor) -> AnyTensor:
    """The binary logarithm of each element, in self's shape and float dtype (integers: f32); NaN below 0, -inf at 0.

    >>> Tensor([1.0, 8.0]).log2().tolist()
    [0.0, 3.0]
    """
    return unary(self, Op.Log2)


def expm1(self: AnyTensor) -> AnyTensor:
    """exp(x) - 1 of each element, in self's shape and float dtype (integers: f32), accurate also near 0.

    >>> (Tensor([1e-20]).expm1() > 0).item(), (Tensor([1e-20]).exp() - 1 > 0).item()
    (True, False)
    """
    x = wide_float(self)
    u = x.exp()
    # the numerator and the logarithm contain the same rounding error of u, which cancels in the quotient
    near = (u - 1.0) * x / u.log()
    one = u.eq(1.0)
    far = one.where(x, u - 1.0)
    return rounded_to((x.__abs__().__lt__(0.5) & ~one).where(near, far), self)


def log1p(self: AnyTensor) -> AnyTensor:
    """log(1 + x) of each element, in self's shape and float dtype (integers: f32), accurate also near 0.

    >>> (Tensor([1e-20]).log1p() > 0).item(), ((1 + Tensor([1e-20])).log() > 0).item()
    (True, False)
    """
    x = wide_float(self)
    u = 1.0 + x
    near = u.log() * (x / (u - 1.0))
    return rounded_to(u.eq(1.0).where(x, x.__abs__().__lt__(0.5).where(near, u.log())), self)


def log10(self: AnyTensor) -> AnyTensor:
    """The decimal logarithm of each element, in self's shape and float dtype (integers: f32); NaN below 0, -inf at 0.

    >>> Tensor([1.0, 100.0]).log10().tolist()
    [0.0, 2.0]
    """
    return self.log2() * math.log10(2.0)


def sqrt(self: AnyTensor) -> AnyTensor:
    """The square root of each element, correctly rounded, in self's shape and float dtype (integers: f32); NaN below 0.

    >>> Tensor([4.0, 9.0]).sqrt().tolist()
    [2.0, 3.0]
    """
    return unary(self, Op.Sqrt)


def rsqrt(self: AnyTensor) -> AnyTensor:
    """1 / sqrt(x) of each element, in self's shape and float dtype (integers: f32); NaN below 0, inf at 0.

    >>> Tensor([4.0, 16.0]).rsqrt().tolist()
    [0.5, 0.25]
    """
    return self.sqrt().reciprocal()


def sin(self: AnyTensor) -> AnyTensor:
    """The sine of each element in radians, in self's shape and float dtype (integers: f32); within 1 ulp at f32 and f64.

    >>> Tensor([0.0]).sin().tolist()
    [0.0]
    """
    return unary(self, Op.Sin)


def cos(self: AnyTensor) -> AnyTensor:
    """The cosine of each element in radians, in self's shape and float dtype (integers: f32); within 1 ulp at f32 and f64.

    >>> Tensor([0.0]).cos().tolist()
    [1.0]
    """
    return unary(self, Op.Cos)


def tan(self: AnyTensor) -> AnyTensor:
    """The tangent of each element in radians, in self's shape and float dtype (integers: f32); within 3.5 ulp at f32 and f64.

    >>> Tensor([0.0]).tan().tolist()
    [0.0]
    """
    return unary(self, Op.Tan)


def tanh(self: AnyTensor) -> AnyTensor:
    """The hyperbolic tangent of each element, in self's shape and float dtype (integers: f32); within 1.5 ulp at f32 and f64.

    >>> Tensor([0.0, 100.0]).tanh().tolist()
    [0.0, 1.0]
    """
    return unary(self, Op.Tanh)


def erf(self: AnyTensor) -> AnyTensor:
    """The error function of each element, in self's shape and float dtype (integers: f32); within 1.5 ulp at f32 and f64.

    >>> Tensor([0.0, 10.0]).erf().tolist()
    [0.0, 1.0]
    """
    return unary(self, Op.Erf)


def reciprocal(self: AnyTensor) -> AnyTensor:
    """1 / x of each element, in self's shape and float dtype (integers: f32); an infinity at 0.

    >>> Tensor([2, 4]).reciprocal().tolist()
    [0.5, 0.25]
    """
    return unary(self, Op.Reciprocal)


def square(self: AnyTensor) -> AnyTensor:
    """x * x of each element, in self's shape and dtype; integers wrap.

    >>> Tensor([2, -3]).square().tolist()
    [4, 9]
    """
    return self * self


def sign(self: AnyTensor) -> AnyTensor:
    """-1, 0 or 1 for each element, in self's shape and dtype; 0 also for -0.0, NaN for NaN. DTypeError for bools.

    >>> Tensor([-2.5, 0.0, 3.0]).sign().tolist()
    [-1.0, 0.0, 1.0]
    """
    signs = numeric(self, Op.Sign)
    return signs + 0.0 if self.dtype.is_float else signs  # adding 0 turns -0.0 into 0.0, and changes no other number


def _rounded(x: AnyTensor, op: Op) -> AnyTensor:
    return unary(x, op) if x.dtype.is_float else x._same()


def floor(self: AnyTensor) -> AnyTensor:
    """The greatest integer not above each element, in self's shape and dtype.

    >>> Tensor([1.5, -1.5]).floor().tolist()
    [1.0, -2.0]
    """
    return _rounded(self, Op.Floor)


def ceil(self: AnyTensor) -> AnyTensor:
    """The least integer not below each element, in self's shape and dtype.

    >>> Tensor([1.5, -1.5]).ceil().tolist()
    [2.0, -1.0]
    """
    return _rounded(self, Op.Ceil)


def trunc(self: AnyTensor) -> AnyTensor:
    """Each element without its fraction, in self's shape and dtype.

    >>> Tensor([1.5, -1.5]).trunc().tolist()
    [1.0, -1.0]
    """
    return _rounded(self, Op.Trunc)


def round(self: AnyTensor) -> AnyTensor:
    """The integer nearest to each element, ties to even, in self's shape and dtype.

    >>> Tensor([0.5, 1.5, -1.7]).round().tolist()
    [0.0, 2.0, -2.0]
    """
    return _rounded(self, Op.Round)


def isnan(self: AnyTensor) -> AnyTensor:
    """True where an element is NaN, as bool in self's shape.

    >>> Tensor([1.0, float("nan")]).isnan().tolist()
    [False, True]
    """
    return self.__ne__(self)


def isinf(self: AnyTensor) -> AnyTensor:
    """True where an element is infinite, as bool in self's shape.

    >>> Tensor([1.0, float("-inf")]).isinf().tolist()
    [False, True]
    """
    return self.__abs__().__eq__(math.inf) if self.dtype.is_float else self.__ne__(self)


def isfinite(self: AnyTensor) -> AnyTensor:
    """True where an element is neither infinite nor NaN, as bool in self's shape.

    >>> Tensor([1.0, float("inf")]).isfinite().tolist()
    [True, False]
    """
    return self.__abs__().__lt__(math.inf) if self.dtype.is_float else self.__eq__(self)


def signbit(self: AnyTensor) -> AnyTensor:
    """True where an element's sign is minus, -0.0 and negative NaNs included, as bool in self's shape.

    >>> Tensor([1.0, -0.0]).signbit().tolist()
    [False, True]
    """
    if not self.dtype.is_float:
        return self.__lt__(0) if self.dtype.is_signed else self.__ne__(self)
    x = self.cast(arithmetic(self.dtype))
    return x.bitcast(_SIGNED[x.dtype.itemsize]).__lt__(0)


def copysign(self: AnyTensor, other: Any) -> AnyTensor:
    """self's magnitude with other's sign, as floats: shapes broadcast, dtypes promote, two integers give f32.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1.0, -2.0]).copysign([-0.0, 3.0]).tolist()
    [-1.0, 2.0]
    """
    a, b = operands(self, other)
    x, y = self._like(a), self._like(b)
    if not x.dtype.is_float:
        x, y = self._like(float_node(x)), self._like(float_node(y))
    return self._like(y.signbit().where(-x.abs(), x.abs()).uop)


def logaddexp(self: AnyTensor, other: Any) -> AnyTensor:
    """log(exp(self) + exp(other)) without overflow, as floats: shapes broadcast, dtypes promote, two integers give f32.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1000.0]).logaddexp([0.0]).tolist()
    [1000.0]
    """
    a, b = operands(self, other)
    x, y = wide_float(self._like(a)), wide_float(self._like(b))
    high = x.maximum(y)
    # for two equal infinities, `total` would be NaN
    total = high + (-(x - y).__abs__()).exp().log1p()
    return rounded_to(x.eq(y).where(x + math.log(2.0), total), self._like(a))


# degree in x**2 of atan's power series for |x| < tan(pi / 16), by the bits of the float
_TERMS: Final = {32: 5, 64: 11}


def atan(self: AnyTensor) -> AnyTensor:
    """The angle in -pi/2..=pi/2 whose tangent is x, in radians, in self's shape and float dtype (integers: f32).

    >>> Tensor([0.0, float("inf")]).atan().tolist()
    [0.0, 1.5707963705062866]
    """
    x = wide_float(self)
    t = x.abs()
    # for t > 1: atan(t) = pi / 2 - atan(1 / t)
    far = t > 1.0
    near = far.where(t.reciprocal(), t)
    for _ in range(2):  # halve the angle twice
        near = near / (1.0 + (1.0 + near * near).sqrt())
    square = near * near
    terms = _TERMS[x.dtype.bits]
    series = square * 0.0 + (-1.0) ** terms / (2 * terms + 1)
    for k in range(terms - 1, -1, -1):
        series = series * square + (-1.0) ** k / (2 * k + 1)
    angle = _unless_tiny(t, near * series * 4.0)
    return rounded_to(far.where(math.pi / 2 - angle, angle).copysign(x), self)


def _unless_tiny(x: AnyTensor, angle: AnyTensor) -> AnyTensor:
    """`angle`, or x where its tangent and sine are x: halves of denormal numbers are not exact."""
    return (x.abs() < 2.0**-30).where(x, angle)


def asin(self: AnyTensor) -> AnyTensor:
    """The angle in -pi/2..=pi/2 whose sine is x, in radians, in self's shape and float dtype; NaN outside -1..=1.

    >>> Tensor([0.0, 2.0]).asin().tolist()
    [0.0, nan]
    """
    x = wide_float(self)
    return rounded_to(_unless_tiny(x, (x / (1.0 + ((1.0 - x) * (1.0 + x)).sqrt())).atan() * 2.0), self)


def acos(self: AnyTensor) -> AnyTensor:
    """The angle in 0..=pi whose cosine is x, in radians, in self's shape and float dtype; NaN outside -1..=1.

    >>> Tensor([1.0, 2.0]).acos().tolist()
    [0.0, nan]
    """
    x = wide_float(self)
    return rounded_to(((1.0 - x) / (1.0 + x)).sqrt().atan() * 2.0, self)


def atan2(self: AnyTensor, other: Any) -> AnyTensor:
    """The angle in -pi..=pi of the point (other, self), in radians: shapes broadcast, dtypes promote.

    Signed zeros and infinities give the results of C's atan2. ShapeError unless the shapes broadcast, DeviceError for a
    tensor of another device.

    >>> Tensor([0.0, 1.0]).atan2([1.0, 0.0]).tolist()
    [0.0, 1.5707963705062866]
    """
    a, b = operands(self, other)
    y, x = wide_float(self._like(a)), wide_float(self._like(b))
    both = y.isinf() & x.isinf()
    # treat two infinities as two ones, and two zeros as (1, 0)
    quotient = both.where(1.0, (y.eq(0) & x.eq(0)).where(0.0, (y / x).abs()))
    angle = quotient.atan()
    return rounded_to(x.signbit().where(math.pi - angle, angle).copysign(y), self._like(a))


def sinh(self: AnyTensor) -> AnyTensor:
    """(exp(x) - exp(-x)) / 2 of each element, in self's shape and float dtype (integers: f32).

    >>> Tensor([0.0]).sinh().tolist()
    [0.0]
    """
    x = wide_float(self)
    t = x.abs()
    e, half = t.expm1(), (t * 0.5).exp()
    return rounded_to((t < 30.0).where((e + e / (e + 1.0)) * 0.5, half * 0.5 * half).copysign(x), self)


def cosh(self: AnyTensor) -> AnyTensor:
    """(exp(x) + exp(-x)) / 2 of each element, in self's shape and float dtype (integers: f32).

    >>> Tensor([0.0]).cosh().tolist()
    [1.0]
    """
    half = (wide_float(self).abs() * 0.5).exp()
    return rounded_to(half * 0.5 * half + half.reciprocal() * 0.5 * half.reciprocal(), self)


def asinh(self: AnyTensor) -> AnyTensor:
    """The inverse hyperbolic sine of each element, in self's shape and float dtype (integers: f32).

    >>> Tensor([0.0]).asinh().tolist()
    [0.0]
    """
    x = wide_float(self)
    t = x.abs()
    near = (t + t * t / (1.0 + (t * t + 1.0).sqrt())).log1p()
    return rounded_to((t < 1e9).where(near, t.log() + math.log(2.0)).copysign(x), self)


def acosh(self: AnyTensor) -> AnyTensor:
    """The inverse hyperbolic cosine >= 0 of each element, in self's shape and float dtype (integers: f32); NaN below 1.

    >>> Tensor([1.0, 0.5]).acosh().tolist()
    [0.0, nan]
    """
    x = wide_float(self)
    t = x - 1.0
    near = (t + t.sqrt() * (t + 2.0).sqrt()).log1p()
    return rounded_to((x > 1e9).where(x.log() + math.log(2.0), near), self)


def atanh(self: AnyTensor) -> AnyTensor:
    """The inverse hyperbolic tangent of each element, in self's shape and float dtype (integers: f32); NaN outside -1..=1.

    >>> Tensor([0.0, 1.0]).atanh().tolist()
    [0.0, inf]
    """
    x = wide_float(self)
    t = x.abs()
    return rounded_to(((2.0 * t / (1.0 - t)).log1p() * 0.5).copysign(x), self)


def hypot(self: AnyTensor, other: Any) -> AnyTensor:
    """sqrt(self**2 + other**2) without overflow, as floats: shapes broadcast, dtypes promote, two integers give f32.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([3.0, 1e30]).hypot([4.0, 0.0]).tolist()
    [5.0, 1.0000000150474662e+30]
    """
    a, b = operands(self, other)
    x, y = wide_float(self._like(a)).abs(), wide_float(self._like(b)).abs()
    high, low = x.maximum(y), x.minimum(y)
    ratio = (high.eq(low) | high.eq(0)).where(high.eq(low).where(1.0, 0.0), low / high)
    out = high * (1.0 + ratio * ratio).sqrt()
    return rounded_to((x.isinf() | y.isinf()).where(x._like(UOp.const(math.inf, x.dtype)), out), self._like(a))
