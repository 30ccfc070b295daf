"""Sizes that are expressions are compared by what they simplify to."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morok import Tensor, Variable
from morok.errors import BindError, ShapeError

DATA = np.arange(64 * 12, dtype=np.float32).reshape(64, 12)
N = Variable("n", 1, 64).bind(7)


def rows() -> Tensor:
    return Tensor(DATA).shrink(((0, N), (0, 12)))


SAME: dict[str, tuple[Callable[[], Tensor], tuple[int, ...]]] = {
    "a product": (lambda: rows().reshape(N * 12), (84,)),
    "turned round": (lambda: rows().reshape(12 * N), (84,)),
    "in parts": (lambda: rows().reshape(N * 4, 3), (28, 3)),
    "a part in front": (lambda: rows().reshape(4, N * 3), (4, 21)),
    "a sum": (lambda: rows().reshape(N + N, 6), (14, 6)),
    "ones": (lambda: rows().reshape(1, N * 12, 1), (1, 84, 1)),
    "and back": (lambda: rows().reshape(N * 12).reshape(N, 12), (7, 12)),
    "flat": (lambda: rows().flatten(), (84,)),
}


@pytest.mark.parametrize("name", SAME)
def test_equal_sizes(name: str) -> None:
    make, shape = SAME[name]
    got = (make() * 2).numpy()
    np.testing.assert_array_equal(got, (DATA[:7] * 2).reshape(shape))


@pytest.mark.parametrize("shape", [(N * 13,), (N + 12,), (N, N), (84,), (N * 12, 2)])
def test_other_sizes(shape: tuple[object, ...]) -> None:
    with pytest.raises(ShapeError, match="does not fit"):
        rows().reshape(*shape)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("correction", [0, 1, 0.5, 7, 9])
def test_spread_over_fewer_than_there_are(correction: float) -> None:
    """As for known sizes: over 0 where the correction leaves nothing."""
    found = rows().var(0, correction=correction).numpy()
    np.testing.assert_allclose(found, Tensor(DATA[:7]).var(0, correction=correction).numpy(), rtol=1e-5)


@pytest.mark.parametrize("value", ["a", None, 2.0, True, 0, 65])
def test_values_that_no_dimension_has(value: Any) -> None:
    with pytest.raises(BindError, match="is not a value of variable n"):
        Variable("n", 1, 64).bind(value)


@pytest.mark.parametrize(
    "given", [("", 1, 2), ("a b", 1, 2), (3, 1, 2), ("n", "1", 2), ("n", 1.5, 2), ("n", 2, 1), ("n", -1, 1)]
)
def test_names_and_bounds(given: tuple[Any, Any, Any]) -> None:
    with pytest.raises(BindError):
        Variable(*given)
    wide = Variable("n", np.int64(1), np.int32(4))  # type: ignore[arg-type]
    assert type(wide.vmin) is type(wide.vmax) is int
    wide.bind(np.int8(3))  # type: ignore[arg-type]


def front(v: Variable, n: int) -> Tensor:
    return Tensor(np.arange(16, dtype=np.float32)).shrink([(0, v.bind(n))])


def test_different_variables_of_one_name_are_named() -> None:
    n, wider = Variable("n", 1, 8), Variable("n", 1, 16)
    for value in (5, 6):
        with pytest.raises(
            BindError, match=f"different variables are called n, and bound to 5 and to {value}"
        ) as caught:
            (front(n, 5).sum() + front(wider, value).sum()).realize()
        assert "1..=8 and 1..=16" in caught.value.hint
    a, b = front(n, 5), front(wider, 5)
    uses = [
        lambda: a + b,
        lambda: a @ b,
        lambda: a.expand(wider.bind(5)),
        lambda: a.reshape(wider.bind(5)),
        lambda: Tensor.stack([a, b]),
        lambda: Tensor.empty(n, 3) + Tensor.empty(wider, 3),
    ]
    for use in uses:
        with pytest.raises(ShapeError) as refused:
            use()
        assert "1..=8 and 1..=16 are all called n" in refused.value.hint


def test_equal_variables_are_one() -> None:
    n, again = Variable("n", 1, 8), Variable("n", 1, 8)
    total = front(n, 5).sum() + (front(n, 5) + front(again, 5)).sum()
    assert total.item() == 3 * sum(range(5))


def test_errors_show_what_variables_are_bound_to() -> None:
    n = Variable("n", 1, 8)
    with pytest.raises(ShapeError, match=r"shapes \(n=5,\) and \(n=6,\) do not broadcast"):
        front(n, 5) + front(n, 6)
    with pytest.raises(BindError, match="the variable n is bound to 5 and to 6"):
        (front(n, 5).sum() + front(n, 6).sum()).realize()


def test_writes_in_steps_with_different_variables_of_one_name() -> None:
    n, wider = Variable("n", 1, 8), Variable("n", 1, 16)
    x = Tensor(np.zeros((), np.float32)).realize()
    x.assign(x + front(n, 5).sum())
    x.assign(x + front(wider, 5).sum())
    x.assign(x + front(wider, 6).sum())
    assert x.item() == 2 * sum(range(5)) + sum(range(6))


@pytest.mark.parametrize("elements", [[3.0], [3.5], 3, [1, 2, 3]])
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "floordiv", "mod", "truediv", "lt", "le", "gt", "ge", "eq", "ne"]
)
def test_a_bound_variable_on_either_side_of_a_tensor(name: str, elements: Any) -> None:
    at, operate = Variable("n", 0, 8).bind(2), getattr(operator, name)
    t, array = Tensor(elements), Tensor(elements).numpy()
    np.testing.assert_allclose(operate(at, t).numpy(), operate(2, array), rtol=1e-6)
    np.testing.assert_allclose(operate(t, at + 1).numpy(), operate(array, 3), rtol=1e-6)


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_bits_of_a_bound_variable_beside_a_tensor(name: str) -> None:
    operate = getattr(operator, name)
    assert operate(Variable("n", 0, 8).bind(2), Tensor([1])).tolist() == [operate(2, 1)]
