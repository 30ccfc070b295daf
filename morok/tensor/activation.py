"""Activation functions, elementwise: the result has the operand's shape.

Integers become the default float; f16 and bf16 are computed as f32 and rounded once.
"""

from __future__ import annotations

import math
from typing import Final

from morok.arguments import choice
from morok.errors import DTypeError
from morok.tensor.base import AnyTensor
from morok.tensor.elementwise_operands import rounded_to, wide_float

# Constants under which SELU networks keep mean 0 and variance 1 (Klambauer et al. 2017).
_SELU_ALPHA: Final = 1.6732632423543772
_SELU_SCALE: Final = 1.0507009873554805


def relu(self: AnyTensor) -> AnyTensor:
    """max(x, 0) of each element, in self's shape and dtype.

    >>> Tensor([-1.0, 2.0]).relu().tolist()
    [0.0, 2.0]
    """
    return self.maximum(0)


def relu6(self: AnyTensor) -> AnyTensor:
    """min(max(x, 0), 6) of each element, in self's shape and dtype.

    >>> Tensor([-1.0, 2.0, 9.0]).relu6().tolist()
    [0.0, 2.0, 6.0]
    """
    return self.clip(0, 6)


def leaky_relu(self: AnyTensor, negative_slope: float = 0.01) -> AnyTensor:
    """x where it is positive, elsewhere x * negative_slope, in self's shape and float dtype (integers: f32).

    >>> Tensor([-2.0, 2.0]).leaky_relu(0.5).tolist()
    [-1.0, 2.0]
    """
    x = wide_float(self)
    return rounded_to((x > 0).where(x, x * negative_slope), self)


def elu(self: AnyTensor, alpha: float = 1.0) -> AnyTensor:
    """x where it is positive, elsewhere alpha * (exp(x) - 1), in self's shape and float dtype (integers: f32).

    >>> Tensor([float("-inf"), 2.0]).elu().tolist()
    [-1.0, 2.0]
    """
    x = wide_float(self)
    return rounded_to((x > 0).where(x, x.minimum(0).expm1() * alpha), self)


def celu(self: AnyTensor, alpha: float = 1.0) -> AnyTensor:
    """x where it is positive, elsewhere alpha * (exp(x / alpha) - 1), in self's shape and float dtype (integers: f32).

    >>> Tensor([float("-inf"), 2.0]).celu(2.0).tolist()
    [-2.0, 2.0]
    """
    x = wide_float(self)
    return rounded_to((x > 0).where(x, (x.minimum(0) / alpha).expm1() * alpha), self)


def selu(self: AnyTensor) -> AnyTensor:
    """elu() with the constants that keep mean and variance, in self's shape and float dtype (integers: f32).

    >>> Tensor([0.0]).selu().tolist()
    [0.0]
    """
    return rounded_to(wide_float(self).elu(_SELU_ALPHA) * _SELU_SCALE, self)


def sigmoid(self: AnyTensor) -> AnyTensor:
    """1 / (1 + exp(-x)) of each element, in self's shape and float dtype (integers: f32).

    >>> Tensor([0.0, 1000.0]).sigmoid().tolist()
    [0.5, 1.0]
    """
    return rounded_to((1.0 + (-wide_float(self)).exp()).reciprocal(), self)


def logsigmoid(self: AnyTensor) -> AnyTensor:
    """log(sigmoid(x)) of each element without underflow, in self's shape and float dtype (integers: f32).

    >>> Tensor([-1000.0]).logsigmoid().tolist()
    [-1000.0]
    """
    return -rounded_to((-wide_float(self)).softplus(), self)


def silu(self: AnyTensor) -> AnyTensor:
    """x * sigmoid(x) of each element, in self's shape and float dtype (integers: f32).

    >>> Tensor([0.0, 1000.0]).silu().tolist()
    [0.0, 1000.0]
    """
    x = wide_float(self)
    return rounded_to(x * x.sigmoid(), self)


def softplus(self: AnyTensor, beta: float = 1.0) -> AnyTensor:
    """log(1 + exp(beta * x)) / beta of each element without overflow, in self's shape and float dtype (integers: f32).

    >>> Tensor([1000.0]).softplus().tolist()
    [1000.0]
    """
    x = wide_float(self) * beta
    return rounded_to((x.maximum(0) + (-x.__abs__()).exp().log1p()) / beta, self)


def softsign(self: AnyTensor) -> AnyTensor:
    """x / (1 + |x|) of each element, in self's shape and float dtype (integers: f32).

    >>> Tensor([1.0, -3.0]).softsign().tolist()
    [0.5, -0.75]
    """
    x = wide_float(self)
    return rounded_to(x / (1.0 + x.__abs__()), self)


def mish(self: AnyTensor) -> AnyTensor:
    """x * tanh(softplus(x)) of each element, in self's shape and float dtype (integers: f32).

    >>> Tensor([0.0, 1000.0]).mish().tolist()
    [0.0, 1000.0]
    """
    x = wide_float(self)
    return rounded_to(x * x.softplus().tanh(), self)


def hardtanh(self: AnyTensor, min_val: float = -1.0, max_val: float = 1.0) -> AnyTensor:
    """x clipped to `min_val`..=`max_val`, in self's shape and float dtype (integers: f32).

    >>> Tensor([-5.0, 0.5, 5.0]).hardtanh().tolist()
    [-1.0, 0.5, 1.0]
    """
    return rounded_to(wide_float(self).clip(min_val, max_val), self)


def hardsigmoid(self: AnyTensor) -> AnyTensor:
    """relu6(x + 3) / 6 of each element, in self's shape and float dtype (integers: f32).

    >>> Tensor([-5.0, 0.0, 5.0]).hardsigmoid().tolist()
    [0.0, 0.5, 1.0]
    """
    return rounded_to((wide_float(self) + 3.0).relu6() / 6.0, self)


def hardswish(self: AnyTensor) -> AnyTensor:
    """x * relu6(x + 3) / 6 of each element, in self's shape and float dtype (integers: f32).

    >>> Tensor([-5.0, 0.0, 5.0]).hardswish().tolist()
    [-0.0, 0.0, 5.0]
    """
    x = wide_float(self)
    return rounded_to(x * (x + 3.0).relu6() / 6.0, self)


def gelu(self: AnyTensor, approximate: str = "none") -> AnyTensor:
    """x times the normal distribution's cumulative function, in self's shape and float dtype (integers: f32).

    approximate  "none", or "tanh": by the formula of Hendrycks and Gimpel 2016

    DTypeError for another `approximate`.

    >>> Tensor([0.0, 100.0]).gelu().tolist()
    [0.0, 100.0]
    """
    x = wide_float(self)
    if choice(approximate, "approximate", ("none", "tanh"), DTypeError) == "none":
        normal = (x * math.sqrt(0.5)).erf()
    else:
        normal = (math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)).tanh()
    return rounded_to(0.5 * x * (1.0 + normal), self)


def quick_gelu(self: AnyTensor) -> AnyTensor:
    """x * sigmoid(1.702 * x) of each element, in self's shape and float dtype (integers: f32).

    >>> Tensor([0.0, 100.0]).quick_gelu().tolist()
    [0.0, 100.0]
    """
    x = wide_float(self)
    return rounded_to(x * (x * 1.702).sigmoid(), self)
