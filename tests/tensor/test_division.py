"""Float quotients, remainders and signs are NumPy's to the bit, however far apart the operands are."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from morok import Tensor

Array = np.ndarray[Any, Any]
KINDS = ["float16", "float32", "float64"]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def numbers(kind: str) -> Array:
    """Zeros, extremes, what is no number, some small numbers, and bit patterns from all over the range."""
    limits = np.finfo(kind)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, -limits.max, limits.tiny, limits.smallest_subnormal]
    plain = [1.0, -1.0, 2.0, 3.0, -0.1, 0.1, 7.5, -7.5, np.pi, limits.max / 3]
    bits = (
        np.random.default_rng(11).integers(0, 2**limits.bits, 60, np.uint64).astype(f"u{limits.bits // 8}").view(kind)
    )
    return np.concatenate([np.array(edges + plain, kind), bits])


def same_bits(ours: Array, theirs: Array) -> None:
    """Equal, the signs of zeros too; one NaN is as good as another."""
    assert ours.dtype == theirs.dtype
    number = ~np.isnan(theirs)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(np.signbit(ours[number]), np.signbit(theirs[number]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_quotients_and_remainders_of_all_pairs(kind: str) -> None:
    v = numbers(kind)
    a, b = np.repeat(v, len(v)), np.tile(v, len(v))
    same_bits((Tensor(a) % Tensor(b)).numpy(), np.remainder(a, b))
    same_bits((Tensor(a) // Tensor(b)).numpy(), np.floor_divide(a, b))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [*KINDS[:2], pytest.param(KINDS[2], marks=pytest.mark.long)])
def test_remainders_of_constant_divisors(kind: str) -> None:
    v = numbers(kind)
    for divisor in (1.0, 3.0, -2.5, 0.1, 0.0, np.inf, 1e-3):
        same_bits((Tensor(v) % divisor).numpy(), np.remainder(v, np.array(divisor, kind)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_sign_of_a_zero_is_zero(kind: str) -> None:
    v = numbers(kind)
    same_bits(Tensor(v).sign().numpy(), np.sign(v))
