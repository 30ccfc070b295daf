"""Addresses that keep the low bits of a loop's counter: LLVM's vectorizer must not take them for ones that go straight on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from morok import Tensor, config, dtypes

# (13, 256) elements; NumPy's way and ours
CASES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "roll": (lambda t: t[:, :64].roll(-3, 1), lambda a: np.roll(a[:, :64], -3, 1)),
    "roll of all": (lambda t: t.roll(5, 1), lambda a: np.roll(a, 5, 1)),
    "remainder": (lambda t: t[:, (Tensor.arange(512) + 3) % 256], lambda a: a[:, (np.arange(512) + 3) % 256]),
    "narrow dtype": (
        lambda t: t[:, (Tensor.arange(256) + 3).cast(dtypes.u8).cast(dtypes.i32)],
        lambda a: a[:, (np.arange(256) + 3) % 256],
    ),
}


@pytest.mark.parametrize("setting", ["noopt", "no_output_upcast"])
@pytest.mark.parametrize("name", CASES)
def test_scalar_loops_come_back_to_the_start_of_the_row(name: str, setting: str) -> None:
    ours, numpys = CASES[name]
    a = np.arange(13 * 256, dtype=np.float32).reshape(13, 256)
    with config.settings(**{setting: True}):
        found = ours(Tensor(a)).numpy()
    np.testing.assert_array_equal(found, numpys(a))
