"""Normalisations and attention against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from morok import Tensor
from morok.errors import DTypeError, ShapeError

Array = np.ndarray[Any, Any]


def data(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def normed(x: Array, axes: int | tuple[int, ...]) -> Array:
    x = x.astype(np.float64)
    out: Array = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    return out


def close(ours: Tensor, theirs: Array, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=tolerance, atol=tolerance)


def test_layernorm() -> None:
    x, w, b = data(4, 7, 13), data(13, seed=1), data(13, seed=2)
    close(Tensor(x).layernorm(), normed(x, -1))
    close(Tensor(x).layernorm(weight=Tensor(w), bias=Tensor(b)), normed(x, -1) * w + b)
    close(Tensor(x).layernorm((-2, -1)), normed(x, (-2, -1)))
    close(Tensor(x * 1000 + 50000).layernorm(), normed(x * 1000 + 50000, -1), 1e-4)
    half = Tensor((x * 100).astype(np.float16)).layernorm()
    assert half.numpy().dtype == np.float16
    close(half, normed((x * 100).astype(np.float16), -1), 2e-3)


def test_rms_norm() -> None:
    x, w = data(5, 11), data(11, seed=1)
    close(Tensor(x).rms_norm(weight=Tensor(w)), x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w)


def test_batchnorm() -> None:
    x, (w, b, m), v = data(4, 6, 3, 5), data(3, 6, seed=1), data(6, seed=2) ** 2
    along = (None, slice(None), None, None)
    inference = Tensor(x).batchnorm(Tensor(w), Tensor(b), Tensor(m), Tensor(v))
    assert len(inference.schedule()) == 1
    close(inference, (x - m[along]) / np.sqrt(v[along] + 1e-5) * w[along] + b[along])
    close(Tensor(x).batchnorm(Tensor(w), Tensor(b)), normed(x, (0, 2, 3)) * w[along] + b[along])
    close(Tensor(x).batchnorm(axis=-1), normed(x, (0, 1, 2)))
    var = x.var((0, 2, 3))  # around the mean of x, whatever mean is given
    close(Tensor(x).batchnorm(mean=Tensor(m)), (x - m[along]) / np.sqrt(var[along] + 1e-5))
    with pytest.raises(ShapeError, match=r"\(6,\)"):
        Tensor(x).batchnorm(Tensor(w[:5]))
    with pytest.raises(ShapeError, match="axis 4"):
        Tensor(x).batchnorm(axis=4)


def test_group_norm() -> None:
    x, w, b = data(2, 6, 4, 3), data(6, seed=1), data(6, seed=2)
    theirs = normed(x.reshape(2, 3, 2, 4, 3), (2, 3, 4)).reshape(x.shape) * w[:, None, None] + b[:, None, None]
    close(Tensor(x).group_norm(3, weight=Tensor(w), bias=Tensor(b)), theirs)
    for groups, expected in ((4, "divisor of 6"), (0, "at least 1")):
        with pytest.raises(ShapeError, match=expected):
            Tensor(x).group_norm(groups)


def attention(q: Array, k: Array, v: Array, mask: Array, scale: float) -> Array:
    scores = (q @ k.swapaxes(-1, -2)).astype(np.float64) * scale + mask
    e = np.exp(scores - scores.max(-1, keepdims=True))
    out: Array = e / e.sum(-1, keepdims=True) @ v
    return out


@pytest.mark.long
def test_attention() -> None:
    q, k, v = data(2, 3, 7, 8), data(2, 3, 11, 8, seed=1), data(2, 3, 11, 5, seed=2)
    a, b, c = Tensor(q), Tensor(k), Tensor(v)
    scale = 8**-0.5
    plain = a.scaled_dot_product_attention(b, c)
    assert len(plain.schedule()) <= 4
    close(plain, attention(q, k, v, np.zeros(()), scale))
    causal = np.where(np.arange(11) <= np.arange(7)[:, None], 0, -np.inf)
    close(a.scaled_dot_product_attention(b, c, is_causal=True), attention(q, k, v, causal, scale))
    seen = data(7, 11, seed=3) > -0.5
    close(a.scaled_dot_product_attention(b, c, Tensor(seen)), attention(q, k, v, np.where(seen, 0, -np.inf), scale))
    added = data(3, 7, 11, seed=4)
    close(a.scaled_dot_product_attention(b, c, Tensor(added), scale=0.3), attention(q, k, v, added, 0.3))


def test_a_query_that_sees_nothing_has_no_number() -> None:
    q = data(2, 4)
    out = Tensor(q).scaled_dot_product_attention(Tensor(q), Tensor(q), Tensor([[True, True], [False, False]])).numpy()
    assert np.isfinite(out[0]).all()
    assert np.isnan(out[1]).all()


def test_what_does_not_fit_is_refused() -> None:
    q = Tensor(data(2, 4))
    for key, value in ((q[:, :3], q), (q, q[:1]), (q[0], q)):
        with pytest.raises(ShapeError, match="attention of query"):
            q.scaled_dot_product_attention(key, value)
    with pytest.raises(DTypeError, match="both attn_mask and is_causal"):
        q.scaled_dot_product_attention(q, q, q @ q.T, is_causal=True)
    with pytest.raises(DTypeError, match="tensors"):
        q.scaled_dot_product_attention(q.numpy(), q)  # type: ignore[arg-type]
