"""Contractions against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from morok import Tensor
from morok.errors import ShapeError

FORMULAS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("bij,bjk", [(2, 3, 4), (2, 4, 5)]),
    ("ii", [(4, 4)]),
    ("ii->i", [(4, 4)]),
    ("iij->ji", [(4, 4, 3)]),
    ("iii->i", [(3, 3, 3)]),
    ("abab->ba", [(2, 3, 2, 3)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
    ("a...->...", [(3, 4, 5)]),
    ("...", [(2, 3)]),
    ("ij->", [(3, 4)]),
    ("i,j", [(3,), (4,)]),
    (" ij , jk,kl -> il", [(2, 3), (3, 4), (4, 5)]),
    ("bhqd,bhkd->bhqk", [(1, 2, 3, 4), (1, 2, 5, 4)]),
    ("ab,b->a", [(3, 1), (4,)]),
    ("ij,jk->ik", [(2, 0), (0, 3)]),
]


def whole(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype(dtype)


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("formula", "shapes"), FORMULAS, ids=[f for f, _ in FORMULAS])
def test_einsum_is_numpys(formula: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [whole(s) for s in shapes]
    ours = Tensor.einsum(formula, *map(Tensor, arrays))
    assert len(ours.schedule()) <= max(1, len(shapes) - 1)
    np.testing.assert_array_equal(ours.numpy(), np.einsum(formula, *arrays))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("d", ["int8", "uint16", "int64", "float16", "float64", "bool"])
def test_dtypes(d: str) -> None:
    a, b = abs(whole((3, 4), d)) if d != "bool" else whole((3, 4)) > 0, whole((4, 2)).astype(d)
    ours = Tensor.einsum("ij,jk->ik", Tensor(a), Tensor(b)).numpy()
    assert ours.dtype == a.dtype
    np.testing.assert_array_equal(ours, np.einsum("ij,jk->ik", a, b))


@pytest.mark.long
def test_its_relatives() -> None:
    a, b = whole((3, 4, 5)), whole((4, 5, 2))
    np.testing.assert_array_equal(Tensor(a).tensordot(b).numpy(), np.tensordot(a, b))
    np.testing.assert_array_equal(Tensor(a).tensordot(b, 0).numpy(), np.tensordot(a, b, 0))
    np.testing.assert_array_equal(Tensor(a).tensordot(b.T, [(1, 2), (2, 1)]).numpy(), np.tensordot(a, b))
    for offset in (-4, -3, -1, 0, 1, 4, 7):
        np.testing.assert_array_equal(Tensor(a).diagonal(offset, 0, 2).numpy(), np.diagonal(a, offset, 0, 2))
    np.testing.assert_array_equal(Tensor(a).trace(1).numpy(), np.trace(a, 1, 1, 2))
    np.testing.assert_array_equal(Tensor(a).vecdot(a[0], -2).numpy(), (a * a[0]).sum(-2))
    for ord_ in (0, 1, 2, 3, np.inf, -np.inf):
        np.testing.assert_allclose(Tensor(a).vector_norm(1, ord=ord_).numpy(), np.linalg.norm(a, ord_, 1), rtol=1e-6)


@pytest.mark.parametrize(
    ("formula", "count", "expected"),
    [
        ("ij,jk", 1, "2 operands"),
        ("ij", 2, "1 operands"),
        ("i1", 1, "letters"),
        ("i->j->k", 1, "letters"),
        ("..ij", 1, "letters"),
        ("...i...", 1, "letters"),
        ("ijk", 1, "2 axes"),
        ("i", 1, "2 axes"),
        ("ij->k", 1, "each once"),
        ("ij->ii", 1, "each once"),
        ("ij,jk->ik", 2, "one size for 'j', which is 4 and 3"),
    ],
)
def test_slips_are_named(formula: str, count: int, expected: str) -> None:
    with pytest.raises(ShapeError, match=expected):
        Tensor.einsum(formula, *[Tensor(whole((3, 4)))] * count)


def test_axes_that_do_not_fit_are_refused() -> None:
    a, b = Tensor(whole((3, 4))), Tensor(whole((5, 4)))
    for wrong in (
        lambda: a.tensordot(b),
        lambda: a.tensordot(b, 3),
        lambda: a.tensordot(b, [(0,), (0,)]),
        lambda: a.vecdot(b, 0),
    ):
        with pytest.raises(ShapeError):
            wrong()
    with pytest.raises(ShapeError, match="two different axes"):
        a.diagonal(0, 1, -1)
