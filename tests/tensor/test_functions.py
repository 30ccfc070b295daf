"""Inverse, hyperbolic and other functions against NumPy, by the names of the array API standard."""

from __future__ import annotations

import numpy as np
import pytest

from morok import Tensor

POINTS = [
    0.0,
    -0.0,
    1e-12,
    -1e-5,
    0.1,
    -0.3,
    0.5,
    0.75,
    -0.999,
    1.0,
    -1.0,
    1.5,
    -3.0,
    7.0,
    29.5,
    -31.0,
    88.9,
    300.0,
    -1e6,
    3e30,
]
POINTS += [np.inf, -np.inf, np.nan]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("d", ["float32", "float64"])
@pytest.mark.parametrize("name", ["atan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh"])
def test_functions(name: str, d: str) -> None:
    x = np.concatenate([np.array(POINTS, d), np.linspace(-2, 2, 81).astype(d)])
    numpys = getattr(np, name.replace("a", "arc", 1) if name[0] == "a" else name)
    with np.errstate(all="ignore"):
        theirs = numpys(x.astype(np.longdouble)).astype(d)
    ours = getattr(Tensor(x), name)().numpy()
    assert ours.dtype == x.dtype
    np.testing.assert_allclose(ours, theirs, rtol=12 * float(np.finfo(d).eps), atol=0)
    zeros = theirs == 0
    np.testing.assert_array_equal(np.signbit(ours[zeros]), np.signbit(theirs[zeros]))


@pytest.mark.long
def test_functions_of_two() -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -1e-30, 1e30, np.inf, -np.inf, np.nan])
    a, b = (np.ascontiguousarray(m) for m in np.meshgrid(values, values))
    x, y = Tensor(a), Tensor(b)
    np.testing.assert_allclose(x.atan2(y).numpy(), np.arctan2(a, b), rtol=1e-14)
    numbers = ~np.isnan(np.arctan2(a, b))
    np.testing.assert_array_equal(np.signbit(x.atan2(y).numpy())[numbers], np.signbit(np.arctan2(a, b))[numbers])
    np.testing.assert_allclose(x.hypot(y).numpy(), np.hypot(a, b), rtol=1e-14)
    np.testing.assert_array_equal(x.copysign(y).numpy(), np.copysign(a, b))
    np.testing.assert_array_equal(np.signbit(x.copysign(y).numpy()), np.signbit(b))
    np.testing.assert_array_equal(x.signbit().numpy(), np.signbit(a))


@pytest.mark.long
def test_operators_by_name() -> None:
    a, b = np.array([6, -7, 3]), np.array([2, 3, 3])
    x, y = Tensor(a), Tensor(b)
    for name in (
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "subtract",
        "multiply",
        "remainder",
    ):
        np.testing.assert_array_equal(getattr(x, name)(y).numpy(), getattr(np, name)(a, b))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        np.testing.assert_array_equal(getattr(x, name)(y).numpy(), getattr(np, name)(a, b))
    np.testing.assert_array_equal(x.bitwise_left_shift(y).numpy(), a << b)
    np.testing.assert_array_equal(x.bitwise_right_shift(y).numpy(), a >> b)
    np.testing.assert_array_equal(x.bitwise_invert().numpy(), ~a)
    np.testing.assert_array_equal(x.negative().numpy(), -a)
    np.testing.assert_allclose(x.divide(y).numpy(), a / b, rtol=1e-6)
    assert x.count_nonzero().item() == 3
    assert Tensor([[1, 0], [0, 0]]).count_nonzero(1).tolist() == [1, 0]


def test_differences() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (3, 5))
    for n in (0, 1, 2):
        np.testing.assert_array_equal(Tensor(x).diff(n=n).numpy(), np.diff(x, n))
        np.testing.assert_array_equal(Tensor(x).diff(0, n).numpy(), np.diff(x, n, 0))
    np.testing.assert_array_equal(Tensor(x > 0).diff().numpy(), np.diff(x > 0))
