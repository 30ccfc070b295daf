"""Functions made of others: inverse circular, hyperbolic and inverse hyperbolic. Within a few units in the last place.

Functions of one element each: the result has the operand's shape. Integers become the default float.
"""

from __future__ import annotations

import math
from typing import Any, Final

from morok.ir.uop import UOp
from morok.tensor.base import AnyTensor
from morok.tensor.operands import operands, rounded_to, wide_float

_TERMS: Final = {32: 5, 64: 11}  # of atan's power series below tan(pi / 16), by the width of the float


def atan(self: AnyTensor) -> AnyTensor:
    """The angle in -pi/2..=pi/2 whose tangent is x, in radians, in self's shape and float dtype (integers: f32).

    >>> Tensor([0.0, float("inf")]).atan().tolist()
    [0.0, 1.5707963705062866]
    """
    x = wide_float(self)
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
    return rounded_to(far.where(math.pi / 2 - angle, angle).copysign(x), self)


def asin(self: AnyTensor) -> AnyTensor:
    """The angle in -pi/2..=pi/2 whose sine is x, in radians, in self's shape and float dtype; NaN outside -1..=1.

    >>> Tensor([0.0, 2.0]).asin().tolist()
    [0.0, nan]
    """
    x = wide_float(self)
    return rounded_to((x / (1.0 + ((1.0 - x) * (1.0 + x)).sqrt())).atan() * 2.0, self)


def acos(self: AnyTensor) -> AnyTensor:
    """The angle in 0..=pi whose cosine is x, in radians, in self's shape and float dtype; NaN outside -1..=1.

    >>> Tensor([1.0, 2.0]).acos().tolist()
    [0.0, nan]
    """
    x = wide_float(self)
    return rounded_to(((1.0 - x) / (1.0 + x)).sqrt().atan() * 2.0, self)


def atan2(self: AnyTensor, other: Any) -> AnyTensor:
    """The angle in -pi..=pi of the point (other, self), in radians, as C's atan2: shapes broadcast, dtypes promote.

    Signed zeros and infinities included. ShapeError unless the shapes broadcast, DeviceError for a tensor of another
    device.

    >>> Tensor([0.0, 1.0]).atan2([1.0, 0.0]).tolist()
    [0.0, 1.5707963705062866]
    """
    a, b = operands(self, other, False, "atan2")
    y, x = wide_float(self._like(a)), wide_float(self._like(b))
    both = y.isinf() & x.isinf()
    # two infinities as two ones; two zeros have the angle of (1, 0)
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
    """The number whose sinh is x, of each element, in self's shape and float dtype (integers: f32).

    >>> Tensor([0.0]).asinh().tolist()
    [0.0]
    """
    x = wide_float(self)
    t = x.abs()
    near = (t + t * t / (1.0 + (t * t + 1.0).sqrt())).log1p()
    return rounded_to((t < 1e9).where(near, t.log() + math.log(2.0)).copysign(x), self)


def acosh(self: AnyTensor) -> AnyTensor:
    """The number from 0 up whose cosh is x, of each element, in self's shape and float dtype (integers: f32); NaN below 1.

    >>> Tensor([1.0, 0.5]).acosh().tolist()
    [0.0, nan]
    """
    x = wide_float(self)
    t = x - 1.0
    near = (t + t.sqrt() * (t + 2.0).sqrt()).log1p()
    return rounded_to((x > 1e9).where(x.log() + math.log(2.0), near), self)


def atanh(self: AnyTensor) -> AnyTensor:
    """The number whose tanh is x, of each element, in self's shape and float dtype (integers: f32); NaN outside -1..=1.

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
    a, b = operands(self, other, False, "hypot")
    x, y = wide_float(self._like(a)).abs(), wide_float(self._like(b)).abs()
    high, low = x.maximum(y), x.minimum(y)
    ratio = (high.eq(low) | high.eq(0)).where(high.eq(low).where(1.0, 0.0), low / high)
    out = high * (1.0 + ratio * ratio).sqrt()
    return rounded_to((x.isinf() | y.isinf()).where(x._like(UOp.const(math.inf, x.dtype)), out), self._like(a))
