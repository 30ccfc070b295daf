"""Pooling against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import references
from hypothesis import given, settings
from hypothesis import strategies as st

from morok import Tensor
from morok.errors import ShapeError

pair = st.tuples(st.integers(1, 3), st.integers(1, 3))


@pytest.mark.long
@settings(max_examples=25)
@given(image=st.tuples(st.integers(3, 11), st.integers(3, 11)), size=pair, stride=st.none() | pair, pads=st.booleans())
def test_pooling_is_numpys(image: Any, size: Any, stride: Any, pads: bool) -> None:
    x = np.random.default_rng(3).integers(-9, 9, (2, 3, *image)).astype(np.float32)
    padding = (size[0] // 2, size[1] // 2) if pads else (0, 0)
    step = size if stride is None else stride

    def seen(value: float, y: np.ndarray[Any, Any] = x) -> np.ndarray[Any, Any]:
        return references.image_windows(references.padded(y, padding, value), size, step, (1, 1))

    ours = Tensor(x).max_pool2d(size, stride, padding)
    assert len(ours.schedule()) <= 1
    np.testing.assert_array_equal(ours.numpy(), seen(-np.inf).max((-2, -1)))
    total = seen(0).sum((-2, -1))
    np.testing.assert_allclose(Tensor(x).avg_pool2d(size, stride, padding).numpy(), total / np.prod(size), rtol=1e-6)
    ours = Tensor(x).avg_pool2d(size, stride, padding, count_include_pad=False)
    assert len(ours.schedule()) <= 1
    np.testing.assert_allclose(ours.numpy(), total / seen(0, np.ones_like(x)).sum((-2, -1)), rtol=1e-6)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("d", ["bool", "int8", "uint8", "int64", "float16", "float64"])
def test_dtypes(d: str) -> None:
    x = np.random.default_rng(5).integers(0 if d in ("bool", "uint8") else -9, 2, (5, 7)).astype(d)
    ours = Tensor(x).max_pool2d(3, 1, 1).numpy()
    assert ours.dtype == x.dtype
    lowest = False if d == "bool" else -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    padded = references.padded(x, (1, 1), lowest)
    np.testing.assert_array_equal(ours, references.image_windows(padded, (3, 3), (1, 1), (1, 1)).max((-2, -1)))
    mean = Tensor(x).avg_pool2d((5, 7)).numpy()
    assert mean.dtype == (x.dtype if x.dtype.kind == "f" else np.float32)
    np.testing.assert_allclose(mean, x.mean(dtype=np.float64), rtol=1e-3)


def test_no_number_is_the_greatest() -> None:
    x = np.array([[1, np.nan, 3, 4], [5, 6, -np.inf, -np.inf]], np.float32)
    np.testing.assert_array_equal(Tensor(x).max_pool2d((1, 2)).numpy(), [[np.nan, 4], [6, -np.inf]])


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda x: x.max_pool2d(0), "at least 1"),
        (lambda x: x.max_pool2d(2, -1), "at least 1"),
        (lambda x: x.max_pool2d(2, 1, 2), "half of the window"),
        (lambda x: x.avg_pool2d(5), "at least 5"),
        (lambda x: x[0].avg_pool2d(2), "two axes"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: Any, expected: str) -> None:
    with pytest.raises(ShapeError, match=expected):
        wrong(Tensor(np.zeros((4, 4), np.float32)))
