"""Programs of chance that write to caches at bound positions, read them, and realize some of it in between, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morok import Tensor, Variable

Array = np.ndarray[Any, Any]

ROWS, WIDTH = 5, 3
POSITION, LENGTH = Variable("n", 0, ROWS - 1), Variable("m", 1, ROWS)


@dataclass
class Caches:
    """Caches and what has been read from them, each with the values that it must have."""

    draw: st.DrawFn
    ours: list[Tensor] = field(default_factory=list)
    theirs: list[Array] = field(default_factory=list)
    readers: list[tuple[Tensor, Array, int]] = field(default_factory=list)  # with the position that they were read at

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def add(self) -> None:
        values = np.random.default_rng(self.number(0, 1 << 16)).integers(-3, 4, (ROWS, WIDTH))
        self.ours.append(Tensor(values.copy()))
        self.theirs.append(values.copy())

    def row(self) -> tuple[Tensor, Array]:
        """What is written: numbers, or the sum of something that has been read."""
        if self.readers and self.draw(st.booleans()):
            t, v, _ = self.draw(st.sampled_from(self.readers))
            return t.sum().reshape(1, 1).expand(1, WIDTH), np.full((1, WIDTH), v.sum())
        values = np.arange(WIDTH).reshape(1, WIDTH) + self.number(-9, 9)
        return Tensor(values.copy()), values

    def write(self, i: int, at: int) -> None:
        cache, array, bound = self.ours[i], self.theirs[i], POSITION.bind(at)
        kind = self.draw(st.sampled_from(["row", "row", "row", "add", "all", "scale", "turn", "item"]))
        values, numbers = self.row()
        if kind == "row":
            cache.assign(
                (Tensor.arange(ROWS).reshape(ROWS, 1) == Tensor(bound)).where(values.expand(ROWS, WIDTH), cache)
            )
            array[at] = numbers
        elif kind == "add":
            cache.assign(cache + values.pad([(bound, ROWS - 1 - bound), (0, 0)]).reshape(ROWS, WIDTH))
            array[at] += numbers[0]
        elif kind == "all":
            cache.assign(values.expand(ROWS, WIDTH))
            array[:] = numbers
        elif kind == "scale":
            cache.assign(cache * 2 - Tensor(bound))
            array *= 2
            array -= at
        elif kind == "turn":
            cache.assign(cache.flip(0))
            array[:] = array[::-1].copy()
        else:
            cache[at] = values[0]
            array[at] = numbers[0]

    def read(self, i: int, j: int, at: int) -> None:
        a, b, x, y = self.ours[i], self.ours[j], self.theirs[i], self.theirs[j]
        upto = [(0, LENGTH.bind(at + 1)), None]
        kinds: dict[str, Callable[[], tuple[Tensor, Array]]] = {
            "part": lambda: (a.shrink(upto) * 1, x[: at + 1]),
            "sum": lambda: (a.shrink([(0, POSITION.bind(at) + 1), None]).sum(0), x[: at + 1].sum(0)),
            "product": lambda: (a.shrink(upto).T @ b.shrink(upto), x[: at + 1].T @ y[: at + 1]),
            "view": lambda: (a.flip(0).T, x[::-1].T),
            "same": lambda: (Tensor(a), x),
        }
        t, v = kinds[self.draw(st.sampled_from(list(kinds)))]()
        others = self.read_at(at)
        if others and self.draw(st.booleans()):
            other, values = self.draw(st.sampled_from(others))
            t, v = t.sum() + other.sum(), v.sum() + values.sum()
        self.readers.append((t, np.array(v), at))

    def read_at(self, at: int) -> list[tuple[Tensor, Array]]:
        """What one graph without writes may hold: it binds a variable to one value."""
        return [(t, v) for t, v, position in self.readers if position == at]

    def check(self, t: Tensor, v: Array) -> None:
        np.testing.assert_array_equal(t.numpy(), v)


STEPS: Final = ["write", "write", "read", "read", "reader", "cache", "several", "forget"]


def writes_and_readers(data: st.DataObject) -> None:
    caches, at = Caches(data.draw), 0
    for _ in range(caches.number(1, 3)):
        caches.add()
    last = len(caches.ours) - 1
    for _ in range(10):
        step = data.draw(st.sampled_from(STEPS))
        at = (at + 1) % ROWS if data.draw(st.booleans()) else at
        i, j = caches.number(0, last), caches.number(0, last)
        if step == "write":
            caches.write(i, at)
        elif step == "read":
            caches.read(i, j, at)
        elif step == "cache":
            caches.check(caches.ours[i], caches.theirs[i])
        elif step == "several":
            Tensor.realize_batch([*[t for t, _ in caches.read_at(at)], caches.ours[i]])
        elif caches.readers:
            k = caches.number(0, len(caches.readers) - 1)
            if step == "forget":
                del caches.readers[k]
            else:
                caches.check(*caches.readers[k][:2])
    everything = [*[(t, v) for t, v, _ in caches.readers], *zip(caches.ours, caches.theirs, strict=True)]
    for t, v in data.draw(st.permutations(everything)):
        caches.check(t, v)


@pytest.mark.parametrize("examples", [10, pytest.param(60, marks=pytest.mark.long)])
def test_writes_and_readers(examples: int) -> None:
    settings(max_examples=examples)(given(st.data())(writes_and_readers))()
