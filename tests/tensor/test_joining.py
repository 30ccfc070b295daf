"""Joining, splitting and repeating against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from morok import Tensor
from morok.errors import DTypeError, ShapeError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def agree(ours: Tensor, theirs: Any) -> None:
    assert ours.shape == theirs.shape
    assert ours.numpy().dtype == theirs.dtype
    np.testing.assert_array_equal(ours.numpy(), theirs)


def test_joining() -> None:
    t, more = Tensor(X), X[:, :1].astype(np.float64)
    agree(Tensor.concat([t, Tensor(more), t], 1), np.concatenate([X, more, X], 1))
    agree(Tensor.concat([t, Tensor(more)], None), np.concatenate([X, more], None))
    agree(t.cat(t, axis=-1), np.concatenate([X, X], -1))
    agree(Tensor.concat([t[:, :0], t], 1), X)
    for axis in (0, 1, 3, -1, -4):
        agree(Tensor.stack([t, t + 1], axis), np.stack([X, X + 1], axis))


def test_splitting() -> None:
    for ours, theirs in [
        (Tensor(X).split(2, 2), np.split(X, 2, 2)),
        (Tensor(X).split([1, 0, 2], 1), np.split(X, [1, 1], 1)),
        (Tensor(X).split(3, -1), np.split(X, [3], -1)),
        (Tensor(X).chunk(3, 2), np.split(X, [2], 2)),
        (Tensor(X).unstack(1), [X[:, k] for k in range(3)]),
    ]:
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            agree(a, b)


def test_repeating() -> None:
    for counts in ((2,), (2, 1, 3), (2, 1, 1, 2), (0,), ()):
        agree(Tensor(X).tile(*counts), np.tile(X, counts))
    agree(Tensor(X).repeat(2), np.repeat(X, 2))
    agree(Tensor(X).repeat(3, 1), np.repeat(X, 3, 1))
    for shift, axis in [(1, 0), (-1, 2), (5, 1), ((1, -2), (0, 2)), (7, None), (0, 1)]:
        agree(Tensor(X).roll(shift, axis), np.roll(X, shift, axis))
    agree(Tensor(X[:0]).roll(1, 0), X[:0])


def test_grids() -> None:
    a, b, c = np.arange(2), np.arange(3.0), np.arange(4)
    for indexing in ("xy", "ij"):
        for ours, theirs in zip(
            Tensor.meshgrid(Tensor(a), Tensor(b), Tensor(c), indexing=indexing),
            np.meshgrid(a, b, c, indexing=indexing),
            strict=True,
        ):
            agree(ours, theirs)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t: Tensor.concat([]),
        lambda t: Tensor.concat(t),
        lambda t: Tensor.cat([t, t]),
        lambda t: Tensor.concat([t, t[0]]),
        lambda t: Tensor.concat([t, t[:, 1:]], 2),
        lambda t: Tensor.concat([t, t], 3),
        lambda t: Tensor.stack([t, t[0]]),
        lambda t: Tensor.stack([t], 5),
        lambda t: t.split(0),
        lambda t: t.split([1, 2]),
        lambda t: t.split([3, -1]),
        lambda t: t.chunk(0),
        lambda t: t.tile(-1),
        lambda t: t.repeat(-1),
        lambda t: t.repeat(1.5),
        lambda t: t.roll(1, 3),
        lambda t: t.roll((1, 2), (0,)),
        lambda t: Tensor.meshgrid(t),
        lambda t: Tensor.meshgrid(t[0, 0], indexing="yx"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: Any) -> None:
    with pytest.raises(ShapeError) as caught:
        wrong(Tensor(X))
    assert caught.value.expected
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_other_things_than_tensors_are_refused() -> None:
    with pytest.raises(DTypeError, match="tensors"):
        Tensor.concat([Tensor(X), X])  # type: ignore[list-item]
