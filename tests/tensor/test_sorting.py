"""Orders against NumPy's stable sort: by counting, and by the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from morok import Tensor
from morok.errors import ShapeError

DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


def samples(d: str, n: int) -> np.ndarray[Any, Any]:
    """Values with ties, and those that orders get wrong."""
    rng = np.random.default_rng(n)
    if d == "bool":
        return rng.integers(0, 2, (2, n)).astype(d)
    x = rng.integers(0, 90, (2, n)).astype(d)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.0, -0.0, np.nan, -3.5]
    if x.dtype.kind != "f":
        special = [np.iinfo(d).max, np.iinfo(d).min, 0, np.iinfo(d).max]
    if n > len(special):
        x[0, : len(special)] = np.array(special, d)
    return x


@pytest.mark.sampled(5)
@pytest.mark.parametrize("n", [0, 1, 2, 37])
@pytest.mark.parametrize("d", DTYPES)
def test_short_axes(d: str, n: int) -> None:
    check(samples(d, n))


@pytest.mark.long
@pytest.mark.parametrize("d", ["int8", "uint64", "float32", "float64"])
def test_long_axes(d: str) -> None:
    check(samples(d, 1100))


def check(x: np.ndarray[Any, Any]) -> None:
    ours, order = Tensor(x).sort(-1)
    np.testing.assert_array_equal(ours.numpy(), np.sort(x, -1, kind="stable"))
    np.testing.assert_array_equal(order.numpy(), np.argsort(x, -1, kind="stable"))
    assert order.numpy().dtype == np.int64
    assert ours.numpy().tobytes() == np.take_along_axis(x, np.argsort(x, -1, kind="stable"), -1).tobytes()


def test_descending_orders_keep_ties_too() -> None:
    x = np.array([3, 1, 3, 2, 1], np.int32)
    values, order = Tensor(x).sort(descending=True)
    assert values.tolist() == [3, 3, 2, 1, 1]
    assert order.tolist() == [0, 2, 3, 1, 4]
    assert Tensor([1.0, float("nan"), 2.0]).argsort(descending=True).tolist() == [1, 2, 0]


def test_every_axis() -> None:
    x = np.random.default_rng(0).integers(0, 5, (4, 5, 6))
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(Tensor(x).argsort(axis).numpy(), np.argsort(x, axis, kind="stable"))


def test_topk() -> None:
    x = np.random.default_rng(0).permutation(60).reshape(3, 20)
    values, places = Tensor(x).topk(4, 1)
    np.testing.assert_array_equal(values.numpy(), np.sort(x, 1)[:, ::-1][:, :4])
    np.testing.assert_array_equal(np.take_along_axis(x, places.numpy(), 1), values.numpy())
    np.testing.assert_array_equal(Tensor(x).topk(2, 0, largest=False)[0].numpy(), np.sort(x, 0)[:2])
    for k in (-1, 21):
        with pytest.raises(ShapeError):
            Tensor(x).topk(k, 1)


def test_the_order_is_kept_for_who_asks_later() -> None:
    values, order = Tensor([3, 1, 2]).sort()
    values.realize()
    assert order.schedule() == []
    assert order.buffer is not None
    assert order.tolist() == [1, 2, 0]
