"""Whole programs of chance against NumPy: elementwise trees, chains of views, reductions, and all of these together."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import trees
from hypothesis import given, settings
from hypothesis import strategies as st

import morok
from morok import Tensor


@pytest.fixture(autouse=True, scope="module")
def _as_written() -> Iterator[None]:
    """Every operation is rounded by itself, as NumPy does it."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), morok.settings(fast_math=""):
        warnings.simplefilter("ignore")
        yield


def elementwise_trees(data: st.DataObject) -> None:
    shape = data.draw(trees.shapes())
    draw = data.draw
    trees.check(trees.tree(draw, draw(st.sampled_from(trees.DTYPES)), shape, 4, []))


@pytest.mark.parametrize("examples", [10, pytest.param(60, marks=pytest.mark.long)])
def test_elementwise_trees(examples: int) -> None:
    settings(max_examples=examples)(given(st.data())(elementwise_trees))()


@pytest.mark.long
@settings(max_examples=40)
@given(st.data())
def test_chains_of_views(data: st.DataObject) -> None:
    draw = data.draw
    d = draw(st.sampled_from(trees.DTYPES))
    p = trees.moved(draw, trees.leaf(draw, d, draw(trees.shapes()), trees.exact_values(d)), draw(st.integers(1, 6)))
    trees.check(p)
    trees.check(p.map(lambda x: x != 1))


@settings(max_examples=40)
@given(st.data())
def test_reductions(data: st.DataObject) -> None:
    draw = data.draw
    d = draw(st.sampled_from(trees.DTYPES))
    p = trees.leaf(draw, d, draw(trees.shapes()), trees.exact_values(d))
    out, exactly = trees.reduced(draw, trees.moved(draw, p, draw(st.integers(0, 2))))
    trees.check(out, exactly, 2e-3 if d == "float16" else 1e-5)


@pytest.mark.long
@settings(max_examples=100)
@given(st.data())
def test_views_that_repeat_elements(data: st.DataObject) -> None:
    """Views, then elements repeated, then a reduction or a scan of these, or of their product with others."""
    draw = data.draw
    d = draw(st.sampled_from(["int32", "int64", "uint8", "float32"]))
    p = trees.leaf(draw, d, draw(trees.shapes(2)), trees.exact_values(d))
    p = trees.moved(draw, p, draw(st.integers(0, 1)))
    p = draw(st.sampled_from([trees.joined, trees.padded]))(draw, p)
    p = trees.repeated(draw, p)
    if draw(st.booleans()):
        p = p.map(lambda x: x * x - 1)
    if draw(st.booleans()):
        other = trees.leaf(draw, d, p.theirs.shape, trees.exact_values(d))
        p = trees.Pair(p.ours * other.ours, p.theirs * other.theirs)
    if d != "float32" and p.theirs.ndim and draw(st.booleans()):
        trees.check(trees.scanned(draw, p))
    else:
        out, exactly = trees.reduced(draw, p)
        trees.check(out, exactly and d != "float32", 1e-5)  # a sum of -0.0 alone may be 0.0


@pytest.mark.long
@settings(max_examples=30)
@given(st.data())
def test_whole_programs(data: st.DataObject) -> None:
    """A product of matrices or a tree, reduced, spread again, and used beside what it came from."""
    draw = data.draw
    d = draw(st.sampled_from(["int32", "int64", "float32", "float64"]))
    values = trees.exact_values(d)
    n, k, m = (draw(st.sampled_from(trees.SIZES)) for _ in range(3))
    a, b = trees.leaf(draw, d, (n, k), values), trees.leaf(draw, d, (k, m), values)
    c = trees.Pair(a.ours @ b.ours, a.theirs @ b.theirs)
    c = draw(
        st.sampled_from([c, c.map(abs), c.map(lambda x: x.relu(), lambda x: np.maximum(x, 0)), c.map(lambda x: x.T)])
    )
    axis = draw(st.integers(0, 1))
    total = c.map(lambda x: x.sum(axis, keepdim=True), lambda x: x.sum(axis, keepdims=True))
    both = trees.Pair(c.ours * 2 - total.ours, c.theirs * 2 - total.theirs)
    out = trees.moved(draw, both, draw(st.integers(0, 2)))
    trees.check(out)
    if draw(st.booleans()):
        trees.check(out.map(lambda x: x + 1))


@pytest.mark.long
@settings(max_examples=40)
@given(st.data())
def test_scans_and_orders(data: st.DataObject) -> None:
    draw = data.draw
    d = draw(st.sampled_from(trees.INTS))
    p = trees.leaf(draw, d, (draw(st.sampled_from([1, 2, 17, 65, 130])), draw(st.integers(1, 3))))
    axis = draw(st.integers(0, 1))
    trees.check(p.map(lambda x: x.cumsum(axis)))
    trees.check(p.map(lambda x: x.argsort(axis), lambda x: np.argsort(x, axis, kind="stable")))
    at = np.array(draw(st.lists(st.integers(-p.theirs.shape[axis], p.theirs.shape[axis] - 1), max_size=4)), np.int64)
    trees.check(p.map(lambda x: x.take(Tensor(at), axis), lambda x: x.take(at, axis)))
