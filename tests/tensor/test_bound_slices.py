"""Slices whose ends, or whose axis, are variables: NumPy's at every binding, beyond the axis too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, Variable
from morok.errors import ShapeError

N = Variable("n", 1, 20)
X = np.arange(40, dtype=np.float32).reshape(10, 4)
SLICES: dict[str, Callable[[Any], Any]] = {
    ":n": lambda n: slice(n),
    "n:": lambda n: slice(n, None),
    "n:n + 2": lambda n: slice(n, n + 2),
    "3:n": lambda n: slice(3, n),
    "-3:n": lambda n: slice(-3, n),
    "n:-1": lambda n: slice(n, -1),
    "n - 1:n * 2": lambda n: slice(n - 1, n * 2, 1),
    "n, 1": lambda n: (slice(n), 1),
    "None, n:, 1:3": lambda n: (None, slice(n, None), slice(1, 3)),
    "n:, ::-2": lambda n: (slice(n, None), slice(None, None, -2)),
    "..., :n": lambda n: (..., slice(n)),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", SLICES)
def test_elements_between_variables(name: str) -> None:
    for n in (1, 2, 4, 9, 10, 11, 20):
        found = Tensor(X.copy())[SLICES[name](N.bind(n))]
        wanted = X[SLICES[name](n)]
        np.testing.assert_array_equal(found.numpy(), wanted)
        np.testing.assert_array_equal((found * 2 + 1).sum(0).numpy(), (wanted * 2 + 1).sum(0))
        np.testing.assert_array_equal(found.permute(*range(found.ndim)[::-1]).flip(0).numpy(), np.flip(wanted.T, 0))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", SLICES)
def test_elements_are_written_between_variables(name: str) -> None:
    for n in (1, 4, 10, 20):
        here, there = Tensor(X.copy()), X.copy()
        here[SLICES[name](N.bind(n))] = 7.0
        there[SLICES[name](n)] = 7.0
        np.testing.assert_array_equal(here.numpy(), there)
        here, there = Tensor(X.copy()), X.copy()
        here[SLICES[name](N.bind(n))] = Tensor(X.copy())[SLICES[name](N.bind(n))] * 10
        there[SLICES[name](n)] = X[SLICES[name](n)] * 10
        np.testing.assert_array_equal(here.numpy(), there)


def test_a_symbolic_axis_is_sliced() -> None:
    for n in (1, 3, 10):
        front, whole = Tensor(X.copy())[: N.bind(n)], X[:n]
        for begin in (None, 0, 2, -2, -30, 30):
            for end in (None, 0, 3, -1, 30):
                np.testing.assert_array_equal(front[begin:end].numpy(), whole[begin:end])
    assert front[:] is not front
    np.testing.assert_array_equal(front[:].numpy(), whole)


def test_one_program_for_every_binding() -> None:
    asts = {Tensor(X.copy())[N.bind(n) :].sum(0).kernels()[0].name for n in (2, 3, 7)}
    assert len(asts) == 1


def test_what_is_no_slice_is_refused() -> None:
    x, n = Tensor(X.copy()), N.bind(4)
    for key in (slice(None, None, n), slice(None, n, 2), slice(n, None, -1), slice(n - 5, None)):
        with pytest.raises(ShapeError):
            x[key]
        with pytest.raises(ShapeError):
            x[key] = 0.0


OUTSIDE = [
    lambda x, n: x[: n - 3].sum(0),
    lambda x, n: x[n - 3 :].sum(0),
    lambda x, n: x[n - 2 : n].sum(0),
    lambda x, n: x.shrink([(0, n + 2), None]),
    lambda x, n: x.shrink([(n - 1, 6), None]),
    lambda x, n: x.pad([(n - 2, 0), (0, 0)]),
]


@pytest.mark.parametrize("cut", OUTSIDE)
def test_a_plan_has_no_parts_that_are_outside_at_other_values(cut: Any) -> None:
    """A plan serves all values of a variable; without one, only the value counts that is there."""
    x, n = Tensor(np.ones((6, 2), np.float32)), Variable("n", 0, 6)
    assert cut(x, n.bind(4)).numpy().size
    with pytest.raises(ShapeError, match=r"may be less than 0|cannot be shrunk"):
        morok.jit(cut)(x, n.bind(4))


COPIES: dict[str, Callable[[Tensor], Tensor]] = {"clone()": Tensor.clone, "to()": lambda t: t.to("CPU:1").to("CPU")}


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i64"])
@pytest.mark.parametrize("how", COPIES)
def test_copies_keep_a_size_of_a_variable(how: str, dtype: str) -> None:
    """As in a jitted function: a copy has its original's shape, and stands beside it."""

    def total(x: Tensor, n: Any) -> Tensor:
        part = x[:n] * 2
        copy = COPIES[how](part)
        assert copy.shape == part.shape
        return copy + part

    jitted, x = morok.jit(total), np.arange(10)
    n = Variable("n", 0, 10)
    for k in (3, 0, 10, 3):
        found = total(Tensor(x).cast(dtype), n.bind(k))
        np.testing.assert_array_equal(found.numpy(), x[:k] * 4)
        np.testing.assert_array_equal(jitted(Tensor(x).cast(dtype), n.bind(k)).numpy(), x[:k] * 4)
    assert jitted.plans == 1


def test_a_copy_of_a_variable_size_has_memory_of_its_own() -> None:
    x = Tensor(X.copy())
    part = x[: N.bind(3)].realize()
    copy = part.clone()
    copy.assign(copy * 0)
    np.testing.assert_array_equal(copy.numpy(), X[:3] * 0)
    np.testing.assert_array_equal(part.numpy(), X[:3])
    np.testing.assert_array_equal((copy + x[: N.bind(3)]).numpy(), X[:3])


def test_an_axis_that_a_gate_bounds_is_one_loop() -> None:
    """The rows are behind a gate that says something of the length of the columns."""
    x, m = np.arange(24, dtype=np.int32).reshape(8, 3), Variable("m", 1, 4)
    for k in (1, 2, 3, 4):
        found = Tensor(x.copy())[:, : m.bind(k)][::2][m.bind(k) :] + m.bind(k)
        np.testing.assert_array_equal(found.numpy(), x[:, :k][::2][k:] + k)
