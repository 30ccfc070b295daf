"""The numbers of `arange` at float dtypes are NumPy's, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from morok import Tensor

DTYPES: dict[str, Any] = {"f64": np.float64, "f32": np.float32}
NUMBERS = st.one_of(
    st.floats(-1e3, 1e3),
    st.floats(-1e30, 1e30, allow_subnormal=True),
    st.integers(-500, 500).map(lambda n: n / 10),
    st.integers(-500, 500).map(float),
    st.integers(-500, 500),
    st.sampled_from([0.0, -0.0, 0.1, 1e-300, -5e-324, 1e17, 2.0**24 - 3, 2.0**53, 3e38]),
)
COUNTS = st.sampled_from([1, 2, 3, 4, 17, 1000])


@pytest.mark.parametrize("name", DTYPES)
@example(0.1, 0.3, 3, True)
@example(-0.0, 1.0, 3, False)
@example(0.0, 3e38, 2, True)
@example(16777217.0, 1.0, 9, False)
@given(NUMBERS, NUMBERS, COUNTS, st.booleans())
@settings(max_examples=15)
def test_a_range_of_floats_is_that_of_numpy(name: str, start: float, step: float, count: int, inexact: bool) -> None:
    stop = start + step * (count - 0.5 if inexact else count)
    assume(step != 0 and not all(isinstance(n, int) for n in (start, step, stop)))
    assume(math.isfinite(stop) and abs((stop - start) / step) < 2000)
    with np.errstate(all="ignore"):
        expected = np.arange(start, stop, step, dtype=DTYPES[name]).astype(np.float64)
    ours = Tensor.arange(start, stop, step, dtype=name).cast("f64").numpy()
    np.testing.assert_array_equal(ours, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(ours[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize(("start", "step", "count"), [(0.1, 0.3, 300_001), (-7.3, 1e-5, 1 << 20), (1e9, 0.7, 1 << 18)])
@pytest.mark.parametrize("name", ["f64", "f32"])
def test_a_long_range_of_floats_is_that_of_numpy(name: str, start: float, step: float, count: int) -> None:
    expected = np.arange(start, start + count * step, step, dtype=DTYPES[name])
    np.testing.assert_array_equal(Tensor.arange(start, start + count * step, step, dtype=name).numpy(), expected)


def test_a_range_of_floats_inside_of_a_program() -> None:
    """What the range is added to or multiplied with may not be contracted into it."""
    expected = np.arange(0.1, 30.1, 0.3)
    other = np.linspace(-3.7, 2.9, expected.size)
    ours = Tensor.arange(0.1, 30.1, 0.3, dtype="f64")
    np.testing.assert_array_equal((ours + Tensor(other)).numpy(), expected + other)
    np.testing.assert_array_equal(ours.reshape(10, 10).permute(1, 0).numpy(), expected.reshape(10, 10).T)
    np.testing.assert_array_equal((-ours).flip(0).numpy(), -expected[::-1])
    np.testing.assert_array_equal(Tensor.arange(4, 0.5, -0.7, dtype="f64").max().item(), np.arange(4, 0.5, -0.7).max())
