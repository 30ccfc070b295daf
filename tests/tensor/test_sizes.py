"""Sizes that no tensor can have are refused where the tensor is described."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from morok import Tensor
from morok.errors import ShapeError

MADE: list[Callable[..., Tensor]] = [
    Tensor.zeros,
    Tensor.ones,
    Tensor.empty,
    Tensor.rand,
    Tensor.normal,
    Tensor.uniform,
]
MADE += [Tensor.randint, lambda *shape: Tensor.full(shape, 2.0)]


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("shape", [(-1,), (2, -3), (-2, -3), (0, -1)])
def test_no_size_is_negative(made: Callable[..., Tensor], shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="sizes of at least 0"):
        made(*shape)


def test_numbers_of_rows_and_values() -> None:
    wrongs: list[Callable[[], Tensor]] = [
        lambda: Tensor.eye(-1),
        lambda: Tensor.eye(2, -1),
        lambda: Tensor.linspace(0, 1, -1),
    ]
    for wrong in wrongs:
        with pytest.raises(ShapeError, match="at least 0"):
            wrong()
    assert Tensor.eye(0).shape == (0, 0)
    assert Tensor.linspace(0, 1, 0).numpy().shape == (0,)


@pytest.mark.parametrize("edges", [3, None, 1.5])
def test_edges_are_pairs(edges: Any) -> None:
    wrongs: list[Callable[[], Tensor]] = [lambda: Tensor([1, 2]).pad(edges), lambda: Tensor([1, 2]).shrink(edges)]
    for wrong in wrongs:
        with pytest.raises(ShapeError, match="list of pairs"):
            wrong()


@pytest.mark.parametrize("shape", [(1,) * 65, (0,) * 100, (0, 2**63), (0, 2**61)])
def test_shapes_that_no_array_has_are_errors(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="no ndarray has shape"):
        Tensor.zeros(*shape).numpy()
    assert len(Tensor.zeros(*shape).to_vec()) == (0 not in shape)
