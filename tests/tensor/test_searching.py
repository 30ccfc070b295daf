"""Places in sorted tensors, scattered elements, and distinct ones, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from morok import Tensor, dtypes
from morok.errors import ShapeError, UsageError

DTYPES = ["bool", "int8", "uint8", "int32", "uint64", "float16", "float32", "float64"]


def values(d: str, *shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 2 if d == "bool" else 20, shape).astype(d)


def agree(ours: Tensor, theirs: np.ndarray[Any, Any]) -> None:
    found = ours.numpy()
    assert (found.dtype, found.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_array_equal(found, theirs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8])
def test_searchsorted(n: int, side: Any) -> None:
    x = np.sort(values("int32", n))
    v = np.arange(-3, 27, dtype=np.int32).reshape(5, 6)
    agree(Tensor(x).searchsorted(Tensor(v), side), np.searchsorted(x, v, side))
    agree(Tensor(x).searchsorted(v + 0.5, side), np.searchsorted(x, v + 0.5, side))


@pytest.mark.long
@pytest.mark.parametrize("d", DTYPES)
def test_searchsorted_of_every_dtype(d: str) -> None:
    x = np.sort(values(d, 19))
    if d.startswith("float"):
        x = np.sort(np.concatenate([x, np.array([np.nan, np.inf, -np.inf, -0.0, 0.0], d)]))
    for side in ("left", "right"):
        agree(Tensor(x).searchsorted(Tensor(x[::-1].copy()), side), np.searchsorted(x, x[::-1], side))  # type: ignore[call-overload]


def test_searchsorted_of_what_it_cannot_search() -> None:
    with pytest.raises(ShapeError, match="searchsorted in shape"):
        Tensor(values("int32", 3, 3)).searchsorted([1])
    with pytest.raises(UsageError, match="side is 'middle'"):
        Tensor([1, 2]).searchsorted([1], "middle")
    assert Tensor([1, 2]).searchsorted(Tensor(np.zeros((0, 3), np.int64))).shape == (0, 3)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("d", DTYPES)
def test_scatter(d: str, axis: int) -> None:
    """The last of several writers of a place counts, as in NumPy."""
    x, n = values(d, 5, 4), (5, 4)[axis]
    shape = [5, 4]
    shape[axis] = 7
    at = np.random.default_rng(1).integers(-n, n, shape)
    v = values(d, *shape, seed=2)
    wanted = x.copy()
    np.put_along_axis(wanted, at, v, axis)
    agree(Tensor(x).scatter(axis, Tensor(at), Tensor(v)), wanted)
    agree(Tensor(x).scatter(axis, at, v.tolist()), wanted)
    np.put_along_axis(wanted, at, np.array(1).astype(d), axis)
    agree(Tensor(x).scatter(axis, at, True if d == "bool" else 1), wanted)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("d", DTYPES[1:])
def test_scatter_add(d: str) -> None:
    x, at, v = values(d, 3, 6), np.random.default_rng(1).integers(-6, 6, (3, 9)), values(d, 3, 9, seed=2)
    wanted = x.copy()
    for row in range(3):
        np.add.at(wanted[row], at[row], v[row])
    agree(Tensor(x).scatter_add(1, Tensor(at), Tensor(v)), wanted)
    one = np.full((3, 6), 0).astype(d)
    counts = np.stack([np.bincount(at[row] % 6, minlength=6) for row in range(3)]).astype(d)
    agree(Tensor(one).scatter_add(1, at, 1), counts)


def test_scatter_beside_the_axis_and_of_nothing() -> None:
    x = np.arange(5.0)
    agree(Tensor(x).scatter(0, Tensor([7, -9, 1]), Tensor([1.5, 2.5, 3.5])), np.array([0, 3.5, 2, 3, 4]))
    agree(Tensor(x).scatter_add(0, Tensor([7, -9, 1]), Tensor([1.5, 2.5, 3.5])), np.array([0, 4.5, 2, 3, 4]))
    nothing = Tensor(np.zeros(0, np.int64))
    agree(Tensor(x).scatter(0, nothing, nothing.cast(dtypes.f64)), x)
    agree(Tensor(x).scatter_add(0, nothing, nothing.cast(dtypes.f64)), x)
    agree(Tensor(np.zeros((0, 3))).scatter(0, np.zeros((0, 3), np.int64), 1.0), np.zeros((0, 3)))
    signed = Tensor([-0.0, -0.0]).scatter_add(0, [1], 1.0).numpy()
    assert np.signbit(signed).tolist() == [True, False]
    with pytest.raises(ShapeError, match="outside axis"):
        Tensor(x).scatter(0, [5], 1.0)
    with pytest.raises(ShapeError, match="scatter of shapes"):
        Tensor(x).scatter(0, [[1]], 1.0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(0,), (1,), (40,), (5, 7)], ids=str)
@pytest.mark.parametrize("d", ["bool", "int8", "uint64", "float32"])
def test_distinct_elements(d: str, shape: tuple[int, ...]) -> None:
    x = values(d, *shape)
    found = Tensor(x).unique_all()
    for ours, theirs in zip(found, np.unique_all(x), strict=True):
        agree(ours, theirs)
    agree(found.values.take(found.inverse_indices, 0), x)
    agree(Tensor(x).unique_values(), np.sort(np.unique_values(x)))
    for ours, theirs in zip(Tensor(x).unique_counts(), np.unique_counts(x), strict=True):
        agree(ours, theirs)
    for ours, theirs in zip(Tensor(x).unique_inverse(), np.unique_inverse(x), strict=True):
        agree(ours, theirs)


@pytest.mark.long
def test_every_nan_is_distinct() -> None:
    x = np.array([np.nan, 1.0, -0.0, np.nan, 0.0, 1.0], np.float32)
    found = Tensor(x).unique_all()
    assert found.counts.tolist() == [2, 2, 1, 1]
    assert found.inverse_indices.tolist() == [2, 1, 0, 3, 0, 1]
    assert found.indices.tolist() == [2, 1, 0, 3]
