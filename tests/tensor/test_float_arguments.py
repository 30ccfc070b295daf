"""Methods of f64 tensors with Python floats that f32 cannot hold: their formulas in f64, to a few units in the last place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morok import Tensor, dtypes

Array = np.ndarray[Any, Any]

X = np.array([[0.1, -1.1, 2.3, 0.7], [1.9, -0.3, 0.4, -2.7]])
V = 1.1  # which as f32 is off by 2e-8


def norm(x: Array, axis: int, eps: float) -> Array:
    centred = x - x.mean(axis, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis, keepdims=True) + eps)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


METHODS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Array]]] = {
    "pow": (lambda t: t.abs().pow(V), lambda x: np.abs(x) ** V),
    "rpow": (lambda t: V**t, lambda x: V**x),
    "div": (lambda t: t.div(V), lambda x: x / V),
    "rdiv": (lambda t: V / t, lambda x: V / x),
    "clip": (lambda t: t.clip(-0.3, V), lambda x: np.clip(x, -0.3, V)),
    "clamp": (lambda t: t.clamp(min=0.1), lambda x: np.maximum(x, 0.1)),
    "where": (lambda t: (t > V).where(V, 0.1), lambda x: np.float32(np.where(x > V, V, 0.1))),
    "masked_fill": (lambda t: t.masked_fill(t > 0, V), lambda x: np.where(x > 0, V, x)),
    "pad": (lambda t: t.pad([(0, 1), (1, 0)], V), lambda x: np.pad(x, [(0, 1), (1, 0)], constant_values=V)),
    "atan2": (lambda t: t.atan2(V), lambda x: np.arctan2(x, V)),
    "hypot": (lambda t: t.hypot(V), lambda x: np.hypot(x, V)),
    "logaddexp": (lambda t: t.logaddexp(V), lambda x: np.logaddexp(x, V)),
    "leaky_relu": (lambda t: t.leaky_relu(V), lambda x: np.where(x > 0, x, x * V)),
    "elu": (lambda t: t.elu(V), lambda x: np.where(x > 0, x, V * np.expm1(x))),
    "celu": (lambda t: t.celu(V), lambda x: np.where(x > 0, x, V * np.expm1(x / V))),
    "softplus": (lambda t: t.softplus(V), lambda x: np.log1p(np.exp(V * x)) / V),
    "hardtanh": (lambda t: t.hardtanh(-0.3, V), lambda x: np.clip(x, -0.3, V)),
    "vector_norm": (lambda t: t.vector_norm(1, ord=V), lambda x: (np.abs(x) ** V).sum(1) ** (1 / V)),
    "var": (lambda t: t.var(1, correction=V), lambda x: ((x - x.mean(1, keepdims=True)) ** 2).sum(1) / (4 - V)),
    "std": (
        lambda t: t.std(1, correction=V),
        lambda x: np.sqrt(((x - x.mean(1, keepdims=True)) ** 2).sum(1) / (4 - V)),
    ),
    "layernorm": (lambda t: t.layernorm(-1, eps=V), lambda x: norm(x, -1, V)),
    "rms_norm": (lambda t: t.rms_norm(-1, eps=V), lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + V)),
    "batchnorm": (lambda t: t.batchnorm(eps=V), lambda x: norm(x, 0, V)),
    "group_norm": (lambda t: t.group_norm(1, eps=V), lambda x: norm(x, 1, V)),
    "attention": (
        lambda t: t.scaled_dot_product_attention(t, t, scale=V),
        lambda x: softmax(x @ x.T * V) @ x,
    ),
    "cross_entropy": (
        lambda t: t.cross_entropy(Tensor([1, 2]), label_smoothing=0.1, reduction="none"),
        lambda x: -0.9 * np.log(softmax(x))[[0, 1], [1, 2]] - 0.1 * np.log(softmax(x)).mean(1),
    ),
    "mse_loss of a list": (lambda t: t.mse_loss([[V] * 4] * 2), lambda x: ((x - V) ** 2).mean()),
    "matmul of a list": (lambda t: t @ [V, 0.1, 1e300, -0.7], lambda x: x @ [V, 0.1, 1e300, -0.7]),
    "vecdot of a list": (lambda t: t.vecdot([V, 0.1, 0.3, -0.7]), lambda x: x @ [V, 0.1, 0.3, -0.7]),
    "scatter": (lambda t: t.scatter(1, [[0], [1]], V), lambda x: replaced(x, V)),
    "scatter_add": (lambda t: t.scatter_add(1, [[0], [1]], V), lambda x: replaced(x, x[[0, 1], [0, 1]] + V)),
    "full_like": (lambda t: t.full_like(V), lambda x: np.full_like(x, V)),
    "products": (lambda t: (t * V - 0.1) // V % 0.3, lambda x: (x * V - 0.1) // V % 0.3),
}


def replaced(x: Array, value: Any) -> Array:
    out = x.copy()
    out[[0, 1], [0, 1]] = value
    return out


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", METHODS)
def test_float_arguments(name: str) -> None:
    ours, theirs = METHODS[name]
    mine, expected = ours(Tensor(X)).numpy(), np.asarray(theirs(X))
    assert mine.dtype == expected.dtype
    np.testing.assert_allclose(mine, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.long
def test_random_numbers_between_floats() -> None:
    assert Tensor.uniform(3, low=V, high=V, dtype="f64").tolist() == [V] * 3
    assert Tensor.normal(3, mean=V, std=0.0, dtype="f64").tolist() == [V] * 3
    kept = Tensor(np.ones(64)).dropout(0.3).numpy()
    assert set(kept.tolist()) <= {0.0, 1.0 / 0.7}


def test_numbers_in_kernels_for_cuda() -> None:
    code = (Tensor(np.ones(3)) * V + 1e300).kernels(device="CUDA")[0].code
    assert "1.1" in code
    assert "1.10000002" not in code
    assert "1e+300" in code or "1e300" in code
    big = (Tensor(np.ones(3, np.uint64)) ^ (2**64 - 12345)).kernels(device="CUDA")[0].code
    assert str(2**64 - 12345) in big


def test_the_dtype_of_numbers_alone() -> None:
    assert (Tensor(2**63).dtype, Tensor(2**63 - 1).dtype, Tensor(-(2**63)).dtype) == (
        dtypes.u64,
        dtypes.i64,
        dtypes.i64,
    )
    assert Tensor(2**64 - 1).item() == np.array(2**64 - 1).item()
    assert Tensor(math.pi).dtype is dtypes.f32
