"""Random programs of models' pieces (`bench/programs.py`) as written, against the best of their cuts by hand, one thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from bench import programs
from bench.cases.cuts import contest
from bench.harness import Contest

COUNT: Final = 20
SIZE: Final = 192  # about: of each axis of rows; images have as many numbers a row of pixels and channel
GOAL: Final = 1.5


def of_seed(seed: int, rounds: int = 15) -> Contest:
    """A program against its cuts by hand at four of its values."""
    from morok import Tensor

    program = programs.drawn(np.random.default_rng(seed), SIZE)
    numbers = {name: Tensor(a) for name, a in program.numbers(seed).items()}
    name = f"{seed}: {program.shape}, {', '.join(step.piece for step in program.steps)}"
    return contest(name, lambda cut: program.run(programs.OF_TENSORS, numbers, cut), GOAL, rounds, seed)


def contests() -> Iterator[Contest]:
    yield from map(of_seed, range(COUNT))
