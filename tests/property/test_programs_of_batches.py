"""Random programs over batches of positions, against NumPy in f64: what models of texts are made of, also rows that are gathered
and columns that hold one number in part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.programs import ERF
from morok import Tensor

Array = np.ndarray[Any, Any]
Pair = tuple[Tensor, Array]
Piece = Callable[[np.random.Generator, Pair, Pair], Pair | None]


def weights(rng: np.random.Generator, *shape: int) -> Pair:
    w = (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
    return Tensor(w), w.astype(np.float64)


def normalized(x: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def norm(rng: np.random.Generator, x: Pair, other: Pair) -> Pair:
    return x[0].layernorm(), normalized(x[1])


def linear(rng: np.random.Generator, x: Pair, other: Pair) -> Pair:
    w, v = weights(rng, int(rng.choice([4, 8, 12, 24])), x[1].shape[2])
    return x[0].linear(w), x[1] @ v.T


def gelu(rng: np.random.Generator, x: Pair, other: Pair) -> Pair:
    return x[0].gelu(), x[1] * 0.5 * (1 + ERF(x[1] / np.sqrt(2)))


def attention(rng: np.random.Generator, x: Pair, other: Pair) -> Pair:
    w, v = weights(rng, 3 * x[1].shape[2], x[1].shape[2])
    q, k, values = x[0].linear(w).chunk(3, 2)
    a, b, c = np.split(x[1] @ v.T, 3, 2)
    seen = np.tril(np.ones((x[1].shape[1],) * 2, bool))
    scores = np.where(seen, a @ b.swapaxes(1, 2) / np.sqrt(x[1].shape[2]), -np.inf)
    return q.scaled_dot_product_attention(k, values, is_causal=True), softmax(scores) @ c


def convolution(rng: np.random.Generator, x: Pair, other: Pair) -> Pair:
    w, v = weights(rng, int(rng.choice([4, 8])), x[1].shape[2], 3)
    around = np.pad(x[1], [(0, 0), (1, 1), (0, 0)])
    turned = x[0].permute(0, 2, 1).conv1d(w, padding=1).permute(0, 2, 1)
    return turned, sum(around[:, k : k + x[1].shape[1]] @ v[:, :, k].T for k in range(3))


def gather(rng: np.random.Generator, x: Pair, other: Pair) -> Pair:
    at = rng.integers(0, x[1].shape[1], int(rng.choice([2, 3, x[1].shape[1]])))
    return x[0].take(Tensor(at), 1), x[1].take(at, 1)


def scan(rng: np.random.Generator, x: Pair, other: Pair) -> Pair:
    return x[0].cumsum(1) / x[1].shape[1], x[1].cumsum(1) / x[1].shape[1]


def masked(rng: np.random.Generator, x: Pair, other: Pair) -> Pair:
    columns = x[1].shape[2]
    kept = int(rng.integers(0, columns + 1))
    return (Tensor.arange(columns) < kept).where(x[0], 0.5), np.where(np.arange(columns) < kept, x[1], 0.5)


def residual(rng: np.random.Generator, x: Pair, other: Pair) -> Pair | None:
    return (x[0] + other[0], x[1] + other[1]) if x[1].shape == other[1].shape else None


def joined(rng: np.random.Generator, x: Pair, other: Pair) -> Pair | None:
    if x[1].shape[1] != other[1].shape[1] or x[1].shape[2] + other[1].shape[2] > 40:
        return None
    return Tensor.concat([x[0], other[0]], 2), np.concatenate([x[1], other[1]], 2)


PIECES: Final[tuple[Piece, ...]] = (
    norm,
    linear,
    linear,
    gelu,
    attention,
    convolution,
    gather,
    scan,
    masked,
    residual,
    joined,
)


def agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(rng.choice(sizes)) for sizes in ((1, 2, 3), (2, 3, 5, 8, 12), (4, 8, 12, 16)))
    start = rng.standard_normal(shape).astype(np.float32)
    values: list[Pair] = [(Tensor(start), start.astype(np.float64))]
    for _ in range(int(rng.integers(3, 13))):
        x, other = values[max(0, len(values) - int(rng.integers(1, 4)))], values[int(rng.integers(len(values)))]
        made = PIECES[int(rng.integers(len(PIECES)))](rng, x, other)
        if made is not None:
            values.append(made)
    ours, theirs = values[-1]
    scale = max(1.0, float(np.abs(theirs).max()))
    np.testing.assert_allclose(ours.numpy() / scale, theirs / scale, rtol=0, atol=1e-5)


@pytest.mark.long
@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_values_are_numpys(seed: int) -> None:
    agree(seed)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", [0, 19, 103])
def test_values_are_numpys_of_a_few(seed: int) -> None:
    agree(seed)
