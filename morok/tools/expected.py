"""The first stage after which a program no longer computes the expected result.

A realization is recorded with the contents of its inputs. Then the interpreter runs its kernels, one after the other on the same
memory: as scheduled, and as each stage leaves them. The result is compared each time, and that of the machine last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from morok.errors import UsageError
from morok.ir.dtype import DType
from morok.passes import pipeline
from morok.passes.pipeline import STAGES, Program
from morok.runtime.buffer import Buffer
from morok.runtime.cpu import elements
from morok.tensor.scheduling import Prepared, Schedule
from morok.tools.execution import interpreted

SCHEDULED: Final = 0  # the number of the scheduler's kernels, before stage 1
MACHINE: Final = len(STAGES) + 1  # the number of the machine's result


@dataclass(slots=True)
class Realization:
    """One realization: the contents of its inputs, and the machine's results by number of buffer."""

    prepared: Prepared
    inputs: list[list[Any]]
    results: dict[int, list[Any]]

    @property
    def schedule(self) -> Schedule:
        return self.prepared.schedule


class Runs:
    """A watcher that keeps the last realization with a result of `size` elements."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.last: Realization | None = None

    def __call__(self, prepared: Prepared) -> Callable[[Sequence[Buffer]], None]:
        outputs = [n for n in prepared.schedule.outputs if prepared.memory[n].size == self.size]
        if not outputs or prepared.device.name == "NULL":
            return lambda memory: None
        inputs = [elements(b) for b in prepared.memory[: prepared.schedule.inputs]]

        def done(memory: Sequence[Buffer]) -> None:
            self.last = Realization(prepared, inputs, {n: elements(memory[n]) for n in outputs})

        return done


def reference(file: str) -> np.ndarray[Any, Any]:
    """The array in a .npy file; UsageError if it has none."""
    try:
        found = np.load(Path(file), allow_pickle=False)
    except (OSError, ValueError) as problem:
        raise UsageError(f"{file} holds no array: {problem}", expected="a file that numpy.save has written") from None
    if not isinstance(found, np.ndarray):
        raise UsageError(f"{file} holds several arrays", expected="a .npy file")
    return found


def first_difference(
    run: Realization, wanted: np.ndarray[Any, Any], same: Callable[[Any, Any, int], bool]
) -> tuple[int, str] | None:
    """(number of the first stage, or SCHEDULED, or MACHINE, with another result than `wanted`; text about it); None if all agree.

    Of several results of that size the one with the most equal elements on the machine is compared.
    """
    number = max(run.results, key=lambda n: _alike(run.results[n], wanted, run.prepared.memory[n].dtype, same))
    dtype = run.prepared.memory[number].dtype
    for stage, programs in enumerate(_programs(run)):
        found = _interpreted(run, programs, number)
        at = _where(found, wanted, dtype, same)
        if at is not None:
            return stage, at
    at = _where(run.results[number], wanted, dtype, same)
    return None if at is None else (MACHINE, at)


def _programs(run: Realization) -> list[list[Program]]:
    """For SCHEDULED and each stage, the programs of all kernels after it."""
    out: list[list[Program]] = [[] for _ in range(MACHINE)]
    for step in run.schedule.steps:
        out[SCHEDULED].append(step.ast)

        def look(number: int, name: str, before: Program, after: Program) -> None:
            out[number].append(after)

        pipeline.lower(step.ast, run.prepared.device.target, look)
    return out


def _interpreted(run: Realization, programs: Sequence[Program], number: int) -> list[Any] | str:
    memory: list[list[Any]] = [list(values) for values in run.inputs]
    memory += [[None] * b.size for b in run.prepared.memory[run.schedule.inputs :]]
    for step, program in zip(run.schedule.steps, programs, strict=True):
        if undefined := interpreted(
            program, {slot: memory[n] for slot, n in enumerate(step.buffers)}, run.prepared.values
        ):
            return undefined
    return memory[number]


def _alike(
    found: Sequence[Any], wanted: np.ndarray[Any, Any], dtype: DType, same: Callable[[Any, Any, int], bool]
) -> int:
    size = dtype.itemsize
    return sum(same(a, b, size) for a, b in zip(found, wanted.reshape(-1).tolist(), strict=True))


def _where(
    found: Sequence[Any] | str, wanted: np.ndarray[Any, Any], dtype: DType, same: Callable[[Any, Any, int], bool]
) -> str | None:
    """The first different element, as text; None if all are equal."""
    if isinstance(found, str):
        return found
    for place, (a, b) in enumerate(zip(wanted.reshape(-1).tolist(), found, strict=True)):
        if not same(float(a) if dtype.is_float else a, b, dtype.itemsize):
            at = np.unravel_index(place, wanted.shape)
            return f"element {tuple(map(int, at))} is {b}, expected {a}"
    return None
