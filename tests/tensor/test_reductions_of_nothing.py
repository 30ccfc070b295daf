"""Reductions over axes without elements: NumPy's values, and its errors where there is no value."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, Variable
from morok.errors import ShapeError

SHAPES = [(0,), (3,), (0, 3), (3, 0), (0, 0), (1, 0), (2, 0, 3), (2, 3, 0), (0, 2, 0), (2, 0, 0)]
NAMES = ["max", "min", "argmax", "argmin", "sum", "prod", "any", "all", "count_nonzero"]


def axes(ndim: int, name: str) -> list[Any]:
    one = [None, *range(-ndim, ndim)]
    several = [c for n in range(ndim + 1) for c in itertools.combinations(range(ndim), n)]
    return one if name.startswith("arg") else [*one, *several]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", ["float32", "int16", "bool"])
@pytest.mark.parametrize("name", NAMES)
def test_reductions_of_nothing(name: str, dtype: str) -> None:
    for shape in SHAPES:
        x = np.zeros(shape, dtype)
        for axis in axes(len(shape), name):
            try:
                expected = np.asarray(getattr(np, name)(x, axis=axis, keepdims=True))
            except ValueError:
                with pytest.raises(ValueError, match="no elements") as caught:
                    getattr(Tensor(x), name)(axis, keepdim=True)
                assert isinstance(caught.value, ShapeError)
                continue
            out = getattr(Tensor(x), name)(axis, keepdim=True).numpy()
            assert out.shape == expected.shape
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("ord", [0, 1, 2, np.inf])
def test_norms_of_nothing(ord: float) -> None:
    for axis in (0, 1):
        x = np.zeros((0, 3), np.float32)
        expected = np.linalg.vector_norm(x, axis=axis, ord=ord)
        np.testing.assert_array_equal(Tensor(x).vector_norm(axis, ord=ord).numpy(), expected)


def test_functions_built_on_the_greatest_element() -> None:
    for shape in [(0, 3), (3, 0)]:
        x = Tensor(np.zeros(shape, np.float32))
        for axis in (0, 1):
            assert x.softmax(axis).numpy().shape == shape
            assert x.log_softmax(axis).numpy().shape == shape
            assert x.cummax(axis).numpy().shape == shape
    assert Tensor(np.zeros((0, 2), np.float32)).logsumexp(0).tolist() == [-np.inf] * 2


@pytest.mark.parametrize("dtype", ["float32", "float16", "int16"])
@pytest.mark.parametrize(("begin", "end"), [(0, 0), (2, 2), (1, 3)])
def test_sums_over_a_size_that_a_variable_makes_zero(dtype: str, begin: int, end: int) -> None:
    """Plus 0, not the identity of Add, which is -0.0."""
    x = np.ones((3, 2), dtype)
    first, last = Variable("first", 0, 3), Variable("last", 0, 3)
    rows, wanted = Tensor(x)[first.bind(begin) : last.bind(end)], x[begin:end]
    for got, expected in ((rows.sum(), wanted.sum()), (rows.sum(0), wanted.sum(0)), (rows.T @ rows, wanted.T @ wanted)):
        np.testing.assert_array_equal(got.numpy(), expected)
        np.testing.assert_array_equal(np.signbit(got.numpy()), np.signbit(expected))


def test_a_plan_of_a_sum_serves_all_sizes_of_a_variable() -> None:
    """Whichever it was described at: that of no elements is +0.0 there, too."""
    rows = Variable("rows", 0, 3)
    x = Tensor(np.ones((3, 2), np.float32))
    for sizes in ((0, 1, 3), (3, 0), (2, 0)):
        total = morok.jit(lambda t, n: t[:n].sum(0))
        for n in sizes:
            found = total(x, rows.bind(n)).numpy()
            np.testing.assert_array_equal(found, np.full(2, n))
            assert not np.signbit(found).any()
        assert total.plans == 1


def test_the_greatest_of_a_size_that_a_variable_makes_zero_is_no_element() -> None:
    """A plan serves all sizes of a variable, so that there is no error at one of them."""
    n, x = Variable("n", 0, 4), Tensor([[3, 1, 2, 5]], dtype="i32")
    for size, greatest, place in ((4, 5, 3), (0, -(2**31), 2**63 - 1), (2, 3, 0)):
        part = x[:, : n.bind(size)]
        assert part.max(1).tolist() == [greatest]
        assert part.argmax(1).tolist() == [place]
        assert part.argmin(1).tolist() == [1 if size else 2**63 - 1]
