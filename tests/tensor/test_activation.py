"""Activations and the functions behind them against NumPy in wider arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morok import Tensor, dtypes
from morok.errors import DTypeError

Array = np.ndarray[Any, Any]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def elu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def normal(x: Array) -> Array:
    return np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))(x.astype(float))


FORMULAS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": elu,
    "celu": elu,
    "selu": lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772),
    "sigmoid": sigmoid,
    "logsigmoid": lambda x: -softplus(-x),
    "silu": lambda x: x * sigmoid(x),
    "softplus": softplus,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "gelu": lambda x: x * normal(x),
    "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "tanh": np.tanh,
}
POINTS = [0.0, -0.0, 1.0, -1.0, 1e-3, -1e-3, 0.49, -0.51, 3.0, -3.0, 6.5, -8.0, 60.0, -60.0, np.nan, np.inf]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("d", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", FORMULAS)
def test_activations(name: str, d: str) -> None:
    x = np.array(POINTS, d)
    with np.errstate(all="ignore"):
        theirs = FORMULAS[name](x.astype(np.longdouble)).astype(np.float64)
    ours = getattr(Tensor(x), name)().numpy()
    assert ours.dtype == x.dtype
    step = float(np.finfo(x.dtype).eps)
    np.testing.assert_allclose(ours, theirs.astype(x.dtype), rtol=8 * step, atol=2 * step)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FORMULAS)
def test_integers_become_floats(name: str) -> None:
    x = np.array([-3, 0, 2], np.int16)
    ours = getattr(Tensor(x), name)()
    assert ours.dtype is (dtypes.i16 if name in ("relu", "relu6") else dtypes.f32)
    np.testing.assert_allclose(
        ours.numpy(), FORMULAS[name](x.astype(np.longdouble)).astype(float), rtol=1e-5, atol=1e-6
    )


def test_parameters() -> None:
    x = np.linspace(-4, 4, 33)
    t = Tensor(x)
    np.testing.assert_allclose(t.leaky_relu(0.2).numpy(), np.where(x > 0, x, 0.2 * x))
    np.testing.assert_allclose(t.elu(0.5).numpy(), elu(x, 0.5))
    np.testing.assert_allclose(t.celu(2.0).numpy(), np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0) / 2)))
    np.testing.assert_allclose(t.softplus(3.0).numpy(), softplus(3 * x) / 3)
    np.testing.assert_allclose(t.hardtanh(-2, 3).numpy(), np.clip(x, -2, 3))
    hendrycks = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(t.gelu("tanh").numpy(), hendrycks, atol=1e-15)
    with pytest.raises(DTypeError, match="'none' or 'tanh'"):
        t.gelu("exactly")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("d", ["float32", "float64"])
@pytest.mark.parametrize("name", ["expm1", "log1p"])
def test_small_arguments_keep_their_digits(name: str, d: str) -> None:
    rng = np.random.default_rng(1)
    x = (rng.uniform(0.1, 1, 300) * 10.0 ** rng.integers(-20, 1, 300) * rng.choice([-1, 1], 300)).astype(d)
    x = np.concatenate([x, np.array([0.0, -0.0, -1.0, 80.0, np.inf, np.nan], d)])
    with np.errstate(divide="ignore"):
        theirs = getattr(np, name)(x.astype(np.longdouble)).astype(d)
    ours = getattr(Tensor(x), name)().numpy()
    np.testing.assert_allclose(ours, theirs, rtol=2 * float(np.finfo(d).eps), atol=0)
    np.testing.assert_array_equal(np.signbit(ours[300:302]), [False, True])


def test_logaddexp() -> None:
    x = np.array([0.0, 1.0, -800.0, 800.0, np.inf, -np.inf, np.inf, -np.inf, np.nan, 1e-9])
    y = np.array([0.0, -2.0, -801.0, 790.0, np.inf, -np.inf, 3.0, 3.0, 1.0, -40.0])
    with np.errstate(invalid="ignore"):
        theirs = np.logaddexp(x, y)
    np.testing.assert_allclose(Tensor(x).logaddexp(Tensor(y)).numpy(), theirs, rtol=1e-15)
