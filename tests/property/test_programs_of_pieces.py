"""Random programs of models' pieces: their values, however they are cut into kernels, are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import programs
from morok import Tensor


def agree(program: programs.Program, seed: int, kept: int) -> None:
    """`kept` says, bit by bit, which values are cut by hand."""
    numbers = program.numbers(seed)
    wanted = program.run(programs.OF_ARRAYS, {name: a.astype(np.float64) for name, a in numbers.items()})
    marks = iter(range(len(program.steps)))
    got = program.run(
        programs.OF_TENSORS,
        {name: Tensor(a) for name, a in numbers.items()},
        lambda t: t.contiguous() if kept >> next(marks) & 1 else t,
    ).numpy()
    scale = max(1.0, float(np.abs(wanted).max()))
    np.testing.assert_allclose(got / scale, wanted / scale, rtol=0, atol=1e-5)


@pytest.mark.long
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 12), kept=st.integers(0, 2**12 - 1))
def test_values_are_numpys(seed: int, size: int, kept: int) -> None:
    program = programs.drawn(np.random.default_rng(seed), size)
    agree(program, seed, 0)
    agree(program, seed, kept)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(4))
def test_values_are_numpys_where_values_are_stored_for_speed(seed: int) -> None:
    agree(programs.drawn(np.random.default_rng(seed), 48, (4, 8)), seed, 0)
