"""The special cases that the array API standard states for add, divide and atan2 of real dtypes.

Each row is a statement of the standard: classes of both operands, and the result. Zeros and
infinities are exact to their sign; multiples of pi are approximations, as the standard has them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor

Class = Callable[[Any], bool]
Result = float | Callable[[Any, Any], Any]
Row = tuple[Class, Class, Result]

PI = math.pi
INF, NAN = math.inf, math.nan


def is_nan(x: Any) -> bool:
    return bool(np.isnan(x))


def number(value: float) -> Class:
    """Exactly this value, zeros with their sign."""
    return lambda x: bool(x == value and np.signbit(x) == np.signbit(value))


def anything(x: Any) -> bool:
    return True


def finite(x: Any) -> bool:
    return bool(np.isfinite(x))


def zero(x: Any) -> bool:
    return bool(x == 0)


def nonzero_finite(x: Any) -> bool:
    return finite(x) and not zero(x)


def positive(x: Any) -> bool:
    return bool(x > 0)


def negative(x: Any) -> bool:
    return bool(x < 0)


def positive_finite(x: Any) -> bool:
    return positive(x) and finite(x)


def negative_finite(x: Any) -> bool:
    return negative(x) and finite(x)


def infinite(x: Any) -> bool:
    return bool(np.isinf(x))


PLUS_0, MINUS_0, PLUS_INF, MINUS_INF = number(0.0), number(-0.0), number(INF), number(-INF)

NANS: list[Row] = [(is_nan, anything, NAN), (anything, is_nan, NAN)]

ADD: list[Row] = [
    *NANS,
    (PLUS_INF, MINUS_INF, NAN),
    (MINUS_INF, PLUS_INF, NAN),
    (PLUS_INF, PLUS_INF, INF),
    (MINUS_INF, MINUS_INF, -INF),
    (PLUS_INF, finite, INF),
    (MINUS_INF, finite, -INF),
    (finite, PLUS_INF, INF),
    (finite, MINUS_INF, -INF),
    (MINUS_0, MINUS_0, -0.0),
    (MINUS_0, PLUS_0, 0.0),
    (PLUS_0, MINUS_0, 0.0),
    (PLUS_0, PLUS_0, 0.0),
    (zero, nonzero_finite, lambda a, b: b),
    (nonzero_finite, zero, lambda a, b: a),
]

DIVIDE: list[Row] = [
    *NANS,
    (infinite, infinite, NAN),
    (zero, zero, NAN),
    (positive, PLUS_0, INF),
    (positive, MINUS_0, -INF),
    (negative, PLUS_0, -INF),
    (negative, MINUS_0, INF),
    (PLUS_0, positive, 0.0),
    (PLUS_0, negative, -0.0),
    (MINUS_0, positive, -0.0),
    (MINUS_0, negative, 0.0),
    (PLUS_INF, positive_finite, INF),
    (PLUS_INF, negative_finite, -INF),
    (MINUS_INF, positive_finite, -INF),
    (MINUS_INF, negative_finite, INF),
    (positive_finite, PLUS_INF, 0.0),
    (positive_finite, MINUS_INF, -0.0),
    (negative_finite, PLUS_INF, -0.0),
    (negative_finite, MINUS_INF, 0.0),
]

ATAN2: list[Row] = [
    *NANS,
    (positive, zero, PI / 2),
    (PLUS_0, positive, 0.0),
    (PLUS_0, PLUS_0, 0.0),
    (PLUS_0, MINUS_0, PI),
    (PLUS_0, negative, PI),
    (MINUS_0, positive, -0.0),
    (MINUS_0, PLUS_0, -0.0),
    (MINUS_0, MINUS_0, -PI),
    (MINUS_0, negative, -PI),
    (negative, zero, -PI / 2),
    (positive_finite, PLUS_INF, 0.0),
    (positive_finite, MINUS_INF, PI),
    (negative_finite, PLUS_INF, -0.0),
    (negative_finite, MINUS_INF, -PI),
    (PLUS_INF, finite, PI / 2),
    (MINUS_INF, finite, -PI / 2),
    (PLUS_INF, PLUS_INF, PI / 4),
    (PLUS_INF, MINUS_INF, 3 * PI / 4),
    (MINUS_INF, PLUS_INF, -PI / 4),
    (MINUS_INF, MINUS_INF, -3 * PI / 4),
]

FUNCTIONS: dict[str, tuple[list[Row], Callable[[Tensor, Any], Tensor]]] = {
    "add": (ADD, Tensor.add),
    "divide": (DIVIDE, Tensor.divide),
    "atan2": (ATAN2, Tensor.atan2),
}
DTYPES = ["float16", "float32", "float64"]


def operands(d: str) -> list[Any]:
    limits = np.finfo(d)
    sizes = [limits.smallest_subnormal, limits.smallest_normal, 0.1, 1.0, 3.0, 1000.0, limits.max]
    return [np.array(s * v, d)[()] for v in (0.0, *sizes, INF) for s in (1.0, -1.0)] + [np.array(NAN, d)[()]]


def verify(name: str, a: Any, b: Any, got: Any) -> None:
    """Every statement that is about these operands holds."""
    for first, second, result in FUNCTIONS[name][0]:
        if not (first(a) and second(b)):
            continue
        expected = np.asarray(result(a, b) if callable(result) else result, got.dtype)
        where = f"{name}({a!r}, {b!r}) is {got!r}"
        assert np.isnan(got) == np.isnan(expected), where
        if np.isnan(expected):
            continue
        assert np.signbit(got) == np.signbit(expected), where
        if isinstance(result, float) and result != 0 and math.isfinite(result):
            assert abs(float(got) - float(expected)) <= 2 * float(np.spacing(abs(expected))), where
        else:
            assert got == expected, where


@pytest.mark.sampled(3)
@pytest.mark.parametrize("d", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_statements_hold_of_arrays(name: str, d: str) -> None:
    pairs = list(itertools.product(operands(d), repeat=2))
    x, y = (np.array(column, d) for column in zip(*pairs, strict=True))
    with morok.settings(fast_math=""):
        out = FUNCTIONS[name][1](Tensor(x), Tensor(y)).numpy()
    assert out.dtype == d
    for a, b, got in zip(x, y, out, strict=True):
        verify(name, a, b, got)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("d", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_statements_hold_of_python_numbers(name: str, d: str) -> None:
    """A number on the right of an array, and two constants, which are folded."""
    x = np.array(operands(d), d)
    for b in (0.0, -0.0, 3.0, INF, -INF, NAN):
        for a, got in zip(x, FUNCTIONS[name][1](Tensor(x), b).numpy(), strict=True):
            verify(name, a, np.array(b, d)[()], got)
    for a, b in itertools.product((0.0, -0.0, 2.5, -3.0, INF, -INF, NAN), repeat=2):
        folded = FUNCTIONS[name][1](Tensor(a, dtype=d), Tensor(b, dtype=d)).numpy()
        verify(name, np.array(a, d)[()], np.array(b, d)[()], folded[()])


@pytest.mark.parametrize("d", DTYPES)
def test_a_number_and_its_negative_add_to_positive_zero(d: str) -> None:
    x = np.array([v for v in operands(d) if nonzero_finite(v)], d)
    out = (Tensor(x) + Tensor(-x)).numpy()
    assert not out.any()
    assert not np.signbit(out).any()


@pytest.mark.parametrize("d", DTYPES)
def test_quotients_have_the_sign_of_their_operands_and_overflow_to_infinity(d: str) -> None:
    values = np.array([v for v in operands(d) if nonzero_finite(v)], d)
    x, y = (g.reshape(-1) for g in np.meshgrid(values, values))
    out = (Tensor(x) / Tensor(y)).numpy()
    np.testing.assert_array_equal(np.signbit(out), np.signbit(x) != np.signbit(y))
    limits = np.finfo(d)
    assert (Tensor(np.array([limits.max, limits.max], d)) / Tensor(np.array([0.5, -0.5], d))).tolist() == [INF, -INF]
    assert (Tensor(np.array([limits.max], d)) + Tensor(np.array([limits.max], d))).item() == INF


def test_every_statement_is_about_some_operands() -> None:
    for name, (rows, _) in FUNCTIONS.items():
        for d in DTYPES:
            for first, second, _result in rows:
                assert any(first(a) and second(b) for a, b in itertools.product(operands(d), repeat=2)), name


@pytest.mark.parametrize("d", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "tan", "atan", "asin", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p"])
def test_functions_that_are_the_identity_near_zero(name: str, d: type[np.floating[Any]]) -> None:
    """The least numbers of all, and the least that is normal."""
    least, normal = np.finfo(d).smallest_subnormal, np.finfo(d).smallest_normal
    x = np.array([least, -least, 3 * least, -7 * least, normal, -normal], d)
    assert getattr(Tensor(x.copy()), name)().numpy().tobytes() == x.tobytes()
    if name == "atan":
        assert Tensor(x.copy()).atan2(1.0).numpy().tobytes() == x.tobytes()
